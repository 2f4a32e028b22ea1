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
from sparkmirror.config.clients import BOOTSTRAP_SERVERS as SERVERS
from sparkmirror.config.config_def import Definition
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
    origins,
    pairs,
    plain,
    worker_settings,
)
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.files.providers import CONFIG_PROVIDERS, Provider, load_providers, resolve
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.keys.connector_keys import MIRROR_KEYS
from sparkmirror.config.keys.families import OF_WORKERS, explain_families
from sparkmirror.config.keys.not_yet import check_not_yet
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.config.mirror_configs import (
    SOURCE_ALIAS,
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
    NODE_REST_KEYS,
    SPARK,
)
from sparkmirror.config.security.allowed_access import ALLOWED_KEYS, AllowedAccess, allowed_access
from sparkmirror.config.worker.inter_worker import InterWorkerConfig
from sparkmirror.config.worker.rest_keys import REST_KEYS, RestConfig, rest_config
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.config.worker_config import WORKER_KEYS, WorkerConfig, parse_worker
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


@dataclass(frozen=True, slots=True)
class HeartbeatPair:
    """A pair of clusters that gets heartbeats, whether its flow copies or not."""

    name: FlowName
    worker: WorkerConfig
    heartbeat: HeartbeatConfig


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

    `rest` is None unless the nodes are to have a REST API.
    """

    path: Path
    clusters: tuple[str, ...]
    flows: tuple[FlowConfig, ...]
    heartbeat_pairs: tuple[HeartbeatPair, ...]
    pairs: tuple[PairConfig, ...]
    spark: dict[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()
    rest: RestConfig | None = None


@dataclass(frozen=True, slots=True)
class _File:
    """The file while it is being read: its text, the providers it names, and what was found."""

    props: Mapping[str, str]
    providers: Mapping[str, Provider]
    findings: Findings
    allowed: AllowedAccess


def load_mm2(path: Path, clusters: Sequence[str] = ()) -> MirrorMakerConfig:
    """Read `path`; with `clusters`, only the flows into one of them.

    Raises:
        ConfigErrors: everything that is wrong with the file.
    """
    return parse_mm2(load_properties(path), path, str(path), clusters)


def parse_mm2(
    props: Mapping[str, str], path: Path, where: str, clusters: Sequence[str] = ()
) -> MirrorMakerConfig:
    """The same of keys that need not be in a file; errors and warnings begin with `where`."""
    findings = Findings(where)
    providers = load_providers(props, findings)
    file = _File(props, providers, findings, _allowed(props, providers))
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
    heartbeat_pairs = tuple(_heartbeat_pair(file, flows, pair) for pair in beating)
    resolved = resolve(spark, file.providers, findings)
    rest = _rest(file)
    config = MirrorMakerConfig(
        path=path,
        clusters=aliases,
        flows=flows,
        heartbeat_pairs=heartbeat_pairs,
        pairs=_pairs(file, flows, heartbeat_pairs, resolved),
        spark=resolved,
        warnings=findings.warnings,
        rest=rest,
    )
    findings.raise_errors()
    return config


def _aliases(file: _File, wanted: Sequence[str]) -> tuple[str, ...]:
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


def _own_keys(file: _File) -> dict[str, str]:
    return {key: file.props[key] for key in MM2_KEYS.names if key in file.props}


def _allowed(props: Mapping[str, str], providers: Mapping[str, Provider]) -> AllowedAccess:
    """The file is its operator's: it is limited only if it says so itself."""
    own = {key: props[key] for key in ALLOWED_KEYS.names if key in props}
    # Errors in the values are found again, and reported, with the other keys of the file.
    values = ALLOWED_KEYS.parse(resolve(own, providers, unheard := Findings()), unheard)
    return allowed_access(values, default=None)


def _security(props: Mapping[str, str]) -> dict[str, str]:
    return {key: props[key] for key in SECURITY_KEYS.names if key in props}


def _flags(file: _File, aliases: Sequence[str]) -> dict[str, str]:
    """The keys that decide which flows there are, resolved and checked."""
    prefixes = ("", *(flow_prefix(flow) for flow in pairs(aliases)))
    names = {f"{prefix}{key}": key for prefix in prefixes for key in FLOW_FLAGS}
    given = {name: file.props[name] for name in names if name in file.props}
    flags = resolve(given, file.providers, file.findings)
    return {name: _flag(file, name, names[name], text) for name, text in flags.items()}


def _flag(file: _File, name: str, key: str, text: str) -> str:
    """An invalid value counts as the connectors' default, true: the file is rejected for it,
    together with all other errors of the flow.
    """
    own = MIRROR_KEYS[key]
    parsed = Definition(own).parse({own.name: text}, file.findings.within({own.name: name}))
    return str(parsed[own.name]).lower()


def _flow(file: _File, flow: FlowName) -> FlowConfig:
    worker = _worker(file, flow)
    return FlowConfig(
        name=flow,
        worker=parse_worker(worker, flow.target),
        source=parse_source(_connector(file, flow, "MirrorSourceConnector"), worker),
        checkpoint=parse_checkpoint(_connector(file, flow, "MirrorCheckpointConnector"), worker),
        heartbeat=parse_heartbeat(_connector(file, flow, HEARTBEAT), worker),
        worker_props=dict(worker.values),
        connector_props={
            name: plain(connector_settings(file.props, flow, name)) for name in CONNECTORS
        },
    )


def _heartbeat_pair(file: _File, flows: Sequence[FlowConfig], pair: FlowName) -> HeartbeatPair:
    for flow in flows:
        if flow.name == pair:
            return HeartbeatPair(pair, flow.worker, flow.heartbeat)
    # A pair that does not copy needs nothing of its source but the name: not its secrets either.
    worker, connector = _worker(file, pair), _connector(file, pair, HEARTBEAT, target_only=True)
    return HeartbeatPair(
        pair, parse_worker(worker, pair.target), parse_heartbeat(connector, worker)
    )


def _pairs(
    file: _File,
    flows: Sequence[FlowConfig],
    heartbeat_pairs: Sequence[HeartbeatPair],
    spark: Mapping[str, str],
) -> tuple[PairConfig, ...]:
    """Flows first, in the order of the file."""
    workers = {flow.name: flow.worker for flow in flows}
    copying = frozenset(workers)
    workers |= {pair.name: pair.worker for pair in heartbeat_pairs if pair.name not in copying}
    own = _told_apart(workers, file.findings)
    found = []
    for name, worker in own.items():
        is_copying = name in copying
        connectors = {
            each: plain(_expanded(file, name, each, target_only=not is_copying))
            for each in (CONNECTORS if is_copying else (HEARTBEAT,))
        }
        found.append(PairConfig(name, _worker_file(file, name, worker, spark), connectors))
    return tuple(found)


def _worker_file(
    file: _File, name: FlowName, worker: WorkerConfig, spark: Mapping[str, str]
) -> WorkerFile:
    """The pair's worker as a file of its own would describe it."""
    settings = _worker(file, name)
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
        names={key: origin.key for key, origin in settings.findings.origins.items()},
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
        found[name] = replace(worker, **changes)
        if changes:
            findings.warn(
                f"{name}: another pair into '{name.target}' has the same "
                f"{_join_names(changes)}; this one uses {', '.join(changes.values())}"
            )
    return found


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(name.replace("_", ".") for name in names)


def _rest(file: _File) -> RestConfig | None:
    """The REST API of a node; None unless the file asks for one."""
    own = {
        key: value
        for key, value in file.props.items()
        if key in NODE_REST_KEYS or key.startswith((HTTPS_PREFIX, "ssl."))
    }
    settings = Settings(resolve(own, file.providers, file.findings), file.findings)
    values = REST_KEYS.parse(*settings)
    flag = MM2_KEYS.parse(resolve(_own_keys(file), file.providers, unheard := Findings()), unheard)[
        INTERNAL_REST
    ]
    if flag:
        return rest_config(values, settings)
    for key in own:
        if not key.startswith("ssl."):  # of the clusters' connections, too
            file.findings.warn_key(key, f"has no effect without {INTERNAL_REST}=true")
    return None


def _worker(file: _File, flow: FlowName) -> Settings:
    settings = _settings(file, worker_settings(file.props, flow), {SERVERS: flow.target})
    explain_families(settings, OF_WORKERS, WORKER_KEYS)
    return settings


def _connector(file: _File, flow: FlowName, name: str, *, target_only: bool = False) -> Settings:
    servers = {f"source.cluster.{SERVERS}": flow.source, f"target.cluster.{SERVERS}": flow.target}
    return _settings(file, _expanded(file, flow, name, target_only=target_only), servers)


def _expanded(file: _File, flow: FlowName, name: str, *, target_only: bool) -> Expanded:
    # A provider of the top level is not the connector's; one of the flow would do nothing.
    expanded = {
        key: setting
        for key, setting in connector_settings(file.props, flow, name).items()
        if key != CONFIG_PROVIDERS or setting.origin != CONFIG_PROVIDERS
    }
    if target_only:
        expanded = {
            key: setting
            for key, setting in expanded.items()
            if key == SOURCE_ALIAS or not key.startswith("source.")
        }
    return expanded


def _settings(file: _File, expanded: Expanded, servers: Mapping[str, str]) -> Settings:
    """Resolved values, with errors reported under the names of the file."""
    findings = file.findings.renamed(origins(expanded, servers))
    settings = Settings(resolve(plain(expanded), file.providers, findings), findings)
    file.allowed.check(settings)
    return settings


def _no_flows(aliases: Sequence[str], wanted: Sequence[str], findings: Findings) -> None:
    source, target = (*aliases, "A", "B")[:2]
    into = f" into {', '.join(wanted)}" if wanted else ""
    findings.error(
        "",
        None,
        f"No source->target replication flows{into}.",
        f"enable one, for example {source}->{target}.enabled=true",
    )
