"""Batches damaged on the source's disk: one partition waits or skips, the others are copied."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.spark import damage
from sparkmirror.types import TopicPartition
from tests.spark.copies import OFFSETS, T0, T1, Copy
from tests.wire.fake_broker import FakeCluster

SKIP = {"errors.tolerance": "all"}
LENGTH_AT, LAST_DELTA_AT, RECORDS_AT = 8, 23, 61


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copy]:
    monkeypatch.setattr(damage, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(damage, "LOOK_SECONDS", 0.05)
    with FakeCluster() as source, FakeCluster() as target:
        source.create_topic("t", partitions=2)
        target.create_topic("a.t", partitions=2)
        target.create_topic(OFFSETS, partitions=5)
        copy = Copy(tmp_path, source, target)
        yield copy
        copy.close()


def write(copy: Copy, *values: bytes, tp: TopicPartition = T0) -> None:
    """Each in two records of a batch of its own."""
    for value in values:
        copy.source.write(tp, [value, value + b"'"])


def both(*values: bytes) -> list[bytes]:
    return [each for value in values for each in (value, value + b"'")]


def change(copy: Copy, number: int, at: int, data: bytes) -> bytes:
    """Overwrite bytes of one batch on the source's disk; returns the old ones."""
    batches = copy.source.log("t").batches
    batch = batches[number]
    old = batch.data[at : at + len(data)]
    changed = batch.data[:at] + data + batch.data[at + len(data) :]
    batches[number] = batch._replace(data=changed)
    return old


def wait_until_failed(copy: Copy) -> str:
    copy.run_until(lambda: T0 in copy.copy.problems and "FAILED" in copy.copy.problems[T0].text)
    return copy.copy.problems[T0].text


def test_a_damaged_batch_stops_its_partition_only_and_until_it_is_repaired(
    copy: Copy, caplog: pytest.LogCaptureFixture
) -> None:
    write(copy, b"a", b"b", b"damaged", b"d")
    old = change(copy, 2, RECORDS_AT, b"\xff\xff\xff")
    copy.start({T0: 0, T1: 0})
    text = wait_until_failed(copy)
    assert copy.copied(T0) == both(b"a", b"b")  # what comes before it is copied
    assert "fetch t-0 from 4 on 'a': read batch at offset 4: CRC is" in text
    assert "this partition stands still at offset 4, the others go on" in text
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == [
        text
    ]
    assert copy.copy.behind() is None
    write(copy, b"other", tp=T1)
    copy.run_until(lambda: copy.copied(T1) == both(b"other"))
    change(copy, 2, RECORDS_AT, old)
    copy.run_until(lambda: not copy.copy.problems and copy.copy.behind() == 0)
    assert copy.copied(T0) == both(b"a", b"b", b"damaged", b"d")
    assert copy.copy.skipped_records == 0


@pytest.mark.parametrize("number", [0, 1, 2], ids=["first", "middle", "last"])
def test_a_damaged_batch_is_skipped_and_named_when_errors_are_tolerated(
    copy: Copy, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    values = [b"a", b"b", b"c"]
    write(copy, *values)
    change(copy, number, RECORDS_AT + 1, b"\xff\xff\xff")
    copy.start({T0: 0}, SKIP)
    del values[number]
    copy.run_until(
        lambda: (
            copy.copied(T0) == both(*values)
            and copy.copy.skipped_records == 2
            and copy.copy.behind() == 0
        )
    )
    (line,) = [record.message for record in caplog.records if "skipped" in record.message]
    first = 2 * number
    assert f"offsets {first} to {first + 1} of t-0 on 'a' (2 offsets): damaged" in line
    write(copy, b"later")
    copy.run_until(lambda: copy.copied(T0) == both(*values, b"later"))
    copy.stop()
    assert copy.stored() == {T0: 7}


def test_damage_that_was_on_the_way_is_gone_when_the_batch_comes_again(copy: Copy) -> None:
    write(copy, b"a", b"b")
    old = change(copy, 1, RECORDS_AT, b"\xff")
    copy.start({T0: 0})
    copy.run_until(lambda: T0 in copy.copy.problems)
    change(copy, 1, RECORDS_AT, old)
    copy.run_until(lambda: copy.copied(T0) == both(b"a", b"b") and not copy.copy.problems)


@pytest.mark.parametrize(
    ("at", "data"),
    [
        pytest.param(LENGTH_AT, struct.pack(">i", 1 << 20), id="longer than the response"),
        pytest.param(LENGTH_AT, struct.pack(">i", 7), id="shorter than a header"),
        pytest.param(LENGTH_AT, struct.pack(">i", -5), id="negative"),
    ],
)
def test_a_batch_of_which_nobody_knows_where_it_ends_is_not_skipped(
    copy: Copy, at: int, data: bytes
) -> None:
    write(copy, b"a", b"b", b"c")
    change(copy, 1, at, data)
    write(copy, b"other", tp=T1)
    copy.start({T0: 0, T1: 0}, SKIP)
    text = wait_until_failed(copy)
    assert "stands still at offset 2" in text
    assert (copy.copied(T0), copy.copied(T1)) == (both(b"a"), both(b"other"))
    assert copy.copy.skipped_records == 0


def test_a_damaged_base_offset_does_not_send_the_copy_ahead(copy: Copy) -> None:
    """It is not part of the CRC."""
    write(copy, b"a", b"b", b"c")
    change(copy, 1, 0, struct.pack(">q", 1 << 40))
    copy.start({T0: 0})
    text = wait_until_failed(copy)
    assert "the log ends at 6" in text
    assert copy.copied(T0) == both(b"a")


def test_a_damaged_last_offset_is_not_believed(copy: Copy) -> None:
    write(copy, b"a", b"b", b"c", b"d")
    change(copy, 1, LAST_DELTA_AT, struct.pack(">i", 5))
    copy.start({T0: 0}, SKIP)
    copy.run_until(lambda: copy.copied(T0) == both(b"a", b"c", b"d"))
    assert copy.copy.skipped_records == 2
