"""The connectors whose rules are explained: of an mm2 file, of one connector's file, of a worker.

Runs on: any machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from sparkmirror.config.clients import BOOTSTRAP_SERVERS
from sparkmirror.config.connector_spec import C_co, ConnectorConfig, parse_connector
from sparkmirror.config.expansion import CLUSTERS, flow_prefix
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.keys.plugins import CONNECTOR_CLASS
from sparkmirror.config.mirror_configs import CheckpointConfig, SourceConfig
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.worker.worker_file import load_worker
from sparkmirror.errors import ConfigError, MirrorError
from sparkmirror.mirror.explaining.explanation import Spelling
from sparkmirror.tools.check.checked_file import assumed_worker, load_json_settings
from sparkmirror.tools.deploy.rest_client import ConnectClient
from sparkmirror.types import FlowName

PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
NOWHERE = "unresolved.invalid:9092"
REMEDY = "name an mm2 file, or the settings of a connector"


@dataclass(frozen=True, slots=True)
class ExplainedConnector(Generic[C_co]):
    """One connector, and how the user writes its keys.

    `unresolved` are keys whose placeholders only its worker can resolve: their values are missing.
    """

    flow: FlowName
    config: C_co
    spelling: Spelling
    unresolved: tuple[str, ...] = ()


AnyExplained = ExplainedConnector[ConnectorConfig]


def connectors_of_file(path: Path, worker: Path | None = None) -> list[AnyExplained]:
    """All source and checkpoint connectors that the file describes.

    Raises:
        ConfigErrors, ConfigError: what is wrong with it.
    """
    is_json = path.suffix == ".json"
    props = load_json_settings(path) if is_json else load_properties(path)
    if CONNECTOR_CLASS in props:
        own = load_worker(worker) if worker else assumed_worker(props)
        spec = parse_connector(props, own)
        return [ExplainedConnector(spec.flow, spec.config, Spelling(is_json=is_json))]
    if CLUSTERS not in props:
        reason = "has neither clusters nor connector.class: it mirrors nothing"
        raise ConfigError("", None, reason, REMEDY, str(path))
    return _of_mm2(path)


def _of_mm2(path: Path) -> list[AnyExplained]:
    file = load_mm2(path)
    pairs = {pair.name: pair for pair in file.pairs}
    found: list[AnyExplained] = []
    for flow in file.flows:
        names = pairs[flow.name].worker.connector_names
        for config in (flow.source, flow.checkpoint):
            spelled = _only_set(names.get(config.name, {}), config.settings)
            spelling = Spelling(flow_prefix(flow.name), spelled)
            found.append(ExplainedConnector(flow.name, config, spelling))
    return found


def _only_set(names: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    return {key: name for key, name in names.items() if key in settings}


def connector_of_worker(client: ConnectClient, name: str) -> AnyExplained:
    """The connector `name` that runs on a worker, ours or a genuine one.

    Raises:
        MirrorError: the worker has none of this name, or cannot be asked.
        ConfigErrors: its settings cannot be used.
    """
    props = client.config(name)
    if props is None:
        others = ", ".join(sorted(client.configs())) or "none"
        raise MirrorError(f"the worker at {client.url} has no connector '{name}'; it has: {others}")
    hidden = tuple(key for key, value in props.items() if PLACEHOLDER.search(value or ""))
    # The rules need no address, but the parser does.
    servers = {key: NOWHERE for key in hidden if key.endswith(BOOTSTRAP_SERVERS)}
    known = {key: value for key, value in props.items() if key not in hidden} | servers
    spec = parse_connector(known, assumed_worker(known))
    return ExplainedConnector(spec.flow, spec.config, Spelling(is_json=True), hidden)


def sources(connectors: list[AnyExplained]) -> list[ExplainedConnector[SourceConfig]]:
    """Those that copy topics. Raises ConfigError if there are none."""
    found = [
        ExplainedConnector(each.flow, each.config, each.spelling, each.unresolved)
        for each in connectors
        if isinstance(each.config, SourceConfig)
    ]
    if not found:
        reason = "this connector copies no topics"
        raise ConfigError(CONNECTOR_CLASS, None, reason, "name a MirrorSourceConnector")
    return found


def checkpointers(connectors: list[AnyExplained]) -> list[ExplainedConnector[CheckpointConfig]]:
    """Those that follow groups. Raises ConfigError if there are none."""
    found = [
        ExplainedConnector(each.flow, each.config, each.spelling, each.unresolved)
        for each in connectors
        if isinstance(each.config, CheckpointConfig)
    ]
    if not found:
        reason = "this connector follows no groups"
        raise ConfigError(CONNECTOR_CLASS, None, reason, "name a MirrorCheckpointConnector")
    return found
