"""The systems that are compared: their configuration files and how they are started.

All get the same file; tuned MM2 gets seven more lines, which users write to tune it for throughput.
sparkmirror runs with its default settings.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.cases import MM2_TUNED, SPARKMIRROR
from bench.process_tree import ProcessTree
from sparkmirror.embedded import GenuineMirrorMaker
from sparkmirror.embedded.java import SERVER_JVM_ARGS, store_properties
from sparkmirror.embedded.process import log_tail, start_child
from sparkmirror.errors import MirrorError

_REPLICATION_FACTORS = (
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset-syncs.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)
# As connect-mirror-maker.sh and connect-distributed.sh, with their heap of up to 2 GB.
MM2_JVM_ARGS = (*SERVER_JVM_ARGS, "-Xms256m")
# MirrorMaker 2 needs several tasks to use two cores; one copy task of ours does.
MM2_TASKS = "4"
# Settings that users write to tune it for throughput.
PRODUCER_TUNING = {
    "batch.size": "524288",
    "linger.ms": "20",
    "compression.type": "lz4",
    "acks": "1",
}
CONSUMER_TUNING = {
    "fetch.min.bytes": "100000",
    "max.partition.fetch.bytes": "4194304",
    "max.poll.records": "10000",
}
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Flow:
    """The flow of one run of a mirror."""

    alias: str
    source_bootstrap: str
    target_bootstrap: str
    topics: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def remote_topic(self, topic: str) -> str:
        """Name of `topic` on the target, by MM2's default policy."""
        return f"{self.alias}.{topic}"


@dataclass(frozen=True, slots=True)
class Mirror:
    """A running mirror."""

    pid: int
    log_path: Path
    started_at: float
    tree: ProcessTree

    def require_running(self) -> None:
        """Raise MirrorError with the end of its log if the process has ended."""
        stat = Path(f"/proc/{self.pid}/stat")
        # A zombie has ended, but its parent has not read its exit code.
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            tail = log_tail(self.log_path)
            raise MirrorError(f"the mirror ended before it was stopped; {self.log_path}:\n{tail}")


def flow_properties(system: str, flow: Flow) -> dict[str, str]:
    """The mm2.properties file of a run."""
    alias = flow.alias
    properties = {
        "clusters": f"{alias},target",
        f"{alias}.bootstrap.servers": flow.source_bootstrap,
        "target.bootstrap.servers": flow.target_bootstrap,
        f"{alias}->target.enabled": "true",
        f"{alias}->target.topics": flow.topics,
        f"target->{alias}.enabled": "false",
        # The brokers have no authorizer, so there are no rules to copy.
        "sync.topic.acls.enabled": "false",
        **dict.fromkeys(_REPLICATION_FACTORS, "1"),
        **flow.settings,
    }
    if system != SPARKMIRROR:
        properties["tasks.max"] = MM2_TASKS
    return {**properties, **(_tuning(alias) if system == MM2_TUNED else {})}


def _tuning(alias: str) -> dict[str, str]:
    producer = {f"target.producer.{key}": value for key, value in PRODUCER_TUNING.items()}
    return producer | {f"{alias}.consumer.{key}": value for key, value in CONSUMER_TUNING.items()}


@contextmanager
def running_mirror(system: str, flow: Flow, folder: Path) -> Iterator[Mirror]:
    """Start `system` on `flow`; stop it and everything it started at the end."""
    properties = flow_properties(system, flow)
    started_at = time.monotonic()
    if system == SPARKMIRROR:
        settings, log_path = folder / "mm2.properties", folder / "sparkmirror.log"
        store_properties(settings, properties)
        command: list[str | Path] = [sys.executable, "-m", "sparkmirror.cli.main", "run", settings]
        child = start_child(command, log_path)
        try:
            yield Mirror(child.pid, log_path, started_at, ProcessTree(child.pid))
        finally:
            child.stop(STOP_SECONDS)
    else:
        with GenuineMirrorMaker(properties, folder, jvm_args=MM2_JVM_ARGS) as maker:
            yield Mirror(maker.pid, maker.log_path, started_at, ProcessTree(maker.pid))
