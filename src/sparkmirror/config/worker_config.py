"""The worker of a flow: the Kafka Connect worker whose topics and settings the flow uses.

In an mm2 file every worker key belongs to the *target* cluster: `B.offset.flush.interval.ms`. A
worker with its own file (`worker_file`) reads SHARED_KEYS and more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.config.clients import (
    ClientConfig,
    ProducerConfig,
    parse_client,
    parse_producer,
    producer_settings,
)
from sparkmirror.config.config_def import (
    Definition,
    Importance,
    Key,
    KeySupport,
    Type,
    fill,
    positive_or_default,
)
from sparkmirror.config.findings import Settings
from sparkmirror.config.keys.classes import BYTE_ARRAY_CONVERTER
from sparkmirror.config.keys.client_keys import no_effect
from sparkmirror.config.keys.families import NO_CONVERSION
from sparkmirror.config.keys.group_keys import GROUP_KEYS, GroupConfig, check_group
from sparkmirror.config.keys.not_yet import check_not_yet

INT, SHORT, LONG, STRING, LIST = Type.INT, Type.SHORT, Type.LONG, Type.STRING, Type.LIST
BOOLEAN, CLASS = Type.BOOLEAN, Type.CLASS
HIGH = Importance.HIGH
# These follow `offset.storage.` and its like, but are not topic settings of Kafka.
STORAGE_KINDS = ("offset", "config", "status")
STORAGE_PREFIXES = tuple(f"{kind}.storage." for kind in STORAGE_KINDS)
NO_TOPIC_SETTING = ("topic", "replication.factor", "partitions")
CLEANUP_POLICY = "cleanup.policy"


def _topic(kind: str, default: str, doc: str) -> tuple[Key, Key]:
    return (
        Key(
            name=f"{kind}.storage.topic",
            type=STRING,
            importance=HIGH,
            non_empty=True,
            doc=f"{doc} In an mm2 file the default is `{default}.<source alias>.internal`.",
        ),
        Key(
            name=f"{kind}.storage.replication.factor",
            type=SHORT,
            default=3,
            convert=positive_or_default,
            doc="Replicas of that topic; -1: broker default.",
        ),
    )


def _partitions(kind: str, default: int) -> Key:
    return Key(
        name=f"{kind}.storage.partitions",
        type=INT,
        default=default,
        convert=positive_or_default,
        doc="Partitions of that topic, when it is created; -1: broker default.",
    )


def _time(name: str, default: int, doc: str) -> Key:
    return Key(name=name, type=LONG, default=default, at_least=0, doc=doc)


SHARED_KEYS = Definition(
    Key(
        name="group.id",
        type=STRING,
        importance=HIGH,
        non_empty=True,
        doc="Name of the group of workers. In an mm2 file the default is `<source alias>-mm2`.",
    ),
    *_topic("offset", "mm2-offsets", "Topic that holds the positions of the copy."),
    _partitions("offset", 25),
    *_topic("config", "mm2-configs", "Topic that holds the connectors' settings."),
    *_topic("status", "mm2-status", "Topic that holds the states of connectors and tasks."),
    _partitions("status", 5),
    _time("offset.flush.interval.ms", 60000, "How often positions are stored."),
    _time("offset.flush.timeout.ms", 5000, "How long storing them may take."),
    _time("task.shutdown.graceful.timeout.ms", 5000, "How long to wait for tasks to stop."),
    Key(
        name="exactly.once.source.support",
        type=STRING,
        default="disabled",
        one_of=("disabled", "preparing", "enabled"),
        ignore_case=True,
        convert=str.lower,
        doc="Whether positions and records are written in one transaction.",
    ),
    *GROUP_KEYS,
)

CONVERTER_KEYS = Definition(
    *(
        Key(
            name=f"{part}.converter",
            type=CLASS,
            default=None,
            doc="",
            status=KeySupport.EXPLAINED,
            reason=NO_CONVERSION,
            quiet=(BYTE_ARRAY_CONVERTER,),
        )
        for part in ("key", "value", "header")
    ),
    *no_effect(
        "there are no Java plugins to load",
        STRING,
        *(f"{part}.converter.plugin.version" for part in ("key", "value", "header")),
    ),
)

WORKER_KEYS = SHARED_KEYS + Definition(
    *no_effect(
        "one process copies a flow; the others of its group wait to take over",
        STRING,
        "scheduled.rebalance.max.delay.ms",
        "connect.protocol",
        "worker.sync.timeout.ms",
        "worker.unsync.backoff.ms",
        "inter.worker.key.generation.algorithm",
        "inter.worker.key.size",
        "inter.worker.key.ttl.ms",
        "inter.worker.signature.algorithm",
        "inter.worker.verification.algorithms",
    ),
    *no_effect(
        "a file of flows has no REST API",
        STRING,
        "listeners",
        "admin.listeners",
        "rest.advertised.host.name",
        "rest.advertised.port",
        "rest.advertised.listener",
        "rest.extension.classes",
        "rest.host.name",
        "rest.port",
        "access.control.allow.origin",
        "access.control.allow.methods",
        "response.http.headers.config",
        "ssl.client.auth",
    ),
    *no_effect(
        "there are no Java plugins to load",
        STRING,
        "plugin.path",
        "plugin.discovery",
        "connector.client.config.override.policy",
    ),
    *CONVERTER_KEYS,
    *no_effect(
        NO_CONVERSION,
        CLASS,
        "internal.key.converter",
        "internal.value.converter",
        "internal.key.converter.schemas.enable",
        "internal.value.converter.schemas.enable",
    ),
    *no_effect(
        "remote topics are created like their source topics",
        STRING,
        "topic.creation.enable",
        "topic.tracking.enable",
        "topic.tracking.allow.reset",
        "internal.topics.automatic.creation.enable",
    ),
)


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Settings of the worker of a flow. `client` connects to its internal topics, on the target.

    `storage_settings` has, by kind (offset, config, status), further settings for creating that
    topic.
    """

    bootstrap_servers: tuple[str, ...]
    client_id: str
    client: ClientConfig
    producer: ProducerConfig
    group_id: str
    offset_storage_topic: str
    config_storage_topic: str
    status_storage_topic: str
    offset_storage_partitions: int = 25
    status_storage_partitions: int = 5
    offset_storage_replication_factor: int = 3
    config_storage_replication_factor: int = 3
    status_storage_replication_factor: int = 3
    offset_flush_interval_ms: int = 60000
    offset_flush_timeout_ms: int = 5000
    task_shutdown_graceful_timeout_ms: int = 5000
    exactly_once_source_support: str = "disabled"
    session_timeout_ms: int = 10000
    heartbeat_interval_ms: int = 3000
    rebalance_timeout_ms: int = 60000
    storage_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)

    @property
    def group(self) -> GroupConfig:
        """The group that this worker joins, on the cluster of `client`."""
        return GroupConfig(
            self.group_id,
            self.session_timeout_ms,
            self.heartbeat_interval_ms,
            self.rebalance_timeout_ms,
        )


def parse_worker(settings: Settings, alias: str, keys: Definition = WORKER_KEYS) -> WorkerConfig:
    """The typed settings of a worker whose own cluster is called `alias`.

    Never raises: errors are in the findings.
    """
    values: dict[str, Any] = keys.parse(*settings)
    check_not_yet(values, settings.findings)
    client = parse_client(settings, alias)
    worker = fill(
        WorkerConfig,
        SHARED_KEYS,
        values,
        bootstrap_servers=client.bootstrap_servers,
        client_id=client.client_id,
        client=client,
        producer=parse_producer(producer_settings(settings), alias),
        storage_settings={kind: _topic_settings(settings, kind) for kind in STORAGE_KINDS},
    )
    check_group(worker.group, settings.findings)
    return worker


def _topic_settings(settings: Settings, kind: str) -> dict[str, str]:
    """`offset.storage.min.insync.replicas=2` and the like: settings of the topic, as in Connect.

    Mirrors: org.apache.kafka.connect.runtime.distributed.DistributedConfig.topicSettings (4.3).
    """
    prefix = f"{kind}.storage."
    given = {
        key.removeprefix(prefix): value
        for key, value in settings.values.items()
        if key.startswith(prefix)
    }
    if given.pop(CLEANUP_POLICY, None) is not None:
        why = (
            "has no effect: the topic is always compacted; otherwise state would eventually be "
            "deleted"
        )
        settings.findings.warn_key(prefix + CLEANUP_POLICY, why)
    if kind == "config" and "partitions" in given:
        why = "has no effect: the topic has one partition, which keeps its records in order"
        settings.findings.warn_key(f"{prefix}partitions", why)
    return {name: value for name, value in given.items() if name not in NO_TOPIC_SETTING}
