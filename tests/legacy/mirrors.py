"""Genuine MirrorMaker 1 and `sparkmirror legacy` as processes with the same two files."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from confluent_kafka import Producer

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import QUICK_JVM_ARGS, java_command, store_properties
from sparkmirror.embedded.kafka_jars import kafka_jars
from sparkmirror.embedded.process import Child, end_processes, log_tail, start_child
from sparkmirror.types import TopicPartition
from tests.clusters import end_offset, read_partition, unique_name, wait_for
from tests.group_offsets import committed_offsets

COPY_SECONDS = 300.0
STOP_SECONDS = 120.0
_LOG_LINES = 40
# MirrorMaker 1 ends as a Java program does on SIGTERM.
MM1_CODE = 128 + 15


class Files:
    """The options and files of one MirrorMaker 1; its group and its topics are its own."""

    def __init__(
        self,
        folder: Path,
        source: KafkaCluster,
        target: KafkaCluster,
        consumer: Mapping[str, str] | None = None,
        producer: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.source, self.target = source, target
        self.group = unique_name("mm1")
        # No other test's topics begin so.
        self.prefix = unique_name("legacy")
        self.consumer_file = folder / "consumer.properties"
        self.producer_file = folder / "producer.properties"
        store_properties(
            self.consumer_file,
            {
                "bootstrap.servers": source.bootstrap_servers,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "metadata.max.age.ms": "1000",
                **(consumer or {}),
            },
        )
        store_properties(
            self.producer_file, {"bootstrap.servers": target.bootstrap_servers, **(producer or {})}
        )

    @property
    def options(self) -> list[str]:
        return [
            *("--consumer.config", str(self.consumer_file)),
            *("--producer.config", str(self.producer_file)),
            *("--whitelist", f"{self.prefix}.*", "--num.streams", "2"),
            *("--offset.commit.interval.ms", "1000"),
        ]

    def committed(self) -> dict[TopicPartition, int]:
        """What the group has committed on the source."""
        return committed_offsets(self.source, self.group)


class Process:
    """One of both, in a `with` block."""

    def __init__(self, command: Sequence[str | Path], log_path: Path, exit_code: int) -> None:
        self.log_path = log_path
        self._exit_code = exit_code
        self._child: Child = start_child(command, log_path)

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def wait_for_log(self, text: str) -> None:
        wait_for(
            lambda: text in self.log or self._child.exit_code is not None,
            within=COPY_SECONDS,
            describe=lambda: f"'{text}' in the log; {self.log_end()}",
        )
        assert text in self.log, self.log_end()

    def wait(self) -> int:
        """Its exit code, when it ends by itself."""
        return self._child.wait(STOP_SECONDS)

    def stop(self) -> None:
        """SIGTERM, and an orderly end."""
        assert self._child.exit_code is None, self.log_end()
        self._child.send(signal.SIGTERM)
        assert self._child.wait(STOP_SECONDS) == self._exit_code, self.log_end()

    def kill(self) -> None:
        """SIGKILL to it and all that it started."""
        if self._child.exit_code is None:
            process = psutil.Process(self._child.pid)
            end_processes([process, *process.children(recursive=True)])
            self._child.wait(STOP_SECONDS)

    def log_end(self) -> str:
        return f"{self.log_path} ends:\n{log_tail(self.log_path, _LOG_LINES)}"


@contextmanager
def mirror_maker_1(files: Files, version: str) -> Iterator[Process]:
    """Genuine MirrorMaker 1 of a release before 4.0."""
    command = java_command(
        kafka_jars(version),
        files.folder,
        "kafka.tools.MirrorMaker",
        files.options,
        heap="256m",
        jvm_args=QUICK_JVM_ARGS,
    )
    with _ending(Process(command, files.folder / f"{unique_name('mm1')}.log", MM1_CODE)) as process:
        yield process


@contextmanager
def sparkmirror_legacy(files: Files, *words: str) -> Iterator[Process]:
    """The same with sparkmirror."""
    command = [sys.executable, "-m", "sparkmirror.cli.main", "legacy", *files.options, *words]
    with _ending(Process(command, files.folder / f"{unique_name('legacy')}.log", 0)) as process:
        yield process


@contextmanager
def sparkmirror_run(file: Path, *words: str) -> Iterator[Process]:
    """`sparkmirror run` with an mm2 file."""
    command = [sys.executable, "-m", "sparkmirror.cli.main", "run", str(file), *words]
    with _ending(Process(command, file.with_suffix(".log"), 0)) as process:
        yield process


@contextmanager
def _ending(process: Process) -> Iterator[Process]:
    try:
        yield process
    except BaseException as error:
        error.add_note(process.log_end())
        raise
    finally:
        process.kill()


def produce_keyed(cluster: KafkaCluster, topic: str, numbers: Iterable[int]) -> None:
    """Records that are placed by their keys as Java producers place them."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
        }
    )
    for at in numbers:
        headers = [("number", b"%d" % at)]
        producer.produce(topic, b"value %d" % at, b"key %d" % (at % 97), headers=headers)
        producer.poll(0)
    assert producer.flush(COPY_SECONDS) == 0


def wait_until_copied(files: Files, topic: str, partitions: int, process: Process) -> None:
    """Wait until each partition of the target is as long as that of the source."""
    for at in range(partitions):
        _wait_for_end(
            files, TopicPartition(topic, at), end_offset(files.source, topic, at), process
        )


def _wait_for_end(files: Files, tp: TopicPartition, wanted: int, process: Process) -> None:
    wait_for(
        lambda: end_offset(files.target, *tp) >= wanted,
        within=COPY_SECONDS,
        describe=lambda: f"all of {tp} is copied; {process.log_end()}",
    )


def assert_same_records(files: Files, topic: str, partitions: int) -> None:
    """Each partition has the same records on both sides: none missing, none twice, same order."""
    for at in range(partitions):
        wanted = read_partition(files.source, topic, at)
        assert wanted, f"{topic}-{at} has no records to compare"
        assert read_partition(files.target, topic, at) == wanted


def source_ends(files: Files, topic: str, partitions: int) -> dict[TopicPartition, int]:
    """Where the group stands when everything was copied."""
    return {
        TopicPartition(topic, at): end_offset(files.source, topic, at) for at in range(partitions)
    }
