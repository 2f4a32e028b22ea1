"""The connectors of each flow with their settings, as this worker's config topic has them.

Runs on: worker, any thread. Settings are parsed again only when they have changed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.config.connector_spec import AnySpec, ConnectorSpec, parse_connector
from sparkmirror.config.masking import mask
from sparkmirror.config.mirror_configs import CheckpointConfig, HeartbeatConfig, SourceConfig
from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.monitored import Monitored, MonitoredGroup

Parsed = AnySpec | MirrorError


@dataclass(slots=True)
class FlowSpecs:
    """The connectors of one flow. `problems`: of those whose settings cannot be used, why."""

    flow: str
    group: MonitoredGroup
    names: list[str] = field(default_factory=list)
    source: ConnectorSpec[SourceConfig] | None = None
    checkpoint: ConnectorSpec[CheckpointConfig] | None = None
    heartbeat: ConnectorSpec[HeartbeatConfig] | None = None
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def copies(self) -> bool:
        """Whether it is more than heartbeats, which dedicated mode writes for every pair."""
        return self.source is not None or self.checkpoint is not None or bool(self.problems)

    @property
    def aliases(self) -> tuple[str, str]:
        """Of its clusters."""
        source, _, target = self.flow.partition("->")
        return source, target


class SpecReader:
    """Of all groups of this process."""

    def __init__(self, monitored: Monitored) -> None:
        self._monitored = monitored
        self._lock = threading.Lock()
        self._parsed: dict[tuple[str, str], tuple[ConnectorProps, Parsed]] = {}

    def flows(self) -> Sequence[FlowSpecs]:
        """Every flow that copies something, by its name."""
        found: dict[str, FlowSpecs] = {}
        for group in self._monitored():
            for name, props in group.cluster.configs.snapshot().connectors.items():
                flow = flow_of(props)
                if flow:
                    specs = found.setdefault(flow, FlowSpecs(flow, group))
                    specs.names.append(name)
                    _place(specs, name, self._spec(group, name, props))
        return [found[flow] for flow in sorted(found) if found[flow].copies]

    def _spec(self, group: MonitoredGroup, name: str, props: ConnectorProps) -> Parsed:
        key = group.prefix, name
        with self._lock:
            known = self._parsed.get(key)
            if known is not None and known[0] == props:
                return known[1]
        parsed: Parsed
        try:
            parsed = parse_connector(props, group.cluster.file)
        except MirrorError as error:
            parsed = error
        with self._lock:
            self._parsed[key] = props, parsed
        return parsed


def flow_of(props: Mapping[str, str | None]) -> str:
    """`source->target`; "" for a connector that is none of ours."""
    source, target = props.get("source.cluster.alias"), props.get("target.cluster.alias")
    return f"{source or 'source'}->{target or 'target'}" if source or target else ""


def _place(specs: FlowSpecs, name: str, parsed: Parsed) -> None:
    if isinstance(parsed, MirrorError):
        specs.problems[name] = mask(str(parsed))
        return
    specs.source = specs.source or parsed.narrowed(SourceConfig)
    specs.checkpoint = specs.checkpoint or parsed.narrowed(CheckpointConfig)
    specs.heartbeat = specs.heartbeat or parsed.narrowed(HeartbeatConfig)
