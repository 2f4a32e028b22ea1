"""One flow of a running mirror, as a test sees it, and the settings that all mirrors here share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sparkmirror.demo.mirror_process import MirrorProcess
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import store_properties
from tests.clusters import unique_name, wait_for
from tests.engines import mirror_process

DEFAULT = "DefaultReplicationPolicy"
IDENTITY = "IdentityReplicationPolicy"
# Some waits begin with the start of a mirror and its Spark.
WAIT_SECONDS = 90.0
_EVERY_SECOND = (
    "refresh.topics.interval.seconds",
    "refresh.groups.interval.seconds",
    "sync.topic.configs.interval.seconds",
    "sync.group.offsets.interval.seconds",
    "emit.checkpoints.interval.seconds",
    "emit.heartbeats.interval.seconds",
)
_ONE_COPY = (
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)
OFFSET_SYNCS_COPIES = "offset-syncs.topic.replication.factor"


class Running(Protocol):
    """A mirror, in whichever mode."""

    def check_running(self) -> None:
        """Fail with the end of its log if it has ended."""

    def log_end(self) -> str:
        """The end of its log, for an error message."""


@dataclass(frozen=True, slots=True)
class Flow:
    """From one cluster to another, under the aliases of the mirror's settings."""

    mirror: Running
    source: KafkaCluster
    target: KafkaCluster
    source_alias: str
    target_alias: str
    policy: str
    # Names of all its topics begin so.
    prefix: str

    @property
    def policy_class(self) -> str:
        return f"org.apache.kafka.connect.mirror.{self.policy}"

    @property
    def keeps_names(self) -> bool:
        return self.policy == IDENTITY

    @property
    def checkpoints_topic(self) -> str:
        """On the target."""
        return f"{self.source_alias}.checkpoints.internal"

    def remote(self, topic: str) -> str:
        """The topic's name on the target."""
        return topic if self.keeps_names else f"{self.source_alias}.{topic}"

    def settings(self, **others: str) -> dict[str, str]:
        """Its lines of the file; `others` are further keys of the flow, with `_` for `.`."""
        lines = {
            "enabled": "true",
            "topics": f"{self.prefix}.*",
            "replication.policy.class": self.policy_class,
            **{key.replace("_", "."): value for key, value in others.items()},
        }
        start = f"{self.source_alias}->{self.target_alias}"
        named = {f"{start}.{key}": value for key, value in lines.items()}
        return {**named, f"{self.target_alias}.offset.flush.interval.ms": "500"}

    def wait_for(self, condition: Callable[[], object], describe: Callable[[], str]) -> None:
        """Wait for what the mirror should do; fails at once if the mirror ends."""

        def holds() -> object:
            self.mirror.check_running()
            return condition()

        wait_for(
            holds,
            within=WAIT_SECONDS,
            describe=lambda: f"{describe()}; {self.mirror.log_end()}",
        )


def make_mirror(folder: Path) -> MirrorProcess:
    """A mirror that is not started, and has no file yet."""
    folder.mkdir(parents=True, exist_ok=True)
    return mirror_process("sparkmirror", folder / "mm2.properties")


def write_file(
    folder: Path, clusters: Mapping[str, KafkaCluster], flows: Mapping[str, str]
) -> None:
    """The file of a mirror; `flows` are its lines beside those that all have."""
    settings = {
        "clusters": ", ".join(clusters),
        "groups": "consumer-group-.*",
        "config.properties.exclude": r"delete\.retention\..*",
        "sync.topic.acls.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "offset.storage.partitions": "3",
        "tasks.max": "1",
        **dict.fromkeys(_EVERY_SECOND, "1"),
        **dict.fromkeys(_ONE_COPY, "1"),
    }
    for alias, cluster in clusters.items():
        settings[f"{alias}.bootstrap.servers"] = cluster.bootstrap_servers
    store_properties(folder / "mm2.properties", {**settings, **flows})


def unique_group() -> str:
    """A group that the mirrors follow."""
    return unique_name("consumer-group")
