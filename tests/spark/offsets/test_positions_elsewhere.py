"""Positions that are kept on another cluster than the one that records go to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.spark.copy.copy_loop import CopyLoop
from sparkmirror.spark.task_config import parse_start, start_message
from sparkmirror.wire.net.event_loop import EventLoop
from tests.flows import make_flow
from tests.spark.copies import OFFSETS, SETTINGS, T0, Copy, assign
from tests.wire.fake_broker import PRODUCE, FakeCluster, Request


class CopyElsewhere(Copy):
    """Records go to `records`, positions to `target`."""

    def __init__(self, folder: Path, source: FakeCluster, target: FakeCluster) -> None:
        super().__init__(folder, source, target)
        self.records = FakeCluster()
        self.records.create_topic("a.t")

    def start_elsewhere(self) -> CopyLoop:
        servers = (self.source.bootstrap_servers, self.target.bootstrap_servers)
        flow = make_flow(self._folder, SETTINGS, *servers)
        props = {
            **flow.connector_props["MirrorSourceConnector"],
            "producer.override.bootstrap.servers": ",".join(self.records.bootstrap_servers),
        }
        message = start_message(props, flow.worker_props, 5, [assign(T0, None)])
        self._loop = EventLoop()
        self._copy = CopyLoop(parse_start(message), self._loop)
        return self._copy

    def close(self) -> None:
        super().close()
        self.records.__exit__(None, None, None)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[CopyElsewhere]:
    with FakeCluster() as source, FakeCluster() as target:
        source.create_topic("t")
        target.create_topic(OFFSETS, partitions=5)
        copy = CopyElsewhere(tmp_path, source, target)
        yield copy
        copy.close()


def test_the_last_positions_are_stored_also_behind_a_commit_in_flight(
    copy: CopyElsewhere,
) -> None:
    arrived, may_respond = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        arrived.set()
        assert may_respond.wait(20)

    copy.target.intercept(PRODUCE, hold)
    loop = copy.start_elsewhere()
    copy.source.write(T0, [b"0"])
    copy.run_until(lambda: loop.metrics.records == 1)
    loop._committer.commit()
    copy.run_until(arrived.is_set)
    copy.source.write(T0, [b"1"])
    copy.run_until(lambda: loop.metrics.records == 2)
    may_respond.set()
    copy.stop()
    assert copy.stored() == {T0: 1}
    assert loop.is_clean
