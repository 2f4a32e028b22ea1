"""Creates Connect's own topics (config, status, offset), or checks existing ones.

Runs on: worker, at its start.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.storage.compaction import CLEANUP, repair_cleanup
from sparkmirror.errors import BrokerError, ConfigError, DeniedError, KafkaError, describe_error
from sparkmirror.mirror.permissions import NO_STORE
from sparkmirror.wire.admin.admin import Admin, NewTopic
from sparkmirror.wire.protocol.error_codes import error_code

ADMIN_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class StorageTopic:
    """A topic that Connect keeps state in; `kind` is config, status or offset.

    `partitions`, `replication_factor` and `settings` are for creating it; -1 is the cluster's
    default.
    """

    kind: str
    name: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def setting(self) -> str:
        return f"{self.kind}.storage.topic"


def offsets_topic(worker: WorkerConfig) -> StorageTopic:
    """The topic for the positions of the copy."""
    return StorageTopic(
        "offset",
        worker.offset_storage_topic,
        worker.offset_storage_partitions,
        worker.offset_storage_replication_factor,
        worker.storage_settings.get("offset", {}),
    )


def configs_topic(worker: WorkerConfig) -> StorageTopic:
    """The topic for the settings of connectors; one partition keeps its records in order."""
    return StorageTopic(
        "config",
        worker.config_storage_topic,
        1,
        worker.config_storage_replication_factor,
        worker.storage_settings.get("config", {}),
    )


def statuses_topic(worker: WorkerConfig) -> StorageTopic:
    """The topic for the states of connectors and tasks."""
    return StorageTopic(
        "status",
        worker.status_storage_topic,
        worker.status_storage_partitions,
        worker.status_storage_replication_factor,
        worker.storage_settings.get("status", {}),
    )


def prepare_storage_topic(client: ClientConfig, topic: StorageTopic) -> int:
    """Create or check the topic; return its number of partitions.

    Raises:
        ConfigError: the existing topic cannot be used.
        KafkaError: the cluster does not respond, or rejects the topic.
    """
    admin = Admin(client, ADMIN_TIMEOUT_MS)
    try:
        return bring_up_storage_topic(admin, topic)
    finally:
        admin.close()


def bring_up_storage_topic(admin: Admin, topic: StorageTopic) -> int:
    """`prepare_storage_topic` over an existing connection."""
    found = admin.view_topic(topic.name)
    if found is None:
        _create(admin, topic)
        # The cluster chose the default, or another worker was faster: read the number back.
        found = admin.view_topic(topic.name)
    else:
        _check_cleanup(admin, topic)
    partitions = topic.partitions if found is None else found.partitions
    if topic.kind == "config" and partitions != 1:
        raise ConfigError(
            topic.setting,
            topic.name,
            f"the topic has {partitions} partitions on '{admin.alias}', but the order of its "
            "records must be one",
            "name a topic with 1 partition",
        )
    return partitions


def _create(admin: Admin, topic: StorageTopic) -> None:
    settings = {**topic.settings, CLEANUP: "compact"}
    wanted = NewTopic(topic.name, topic.partitions, topic.replication_factor, settings)
    error = admin.create_topics([wanted])[topic.name]
    if isinstance(error, DeniedError):
        advice = f"an administrator may create it too, with {CLEANUP}=compact"
        if topic.partitions > 0:
            advice += f" and partitions={topic.partitions}"
        raise KafkaError(describe_error(error, f"{NO_STORE}; {advice}")) from error
    if error is not None:
        raise KafkaError(f"{error}; {_advice(error, topic)}") from error


def _advice(error: BrokerError, topic: StorageTopic) -> str:
    if error_code(error.code).name == "INVALID_CONFIG":
        return f"check {', '.join(f'{topic.kind}.storage.{name}' for name in topic.settings)}"
    return f"set {topic.kind}.storage.replication.factor to at most the number of brokers"


def _check_cleanup(admin: Admin, topic: StorageTopic) -> None:
    if wrong := repair_cleanup(admin, topic.name, unseen=logging.WARNING):
        remedy = f"set {CLEANUP}=compact on it, or name another topic"
        raise ConfigError(topic.setting, topic.name, wrong, remedy)
