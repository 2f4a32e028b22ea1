"""What was read ahead may take all the memory for responses, and is still copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.spark.copy import copy_loop
from tests.spark.copies import OFFSETS, T0, Copy
from tests.wire.fake_broker import FakeCluster
from tests.wire.long_lines import make_asks_small, take_all_lines_for_long

VALUES = [b"%05d" % at + bytes(300) for at in range(400)]
SMALL = {"a.consumer.max.partition.fetch.bytes": "2000", "a.consumer.fetch.max.bytes": "2000"}


def test_buffers_that_are_all_kept_do_not_stop_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_all_lines_for_long(monkeypatch)
    make_asks_small(monkeypatch)
    # One record may wait for the target, and two of the smallest buffers are all there are.
    monkeypatch.setattr(copy_loop, "WAITING_BYTES", 1)
    monkeypatch.setattr(copy_loop, "BUFFER_BYTES", 2 << 16)
    with FakeCluster() as source, FakeCluster() as target:
        source.create_topic("t")
        target.create_topic("a.t")
        target.create_topic(OFFSETS, partitions=5)
        for value in VALUES:
            source.write(T0, [value])
        copy = Copy(tmp_path, source, target)
        copy.start({T0: 0}, SMALL)
        assert copy.wait_for(len(VALUES)) == VALUES
        copy.stop()
        copy.close()
