"""Finds, before a connector starts, mistakes that no single setting shows.

Runs on: worker, and wherever `sparkmirror check` is called. Two mistakes: internal topics with
more replicas than their cluster has brokers, and a source and a checkpoint connector of one flow
whose policies name remote topics differently.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.connector_spec import ConnectorConfig, parse_connector
from sparkmirror.config.masking import provisional
from sparkmirror.config.mirror_configs import CheckpointConfig, SourceConfig
from sparkmirror.config.validation.connector_validation import add_errors, validate_connector
from sparkmirror.config.validation.definitions import ConfigInfo
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.connect.source.source_topics import OFFSET_STORAGE_REPLICAS, OFFSET_SYNCS_REPLICAS
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.permissions import NO_TRACE
from sparkmirror.mirror.policy import flow_offset_syncs_topic, flow_policy
from sparkmirror.mirror.translation.offset_map_chunks import offset_map_topic
from sparkmirror.wire.admin.admin import Admin
from sparkmirror.wire.client.reachability import ask_for_brokers

log = logging.getLogger(__name__)

# Prefix of problems that are only warnings; `deploy` does not reject them.
WARNING = "warning: "
POLICY_KEY = "replication.policy.class"
ADMIN_TIMEOUT_MS = 5_000
# An example topic name, to compare what two policies make of it.
ANY_TOPIC = "orders"


class PlannedTopic(NamedTuple):
    """An internal topic, which is created if it is missing. Brokers may create remote topics.

    `setting` gave its replication factor. `is_strict`: the topic is needed, and never created with
    fewer replicas. `without`: what is lost without the topic, which is optional.
    """

    client: ClientConfig
    name: str
    replication_factor: int
    setting: str
    is_strict: bool = False
    without: str = ""


class Facts(NamedTuple):
    """A cluster: its number of brokers, and the topics that it lists for us."""

    brokers: int
    topics: frozenset[str]


def planned_topics(config: ConnectorConfig, worker: WorkerConfig) -> list[PlannedTopic]:
    """All topics that the connector creates if they are missing."""
    policy, target = flow_policy(config), config.target_client
    stored = worker.offset_storage_replication_factor
    offsets = PlannedTopic(
        worker.client, worker.offset_storage_topic, stored, OFFSET_STORAGE_REPLICAS, is_strict=True
    )
    own = [offsets] if offsets.name else []
    if isinstance(config, SourceConfig):
        if config.emit_offset_syncs_enabled:
            is_source = config.offset_syncs_location == "source"
            syncs, factor = (
                flow_offset_syncs_topic(policy, config),
                config.offset_syncs_replication_factor,
            )
            place = config.source_client if is_source else target
            own.append(_planned(config, place, syncs, factor, OFFSET_SYNCS_REPLICAS))
            mapped = offset_map_topic(config.source_alias)
            own.append(PlannedTopic(target, mapped, stored, OFFSET_STORAGE_REPLICAS))
        return own if config.enabled else []
    if isinstance(config, CheckpointConfig):
        name = policy.checkpoints_topic(config.source_alias)
        factor = config.checkpoints_topic_replication_factor
        own.append(_planned(config, target, name, factor, "checkpoints.topic.replication.factor"))
        return own if config.is_on else []
    # Heartbeats need no topic for positions: nothing reads theirs.
    own = [topic._replace(is_strict=False, without=NO_TRACE) for topic in own]
    name, factor = policy.heartbeats_topic(), config.heartbeats_topic_replication_factor
    own.append(_planned(config, target, name, factor, "heartbeats.topic.replication.factor"))
    return own if config.emit_heartbeats_enabled else []


def _planned(
    config: ConnectorConfig, client: ClientConfig, name: str, factor: int, setting: str
) -> PlannedTopic:
    """A factor that the user set is strict; the default is lowered on a smaller cluster."""
    return PlannedTopic(client, name, factor, setting, is_strict=setting in config.settings)


def replica_problems(
    planned: Iterable[PlannedTopic], facts_of: Callable[[ClientConfig], Facts | None]
) -> list[tuple[tuple[str, str], str]]:
    """By setting and topic: why it cannot be created. Skips clusters that do not respond."""
    found: dict[tuple[str, str], str] = {}
    for topic in planned:
        facts = facts_of(topic.client)
        is_possible = facts is None or topic.replication_factor <= facts.brokers
        if is_possible or facts is None or topic.name in facts.topics:
            continue
        brokers = "1 broker" if facts.brokers == 1 else f"{facts.brokers} brokers"
        found[topic.setting, topic.name] = (
            f"{'' if topic.is_strict else WARNING}topic '{topic.name}' {_will(topic, facts)} "
            f"{topic.replication_factor} replicas: cluster '{topic.client.alias}' has {brokers}; "
            f"set {topic.setting} to at most {facts.brokers}"
            f"{'; ' * bool(topic.without)}{topic.without}"
        )
    return list(found.items())


def _will(topic: PlannedTopic, facts: Facts) -> str:
    is_created = not topic.is_strict and not topic.without
    return f"gets {facts.brokers} instead of" if is_created else "cannot be created with"


def policy_problem(config: ConnectorConfig, others: Iterable[ConnectorConfig]) -> str:
    """How a source or checkpoint connector differs from its partners of the same flow.

    One partner that agrees is enough: a flow may have several source connectors.
    """
    partners = [other for other in others if _are_partners(config, other)]
    if not partners or any(_remote(other) == _remote(config) for other in partners):
        return ""
    other = partners[0]
    return (
        f"with it topic '{ANY_TOPIC}' is '{_remote(config)}' on '{config.target_alias}', but "
        f"'{_remote(other)}' for connector {other.name} of the same flow: checkpoints would name "
        "topics that do not exist; give both the same replication.policy.class and separator"
    )


def _are_partners(one: ConnectorConfig, other: ConnectorConfig) -> bool:
    kinds = {type(one), type(other)}
    return kinds == {SourceConfig, CheckpointConfig} and _flow(one) == _flow(other)


def _flow(config: ConnectorConfig) -> tuple[str, str]:
    return config.source_alias, config.target_alias


def _remote(config: ConnectorConfig) -> str:
    return flow_policy(config).format_remote_topic(config.source_alias, ANY_TOPIC)


class ConnectorsSnapshot(Protocol):
    """The connectors in the config topic."""

    @property
    def connectors(self) -> Mapping[str, ConnectorProps]: ...


class ConnectorSource(Protocol):
    """Knows the connectors of the worker."""

    def snapshot(self) -> ConnectorsSnapshot: ...


def validate_on_worker(
    plugin: str | None, config: ConnectorProps, worker: WorkerFile, configs: ConnectorSource
) -> ConfigInfo:
    """Validate each value; if all are valid, check them against the worker's cluster too.

    As with MirrorMaker 2, a connector is created even if only the second check fails.

    Raises:
        WrongPlugin, UnusableConnector: as `validate_connector` does.
    """
    infos = validate_connector(plugin, config, worker)
    if not infos["error_count"]:
        with provisional() as hide:
            found = check_on_worker(config, worker, configs.snapshot().connectors)
            add_errors(infos, {key: hide(text) for key, text in found.items()})
    return infos


def check_on_worker(
    config: ConnectorProps, worker: WorkerFile, running: Mapping[str, ConnectorProps]
) -> dict[str, str]:
    """By key: conflicts of valid settings with the cluster and the worker's other connectors.

    Contacts only the worker's own cluster: users who may validate settings must not be able to make
    the worker connect to arbitrary addresses.
    """
    try:
        parsed = parse_connector(config, worker)
    except MirrorError as error:  # reported elsewhere
        log.debug("not checked further: %s", error)
        return {}
    own = worker.worker.client

    def facts_of(client: ClientConfig) -> Facts | None:
        return _look_at(own) if client.is_same_cluster(own) else None

    replicas = replica_problems(planned_topics(parsed.config, parsed.worker), facts_of)
    found = {setting: text for (setting, _), text in replicas}
    others = {name: each for name, each in running.items() if name != parsed.name}
    if problem := policy_problem(parsed.config, _parsed(others, worker)):
        found[POLICY_KEY] = f"{WARNING}{problem}"
    return found


class Partners:
    """Compares a running connector with the worker's others, including those created later.

    Topics that an earlier flow left on the target may have the names that a checkpoint connector
    expects. Then only the source connector's settings show that records go elsewhere.
    """

    def __init__(self, configs: ConnectorSource, worker: WorkerFile) -> None:
        self._configs = configs
        self._worker = worker
        self._seen: Mapping[str, ConnectorProps] = {}
        self._parsed: tuple[ConnectorConfig, ...] = ()

    def problem_of(self, config: ConnectorConfig) -> str:
        """How the connector differs from its partner; from any thread."""
        connectors = self._configs.snapshot().connectors
        if connectors != self._seen:
            with provisional():
                self._parsed = tuple(_parsed(connectors, self._worker))
            self._seen = dict(connectors)
        return policy_problem(config, self._parsed)


def _parsed(
    connectors: Mapping[str, ConnectorProps], worker: WorkerFile
) -> Iterable[ConnectorConfig]:
    for settings in connectors.values():
        try:
            yield parse_connector(settings, worker).config
        except MirrorError as error:  # a connector that cannot start has no partner
            log.debug("not compared: %s", error)


def _look_at(client: ClientConfig) -> Facts | None:
    try:
        brokers = len(ask_for_brokers(client).brokers)
        admin = Admin(client, ADMIN_TIMEOUT_MS)
        try:
            return Facts(brokers, frozenset(admin.list_topics()))
        finally:
            admin.close()
    except MirrorError as error:  # the connector's status will report it
        log.debug("not checked: %s", error)
        return None
