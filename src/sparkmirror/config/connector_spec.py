"""The settings of one connector, as they are sent to a worker: resolved, checked, typed.

Records are written with the worker's producer, which a connector may override as far as the
worker's policy allows: see `Elsewhere` for what happens when that is not the target cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar, cast

from sparkmirror.config.checks.connector_advice import advise_connector
from sparkmirror.config.checks.plugin_modules import check_modules
from sparkmirror.config.clients import BOOTSTRAP_SERVERS, OVERRIDE, with_prefix
from sparkmirror.config.files.providers import resolve
from sparkmirror.config.findings import Findings, Origin, Settings
from sparkmirror.config.keys.plugins import require_class
from sparkmirror.config.mirror_configs import (
    CheckpointConfig,
    HeartbeatConfig,
    SourceConfig,
    parse_checkpoint,
    parse_heartbeat,
    parse_source,
)
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.types import FlowName

ConnectorKind = Literal["source", "checkpoint", "heartbeat"]
ConnectorConfig = SourceConfig | CheckpointConfig | HeartbeatConfig
C = TypeVar("C", bound=ConnectorConfig)
C_co = TypeVar("C_co", bound=ConnectorConfig, covariant=True)
NULL_VALUE = "Null value can not be supplied as the configuration value."
NAME = "name"
PRODUCER_OVERRIDE = f"producer.{OVERRIDE}"
KINDS: Mapping[str, ConnectorKind] = {
    "MirrorSourceConnector": "source",
    "MirrorCheckpointConnector": "checkpoint",
    "MirrorHeartbeatConnector": "heartbeat",
}
_KIND_OF: Mapping[type[ConnectorConfig], ConnectorKind] = {
    SourceConfig: "source",
    CheckpointConfig: "checkpoint",
    HeartbeatConfig: "heartbeat",
}
_PARSERS: Mapping[ConnectorKind, Callable[[Settings, Settings], ConnectorConfig]] = {
    "source": parse_source,
    "checkpoint": parse_checkpoint,
    "heartbeat": parse_heartbeat,
}


@dataclass(frozen=True, slots=True)
class ConnectorSpec(Generic[C_co]):
    """One connector, typed, with its flow and the worker that runs it.

    `worker_props` are resolved text, for tasks that parse them again. `elsewhere` is not empty when
    records do not go to the target cluster: it says where they go and why.
    """

    flow: FlowName
    config: C_co
    worker: WorkerConfig
    worker_props: Mapping[str, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    elsewhere: str = ""

    @property
    def name(self) -> str:
        """Of the connector."""
        return self.config.name

    @property
    def kind(self) -> ConnectorKind:
        """Which of the three it is."""
        config: ConnectorConfig = self.config
        return _KIND_OF[type(config)]

    def narrowed(self, kind: type[C]) -> ConnectorSpec[C] | None:
        """The same if it is for a connector of this kind."""
        return cast("ConnectorSpec[C]", self) if isinstance(self.config, kind) else None


AnySpec = ConnectorSpec[ConnectorConfig]


def parse_connector(props: Mapping[str, str | None], worker: WorkerFile) -> AnySpec:
    """The connector with the settings `props`, run by `worker`.

    Raises:
        ConfigErrors: everything that is wrong with the settings.
        UnusableConnector: they do not name a usable connector class.
    """
    findings = Findings(f"connector {props.get(NAME)}")
    connector = collect_connector(props, worker, findings)
    findings.raise_errors()
    return connector


def collect_connector(
    props: Mapping[str, str | None], worker: WorkerFile, findings: Findings
) -> AnySpec:
    """The same; what is wrong goes to the findings. Raises UnusableConnector."""
    kind = KINDS[require_class(props).rpartition(".")[2]]
    connector = _resolved(props, worker, findings)
    _check_overrides(connector, worker)
    worker.allowed.check(connector)
    check_modules(connector, worker.plugin_modules)
    _advise(connector)
    config = _PARSERS[kind](connector, _workers_view(worker, findings))
    elsewhere = _elsewhere(config)
    if elsewhere:
        findings.warn(elsewhere)
    return ConnectorSpec(
        flow=FlowName(config.source_alias, config.target_alias),
        config=config,
        worker=worker.worker,
        worker_props=worker.props,
        warnings=_news(findings, worker),
        elsewhere=elsewhere,
    )


def _resolved(props: Mapping[str, str | None], worker: WorkerFile, findings: Findings) -> Settings:
    """Values without placeholders; messages show the placeholders."""
    given = {key: value for key, value in props.items() if value is not None}
    for key in props.keys() - given.keys():
        findings.error(key, None, NULL_VALUE, "remove the key")
    names = worker.connector_names.get(given.get(NAME, ""), {})
    origins = {key: Origin(name) for key, name in names.items()}
    origins |= {key: Origin(names.get(key, key), value) for key, value in given.items()}
    named = findings.renamed(origins)
    return Settings(resolve(given, worker.providers, named), named)


def _workers_view(worker: WorkerFile, findings: Findings) -> Settings:
    names = worker.names
    origins = {key: Origin(names.get(key, key), value) for key, value in worker.raw_props.items()}
    return Settings(worker.props, findings.renamed(origins))


def _check_overrides(connector: Settings, worker: WorkerFile) -> None:
    for name, key in with_prefix(connector.values, PRODUCER_OVERRIDE).items():
        if not worker.override.allows(name):
            connector.findings.error(
                key,
                connector.values[key],
                worker.override.refusal(name),
                "remove it, or change connector.client.config.override.policy of the worker",
            )


def _advise(connector: Settings) -> None:
    """Warn of keys that do nothing."""
    for advice in advise_connector(connector.values):
        connector.findings.warn_key(advice.key, advice.text)


def _elsewhere(config: ConnectorConfig) -> str:
    """Why records go to another cluster than the target; "" when they do not.

    Addresses are compared as text: two names of one broker look like two clusters.
    """
    written = set(config.producer.client.bootstrap_servers)
    target = set(config.target_client.bootstrap_servers)
    if not written or not target or written & target:
        return ""
    return (
        f"records go to {_join(written)}, not to target.cluster.{BOOTSTRAP_SERVERS} "
        f"{_join(target)}: Kafka Connect writes with the worker's own producer; to write to the "
        f"target, set {PRODUCER_OVERRIDE}{BOOTSTRAP_SERVERS}={_join(target)}"
    )


def _join(servers: set[str]) -> str:
    return ",".join(sorted(servers))


def _news(findings: Findings, worker: WorkerFile) -> tuple[str, ...]:
    """Warnings except those that the worker's file has caused already."""
    known = {text.removeprefix(f"{worker.path}: ") for text in worker.warnings}
    prefix = f"{findings.where}: "
    return tuple(text for text in findings.warnings if text.removeprefix(prefix) not in known)
