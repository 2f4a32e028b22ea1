"""The two clusters of a run, and their topics."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from bench import tls
from bench.end_offsets import EndOffsets
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import SERVER_JVM_ARGS
from sparkmirror.embedded.long_lines.long_line import LINE, LongLine
from sparkmirror.embedded.ports import HOST
from sparkmirror.retry import wait_for
from sparkmirror.spark import machine

DATA_PREFIX = "bench-"
_ADMIN_SECONDS = 60.0
# The largest case: a topic of 6 GB on either side, and one that is being deleted.
_DISK_BYTES = 20 << 30
# With the 1 GB of its start script a broker collects garbage for 20 ms every three seconds, which
# would decide the slowest arrivals of every system. More than 3 GB would take memory from the page
# cache, which must hold the backlog of a case. The size of the young generation is fixed, because
# a collector that may choose it stays at a twentieth of the heap. The heap is touched at the start,
# because a growing heap is slow.
_LARGEST_HEAP_GB = 3
_BYTES_PER_HEAP_GB = 8 << 30
# Each of six brokers beside the two: enough for some thousand partitions.
_WIDE_HEAP = "1g"
# Deleted topics must not fill the disk, nor be deleted in the middle of a later measurement.
_QUICK_DELETE = {"log.segment.delete.delay.ms": "1000"}


@dataclass(frozen=True, slots=True)
class Stage:
    """Source and target cluster of a run, one broker each; three for the largest case."""

    source: KafkaCluster
    target: KafkaCluster
    out_folder: Path
    scale: float
    rounds: int  # of the copy cases
    # Key store of the brokers' TLS listeners, which is also the trust store of their clients.
    tls_store: Path
    # Lines to the clusters that can be made long; other cases do not use them.
    source_line: LongLine
    target_line: LongLine

    @property
    def source_data_folder(self) -> Path:
        return self.source.brokers[0].folder / "data"

    def target_offsets(self) -> EndOffsets:
        """A connection that counts records on the target."""
        return EndOffsets(HOST, *(broker.port for broker in self.target.brokers))

    def source_offsets(self) -> EndOffsets:
        """A connection that counts records on the source."""
        return EndOffsets(HOST, *(broker.port for broker in self.source.brokers))

    def log_folder(self, case: str, system: str) -> Path:
        """The folder of a run's settings and log."""
        return self.out_folder / "logs" / f"{case}-{system}"


@contextmanager
def running_stage(out_folder: Path, scale: float, rounds: int) -> Iterator[Stage]:
    """Start both clusters; stop them and delete their data at the end."""
    needed_bytes = int(_DISK_BYTES * max(scale, 0.1))
    machine.require_disk_space(Path(tempfile.gettempdir()), needed_bytes, "the benchmark's data")
    store = tls.make_store(out_folder)
    settings = {**_QUICK_DELETE, **tls.broker_settings(store)}
    with (
        LongLine(out_folder / "logs") as source_line,
        LongLine(out_folder / "logs") as target_line,
        _cluster("bench-source", settings, source_line) as source,
        _cluster("bench-target", settings, target_line) as target,
    ):
        source_line.connect(source)
        target_line.connect(target)
        yield Stage(source, target, out_folder, scale, rounds, store, source_line, target_line)


@contextmanager
def wider_stage(stage: Stage, brokers: int) -> Iterator[Stage]:
    """The stage itself, or one with more brokers beside it, for a single case."""
    if brokers == len(stage.source.brokers):
        yield stage
        return
    source, target = (
        KafkaCluster(
            f"bench-wide-{side}", brokers=brokers, heap=_WIDE_HEAP, properties=_QUICK_DELETE
        )
        for side in ("source", "target")
    )
    with source, target:
        yield replace(stage, source=source, target=target)


def _cluster(name: str, properties: Mapping[str, str], line: LongLine) -> KafkaCluster:
    heap_mb = _broker_heap_mb()
    heap = f"{heap_mb}m"
    jvm_args = (*SERVER_JVM_ARGS, f"-Xms{heap}", f"-Xmn{heap_mb // 2}m", "-XX:+AlwaysPreTouch")
    return KafkaCluster(
        name,
        heap=heap,
        jvm_args=jvm_args,
        properties=properties,
        listeners={tls.LISTENER: "SSL", LINE: "PLAINTEXT"},
        advertised_ports={LINE: line.port},
    )


def _broker_heap_mb() -> int:
    """An eighth of the machine's memory for each broker, at most 3 GB."""
    gigabytes = psutil.virtual_memory().total // _BYTES_PER_HEAP_GB
    return min(max(gigabytes, 1), _LARGEST_HEAP_GB) << 10


class Topics:
    """Creates, lists and deletes topics of one cluster."""

    def __init__(self, cluster: KafkaCluster) -> None:
        # Without a log, which would report the orderly end of the brokers as an error.
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def create(
        self, names: Sequence[str], partitions: int, settings: Mapping[str, str] | None = None
    ) -> None:
        """Create topics and return when the broker lists them."""
        wanted = [NewTopic(name, partitions, 1, config=dict(settings or {})) for name in names]
        for future in self._admin.create_topics(wanted).values():
            future.result(_ADMIN_SECONDS)
        self._wait_until(lambda: set(names) <= self.list_names(), f"topics {names} are listed")

    def list_names(self) -> set[str]:
        """Every topic except Kafka's own."""
        listed = self._admin.list_topics(timeout=_ADMIN_SECONDS).topics
        return {name for name in listed if not name.startswith("__")}

    def delete(self, names: set[str]) -> None:
        """Delete topics and return when the broker does not list them any more."""
        if not names:
            return
        for future in self._admin.delete_topics(sorted(names)).values():
            future.result(_ADMIN_SECONDS)
        self._wait_until(lambda: not names & self.list_names(), f"topics {names} are gone")

    def _wait_until(self, condition: Callable[[], bool], describe: str) -> None:
        wait_for(condition, within=_ADMIN_SECONDS, describe=describe)


def clean_up(stage: Stage) -> None:
    """Delete a mirror's topics on both clusters; the data of the case stays."""
    target = Topics(stage.target)
    target.delete(target.list_names())
    source = Topics(stage.source)
    source.delete({name for name in source.list_names() if not name.startswith(DATA_PREFIX)})
