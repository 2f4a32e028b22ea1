"""Loads an mm2 file: the clusters, and for each flow the settings of its worker and connectors.

Everything that is wrong with the file is raised at once, under the names the file uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sparkmirror.config.checks.advice import advise
from sparkmirror.config.checks.loops import warn_of_loops
from sparkmirror.config.checks.override_policy import OverridePolicy
from sparkmirror.config.config_def import Definition
from sparkmirror.config.connector_spec import C, ConnectorSpec
from sparkmirror.config.expansion import (
    CLUSTERS,
    CONNECTORS,
    EMIT_HEARTBEATS,
    ENABLED,
    Expanded,
    connector_settings,
    copies,
    emits_heartbeats,
    flow_prefix,
    pairs,
    plain,
    worker_settings,
)
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.files.providers import Provider, load_providers, resolve
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.keys.connector_keys import MIRROR_KEYS
from sparkmirror.config.keys.not_yet import check_not_yet
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.config.mirror_configs import (
    CheckpointConfig,
    HeartbeatConfig,
    SourceConfig,
    parse_checkpoint,
    parse_heartbeat,
    parse_source,
)
from sparkmirror.config.mm2_keys import (
    HTTPS_PREFIX,
    INTERNAL_REST,
    MM2_KEYS,
    NODE_METRICS_KEYS,
    NODE_REST_KEYS,
    SPARK,
)
from sparkmirror.config.mm2_sections import (
    FileContents,
    connector_names,
    connector_of,
    expanded_connector,
    origin_names,
    worker_of,
)
from sparkmirror.config.security.allowed_access import ALLOWED_KEYS, AllowedAccess, allowed_access
from sparkmirror.config.worker.inter_worker import InterWorkerConfig
from sparkmirror.config.worker.metrics_keys import METRICS_KEYS, MetricsConfig, metrics_config
from sparkmirror.config.worker.rest_keys import REST_KEYS, RestConfig, rest_config
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.config.worker_config import WorkerConfig, parse_worker
from sparkmirror.types import FlowName

HEARTBEAT = "MirrorHeartbeatConnector"
FLOW_FLAGS = (ENABLED, EMIT_HEARTBEATS)


@dataclass(frozen=True, slots=True)
class FlowConfig:
    """One flow that copies.

    `worker_props` are resolved, `connector_props` are not: as MirrorMaker 2 writes them to its
    config topic. `worker` and the three connectors are the typed, resolved forms.
    """

    name: FlowName
    worker: WorkerConfig
    source: SourceConfig
    checkpoint: CheckpointConfig
    heartbeat: HeartbeatConfig
    worker_props: dict[str, str] = field(repr=False)
    connector_props: dict[str, dict[str, str]] = field(repr=False)

    def spec(self, config: C) -> ConnectorSpec[C]:
        """For one of its connectors."""
        return ConnectorSpec(self.name, config, self.worker, self.worker_props)


HeartbeatSpec = ConnectorSpec[HeartbeatConfig]


@dataclass(frozen=True, slots=True)
class PairConfig:
    """A pair of clusters: the Connect worker that MirrorMaker 2 runs for it, and its connectors.

    `connectors` are the settings by connector name, with placeholders: as they go to the config
    topic. A pair that does not copy has a heartbeat connector only.
    """

    name: FlowName
    worker: WorkerFile
    connectors: Mapping[str, Mapping[str, str]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class MirrorMakerConfig:
    """A whole mm2 file. `spark` has the settings that go to Spark, by their full names.

    `heartbeats` are for all pairs of clusters that get some, whether the flow copies or not. `rest`
    is None unless the nodes are to have a REST API.
    """

    path: Path
    clusters: tuple[str, ...]
    flows: tuple[FlowConfig, ...]
    heartbeats: tuple[HeartbeatSpec, ...]
    pairs: tuple[PairConfig, ...]
    spark: dict[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()
    rest: RestConfig | None = None
    metrics: MetricsConfig = field(default_factory=MetricsConfig)


def load_mm2(path: Path, clusters: Sequence[str] = ()) -> MirrorMakerConfig:
    """Read `path`; with `clusters`, only the flows into one of them.

    Raises:
        ConfigErrors: everything that is wrong with the file.
    """
    return parse_mm2(load_properties(path), path, str(path), clusters)


def parse_mm2(
    props: Mapping[str, str],
    path: Path,
    where: str,
    clusters: Sequence[str] = (),
    findings: Findings | None = None,
) -> MirrorMakerConfig:
    """Parse settings that need not be in a file; errors and warnings begin with `where`.

    They are also in `findings`, if given.
    """
    findings = Findings(where) if findings is None else findings
    providers = load_providers(props, findings)
    file = FileContents(props, providers, findings, _allowed(props, providers))
    aliases = _aliases(file, clusters)
    flags = _flags(file, aliases)
    chosen = [pair for pair in pairs(aliases) if not clusters or pair.target in clusters]
    names = [flow for flow in chosen if copies(flags, flow)]
    flows = tuple(_flow(file, name) for name in names)
    beating = [pair for pair in chosen if emits_heartbeats(flags, pair)]
    advise(props, aliases, names, findings, beating)
    warn_of_loops((flow.source for flow in flows), findings)
    if not flows and aliases:
        _no_flows(aliases, clusters, findings)
    spark = {key: value for key, value in props.items() if key.startswith(f"{SPARK}.")}
    heartbeats = tuple(_heartbeat(file, flows, pair) for pair in beating)
    resolved = resolve(spark, file.providers, findings)
    metrics = _metrics(file)
    rest = _rest(file, metrics)
    config = MirrorMakerConfig(
        path=path,
        clusters=aliases,
        flows=flows,
        heartbeats=heartbeats,
        pairs=_pairs(file, flows, heartbeats, resolved),
        spark=resolved,
        warnings=findings.warnings,
        rest=rest,
        metrics=metrics,
    )
    findings.raise_errors()
    return config


def _aliases(file: FileContents, wanted: Sequence[str]) -> tuple[str, ...]:
    """The clusters of the file, once its own keys are checked."""
    values = MM2_KEYS.parse(resolve(_own_keys(file), file.providers, file.findings), file.findings)
    check_not_yet(values, file.findings)
    SECURITY_KEYS.parse(
        resolve(_security(file.props), file.providers, file.findings), file.findings
    )
    aliases: tuple[str, ...] = values[CLUSTERS] or ()
    if SPARK in aliases:
        reason = f"'{SPARK}' cannot be an alias: keys that begin with it are Spark's settings"
        file.findings.error(CLUSTERS, file.props[CLUSTERS], reason, "use another alias")
    for alias in wanted:
        if alias not in aliases:
            reason = f"no cluster '{alias}' in the file"
            file.findings.error("--clusters", alias, reason, f"use one of {', '.join(aliases)}")
    return aliases


def _own_keys(file: FileContents) -> dict[str, str]:
    return {key: file.props[key] for key in MM2_KEYS.names if key in file.props}


def _allowed(props: Mapping[str, str], providers: Mapping[str, Provider]) -> AllowedAccess:
    """The file is its operator's: it is limited only if it says so itself."""
    own = {key: props[key] for key in ALLOWED_KEYS.names if key in props}
    # Errors in the values are found again, and reported, with the other keys of the file.
    values = ALLOWED_KEYS.parse(resolve(own, providers, ignored := Findings()), ignored)
    return allowed_access(values, default=None)


def _security(props: Mapping[str, str]) -> dict[str, str]:
    return {key: props[key] for key in SECURITY_KEYS.names if key in props}


def _flags(file: FileContents, aliases: Sequence[str]) -> dict[str, str]:
    """The keys that decide which flows there are, resolved and checked."""
    prefixes = ("", *(flow_prefix(flow) for flow in pairs(aliases)))
    names = {f"{prefix}{key}": key for prefix in prefixes for key in FLOW_FLAGS}
    given = {name: file.props[name] for name in names if name in file.props}
    flags = resolve(given, file.providers, file.findings)
    return {name: _flag(file, name, names[name], text) for name, text in flags.items()}


def _flag(file: FileContents, name: str, key: str, text: str) -> str:
    """An invalid value counts as the connectors' default, true: the file is rejected for it,
    together with all other errors of the flow.
    """
    own = MIRROR_KEYS[key]
    parsed = Definition(own).parse({own.name: text}, file.findings.within({own.name: name}))
    return str(parsed[own.name]).lower()


def _flow(file: FileContents, flow: FlowName) -> FlowConfig:
    worker = worker_of(file, flow)
    return FlowConfig(
        name=flow,
        worker=parse_worker(worker, flow.target),
        source=parse_source(connector_of(file, flow, "MirrorSourceConnector"), worker),
        checkpoint=parse_checkpoint(connector_of(file, flow, "MirrorCheckpointConnector"), worker),
        heartbeat=parse_heartbeat(connector_of(file, flow, HEARTBEAT), worker),
        worker_props=dict(worker.values),
        connector_props={
            name: plain(connector_settings(file.props, flow, name)) for name in CONNECTORS
        },
    )


def _heartbeat(file: FileContents, flows: Sequence[FlowConfig], pair: FlowName) -> HeartbeatSpec:
    for flow in flows:
        if flow.name == pair:
            return flow.spec(flow.heartbeat)
    # A pair that does not copy needs nothing of its source but the name: not its secrets either.
    worker, connector = worker_of(file, pair), connector_of(file, pair, HEARTBEAT, target_only=True)
    return ConnectorSpec(
        pair,
        parse_heartbeat(connector, worker),
        parse_worker(worker, pair.target),
        dict(worker.values),
    )


def _pairs(
    file: FileContents,
    flows: Sequence[FlowConfig],
    heartbeats: Sequence[HeartbeatSpec],
    spark: Mapping[str, str],
) -> tuple[PairConfig, ...]:
    """Flows first, in the order of the file."""
    workers = {flow.name: flow.worker for flow in flows}
    copying = frozenset(workers)
    workers |= {each.flow: each.worker for each in heartbeats if each.flow not in copying}
    own = _told_apart(workers, file.findings)
    found = []
    for name, worker in own.items():
        is_copying = name in copying
        expanded = {
            each: expanded_connector(file, name, each, target_only=not is_copying)
            for each in (CONNECTORS if is_copying else (HEARTBEAT,))
        }
        worker_file = _worker_file(file, name, worker, expanded, spark)
        connectors = {each: plain(settings) for each, settings in expanded.items()}
        found.append(PairConfig(name, worker_file, connectors))
    return tuple(found)


def _worker_file(
    file: FileContents,
    name: FlowName,
    worker: WorkerConfig,
    connectors: Mapping[str, Expanded],
    spark: Mapping[str, str],
) -> WorkerFile:
    """The pair's worker as a file of its own would describe it."""
    settings = worker_of(file, name)
    return WorkerFile(
        path=Path(file.findings.where),
        worker=worker,
        rest=RestConfig(()),
        inter_worker=InterWorkerConfig(),
        override=OverridePolicy(),
        allowed=file.allowed,
        plugin_modules=None,
        topic_tracking=True,
        topic_tracking_reset=True,
        props=settings.values,
        raw_props=plain(worker_settings(file.props, name)),
        providers=file.providers,
        spark=spark,
        names=origin_names(settings.findings.origins),
        connector_names={
            each: connector_names(name, expanded) for each, expanded in connectors.items()
        },
    )


def _told_apart(
    workers: Mapping[FlowName, WorkerConfig], findings: Findings
) -> dict[FlowName, WorkerConfig]:
    """Each pair has a group and topics of its own, also where the file names one for several.

    MirrorMaker 2 mixes up their connectors then, which have the same names.
    """
    found = {}
    for name, worker in workers.items():
        same = {other: each for other, each in workers.items() if other.target == name.target}
        changes: dict[str, Any] = {
            key: f"{getattr(worker, key)}.{name.source}"
            for key in ("group_id", "config_storage_topic", "status_storage_topic")
            if sum(getattr(each, key) == getattr(worker, key) for each in same.values()) > 1
        }
        found[name] = replace(worker, **changes) if changes else worker
        if changes:
            findings.warn(
                f"{name}: another pair into '{name.target}' has the same "
                f"{_join_names(changes)}; this one uses {', '.join(changes.values())}"
            )
    return found


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(name.replace("_", ".") for name in names)


def _metrics(file: FileContents) -> MetricsConfig:
    """Where this node's metrics go."""
    own = {key: file.props[key] for key in NODE_METRICS_KEYS if key in file.props}
    resolved = resolve(own, file.providers, file.findings)
    return metrics_config(METRICS_KEYS.parse(resolved, file.findings))


def _rest(file: FileContents, metrics: MetricsConfig) -> RestConfig | None:
    """The REST API of a node; None unless the file asks for one."""
    own = {
        key: value
        for key, value in file.props.items()
        if key in NODE_REST_KEYS or key.startswith((HTTPS_PREFIX, "ssl."))
    }
    settings = Settings(resolve(own, file.providers, file.findings), file.findings)
    values = REST_KEYS.parse(*settings)
    flag = MM2_KEYS.parse(resolve(_own_keys(file), file.providers, ignored := Findings()), ignored)[
        INTERNAL_REST
    ]
    if flag:
        return rest_config(values, settings, metrics.listeners)
    if any(listener.is_https for listener in metrics.listeners):
        key = NODE_METRICS_KEYS[0]
        reason = "https needs the certificates of the REST API, which is not enabled"
        file.findings.error(key, file.props[key], reason, f"set {INTERNAL_REST}=true, or use http")
    for key in own:
        if not key.startswith("ssl."):  # of the clusters' connections, too
            file.findings.warn_key(key, f"has no effect without {INTERNAL_REST}=true")
    return None


def _no_flows(aliases: Sequence[str], wanted: Sequence[str], findings: Findings) -> None:
    source, target = (*aliases, "A", "B")[:2]
    into = f" into {', '.join(wanted)}" if wanted else ""
    findings.error(
        "",
        None,
        f"No source->target replication flows{into}.",
        f"enable one, for example {source}->{target}.enabled=true",
    )
