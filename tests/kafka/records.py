"""Numbered records: written while things fail, and compared on both sides afterwards."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, produce, read_partition, wait_for
from tests.kafka.mirror_process import COPY_SECONDS, OFFSETS_PARTITIONS, Mirror

# In the order of their numbers, none twice, whatever happens to the source's brokers.
_SAFE = {"acks": "all", "enable.idempotence": True, "linger.ms": 5}
# librdkafka says every failed connection; here most of them are wanted.
_QUIET = {"log_level": 0}
_FLUSH_SECONDS = 60.0
_ASK_SECONDS = 10.0


def number(at: int, size: int = 100) -> bytes:
    """The value of the record with this number in its partition."""
    return b"%010d" % at + b"." * (size - 10)


def fill(
    cluster: KafkaCluster,
    topic: str,
    count: int,
    *,
    partition: int = 0,
    first: int = 0,
    size: int = 100,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Write records with the numbers from `first` on."""
    values = (number(at, size) for at in range(first, first + count))
    produce(cluster, topic, values, partition=partition, config={**_SAFE, **(config or {})})


class Feeder:
    """Writes numbered records to all partitions of a topic, from a thread, until the block ends."""

    def __init__(
        self,
        cluster: KafkaCluster,
        topic: str,
        partitions: int,
        *,
        per_second: int,
        size: int = 100,
    ) -> None:
        self.counts = [0] * partitions
        self._topic = topic
        self._round_seconds = 0.02
        self._per_round = max(1, round(per_second * self._round_seconds / partitions))
        self._producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, **_SAFE, **_QUIET}
        )
        self._failures: list[object] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"feeder {topic}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(_FLUSH_SECONDS)
        left = self._producer.flush(_FLUSH_SECONDS)
        if error is None:
            assert not self._failures
            assert left == 0, f"{left} records were not acknowledged by the source"

    def _run(self) -> None:
        while not self._stop.wait(self._round_seconds):
            for partition in range(len(self.counts)):
                for _ in range(self._per_round):
                    self._write(partition)
            self._producer.poll(0)

    def _write(self, partition: int) -> None:
        value = number(self.counts[partition])
        try:
            self._producer.produce(
                self._topic, value, partition=partition, on_delivery=self._delivered
            )
        except BufferError:  # a broker is down: later
            self._producer.poll(0.1)
            return
        except KafkaException as error:
            # A broker with ZooKeeper that was just restarted knows no topics for a moment.
            if error.args[0].name() != "_UNKNOWN_TOPIC":
                raise
            self._producer.poll(0.1)
            return
        self.counts[partition] += 1

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._failures.append(error)


def new_topic(cluster: KafkaCluster, *, partitions: int = 1) -> str:
    """A topic that survives the loss of a broker if the cluster has three."""
    copies = min(3, len(cluster.brokers))
    config = {"min.insync.replicas": "2"} if copies == 3 else {}
    return create_topic(cluster, partitions=partitions, replication_factor=copies, config=config)


def values(cluster: KafkaCluster, topic: str, partition: int = 0) -> list[bytes]:
    """All values of a partition, in order."""
    return [record.value or b"" for record in read_partition(cluster, topic, partition)]


def stored_positions(mirror: Mirror) -> list[bytes | None]:
    """The values of all records of the offsets topic."""
    return [
        record.value
        for at in range(OFFSETS_PARTITIONS)
        if end_of(mirror.target, mirror.offsets_topic, at) > 0
        for record in read_partition(mirror.target, mirror.offsets_topic, at)
    ]


def stored_offsets(mirror: Mirror, topic: str) -> dict[int, int]:
    """By partition of `topic`, the last stored offset; for partitions that have one."""
    found: dict[int, int] = {}
    for at in range(OFFSETS_PARTITIONS):
        for record in read_partition(mirror.target, mirror.offsets_topic, at):
            _, source = json.loads(record.key or b"")
            if source["topic"] == topic:
                found[source["partition"]] = json.loads(record.value or b"")["offset"]
    return found


def wait_until_copied(
    mirror: Mirror, topic: str, partitions: int = 1, *, within: float = COPY_SECONDS
) -> None:
    """Wait until the target has at least as many records as the source has now."""
    for partition in range(partitions):
        wanted = _known_end(mirror.source, topic, partition)
        wait_for_end(mirror, topic, wanted, partition, within=within)


def _known_end(cluster: KafkaCluster, topic: str, partition: int) -> int:
    ends: list[int] = []

    def ask() -> bool:
        ends.append(end_of(cluster, topic, partition))
        return ends[-1] >= 0

    wait_for(ask, within=COPY_SECONDS, describe=f"somebody leads {topic}-{partition}")
    return ends[-1]


def wait_for_end(
    mirror: Mirror, topic: str, wanted: int, partition: int = 0, *, within: float = COPY_SECONDS
) -> None:
    """Wait until the target's partition has this many records."""
    remote = mirror.remote(topic)
    wait_for(
        lambda: end_of(mirror.target, remote, partition) >= wanted,
        within=within,
        describe=lambda: (
            f"{wanted} records in {remote}-{partition}, which has "
            f"{end_of(mirror.target, remote, partition)}; {mirror.log_end()}"
        ),
    )


def end_of(cluster: KafkaCluster, topic: str, partition: int = 0) -> int:
    """The partition's end offset; -1 while it has no leader or does not exist."""
    consumer = _consumer(cluster)
    try:
        where = TopicPartition(topic, partition)
        _, end = consumer.get_watermark_offsets(where, _ASK_SECONDS)
    except KafkaException:
        return -1
    finally:
        consumer.close()
    return int(end)


def _consumer(cluster: KafkaCluster) -> Consumer:
    servers = cluster.bootstrap_servers
    return Consumer({"bootstrap.servers": servers, "group.id": "watcher", **_QUIET})


def last_value(cluster: KafkaCluster, topic: str, partition: int = 0) -> bytes | None:
    """The value of the newest record; None when there is none, or nobody to ask."""
    end = end_of(cluster, topic, partition)
    if end <= 0:
        return None
    consumer = _consumer(cluster)
    try:
        consumer.assign([TopicPartition(topic, partition, end - 1)])
        message = consumer.poll(_ASK_SECONDS)
        return None if message is None or message.error() else message.value()
    finally:
        consumer.close()


def wait_for_last(mirror: Mirror, topic: str, partition: int = 0) -> None:
    """Wait until the target's newest record is the source's: also when some are there twice."""
    wanted = last_value(mirror.source, topic, partition)
    remote = mirror.remote(topic)
    wait_for(
        lambda: last_value(mirror.target, remote, partition) == wanted,
        within=COPY_SECONDS,
        describe=lambda: f"{wanted!r} at the end of {remote}-{partition}; {mirror.log_end()}",
    )


def assert_identical(mirror: Mirror, topic: str, partitions: int = 1) -> None:
    """The target holds what the source holds: nothing missing, nothing twice, same order."""
    for partition in range(partitions):
        wanted = values(mirror.source, topic, partition)
        found = values(mirror.target, mirror.remote(topic), partition)
        if found == wanted:
            continue
        at = next(
            (at for at, pair in enumerate(zip(wanted, found, strict=False)) if pair[0] != pair[1]),
            min(len(wanted), len(found)),
        )
        near = [value[:10] for value in found[max(0, at - 2) : at + 3]]
        missing, extra = len(set(wanted) - set(found)), len(found) - len(set(found))
        raise AssertionError(
            f"{topic}-{partition}: {len(wanted)} on the source, {len(found)} on the target, "
            f"{missing} missing, {extra} twice; they part at {at}: target has {near}"
        )


def count_seams(mirror: Mirror, topic: str, partition: int = 0) -> tuple[int, int]:
    """(jumps back, records twice) on the target; fails if a record is missing or out of order."""
    jumps = jumps_back(mirror, topic, partition)
    found = values(mirror.target, mirror.remote(topic), partition)
    return len(jumps), len(found) - len(values(mirror.source, topic, partition))


def jumps_back(mirror: Mirror, topic: str, partition: int = 0) -> list[int]:
    """Offsets at which copying began once more; fails if a record is missing or out of order.

    Copying once more from an older position is a jump back; from there on, each number follows the
    one before.
    """
    wanted = [int(value[:10]) for value in values(mirror.source, topic, partition)]
    found = [int(value[:10]) for value in values(mirror.target, mirror.remote(topic), partition)]
    assert wanted == list(range(len(wanted)))
    jumps, newest = [], -1
    for before, now in zip([-1, *found], found, strict=False):
        if now != before + 1:
            assert now <= newest, (
                f"{topic}-{partition}: {now} follows {before}: records are missing"
            )
            jumps.append(now)
        newest = max(newest, now)
    assert newest == len(wanted) - 1, f"{topic}-{partition} ends at {newest} of {len(wanted)}"
    return jumps
