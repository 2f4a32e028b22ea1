"""A copy loop between two fake clusters, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sparkmirror.mirror.records import decode_offset_key, decode_offset_value
from sparkmirror.spark.copy.copy_loop import CopyLoop
from sparkmirror.spark.task_config import AssignedPartition, parse_start, start_message
from sparkmirror.types import TopicPartition
from sparkmirror.wire.net.event_loop import EventLoop
from tests.flows import make_flow
from tests.wire.fake_broker import FakeCluster

OFFSETS = "mm2-offsets.a.internal"
WAIT_SECONDS = 20.0
SETTINGS = {
    "a.consumer.fetch.max.wait.ms": "50",
    "a.consumer.retry.backoff.ms": "5",
    "b.producer.retry.backoff.ms": "5",
    "b.offset.flush.interval.ms": "60000",
}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Copy:
    """A copy loop between two fake clusters, in the test's own thread."""

    def __init__(
        self, folder: Path, source: FakeCluster, target: FakeCluster, loop: EventLoop | None = None
    ) -> None:
        self.source, self.target = source, target
        self._folder = folder
        self._loop = loop or EventLoop()
        self._copy: CopyLoop | None = None

    @property
    def copy(self) -> CopyLoop:
        """After `start`."""
        assert self._copy is not None
        return self._copy

    def start(
        self,
        positions: Mapping[TopicPartition, int | None],
        settings: Mapping[str, str] | None = None,
        **topics: str,
    ) -> CopyLoop:
        """Copy these partitions from these offsets on; `topics` are the optional internal ones."""
        flow = make_flow(
            self._folder,
            {**SETTINGS, **(settings or {})},
            self.source.bootstrap_servers,
            self.target.bootstrap_servers,
        )
        props = flow.connector_props["MirrorSourceConnector"]
        assigned = [assign(tp, next_offset) for tp, next_offset in positions.items()]
        message = start_message(props, flow.worker_props, 5, assigned, **topics)
        self._copy = CopyLoop(parse_start(message), self._loop)
        return self._copy

    def run_until(self, done: Callable[[], bool]) -> None:
        """Turn the loop."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not done():
            assert time.monotonic() < deadline, (self.copied(T0), self.copy.problems)
            self.copy.turn()

    def wait_for(self, count: int, tp: TopicPartition = T0) -> list[bytes]:
        """Until so many records have been copied."""
        self.run_until(lambda: len(self.copied(tp)) >= count)
        return self.copied(tp)

    def copied(self, tp: TopicPartition) -> list[bytes]:
        """What the target has."""
        return self.target.log(f"a.{tp.topic}", tp.partition).values()

    def stop(self) -> None:
        """In order."""
        self.copy.stop()
        self.copy.run()

    def stored(self) -> dict[TopicPartition, int | None]:
        """The positions in the offsets topic."""
        found = {}
        for at in range(5):
            for record in self.target.log(OFFSETS, at).records():
                key = decode_offset_key(record.key)
                assert key is not None
                assert (key.connector, key.cluster) == ("MirrorSourceConnector", "a")
                tp = TopicPartition(key.topic, key.partition)
                found[tp] = decode_offset_value(record.value)
        return found

    def close(self) -> None:
        """All connections."""
        if self._copy is not None:
            self._copy.close()
        self._loop.close()


def assign(tp: TopicPartition, next_offset: int | None) -> AssignedPartition:
    return AssignedPartition(tp, TopicPartition(f"a.{tp.topic}", tp.partition), next_offset)
