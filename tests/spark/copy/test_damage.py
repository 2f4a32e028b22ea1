"""Batches damaged on the source's disk: one partition waits or skips, the others are copied."""

from __future__ import annotations

import logging
import struct

import pytest

from sparkmirror.batches.forward import OutgoingBatch, Plan
from sparkmirror.errors import BatchError
from sparkmirror.spark.copy import damage
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.fetcher import Records
from sparkmirror.wire.net.buffer_pool import BufferPool
from tests.spark.copies import T0, T1, Copy

SKIP = {"errors.tolerance": "all"}
LENGTH_AT, LAST_DELTA_AT, RECORDS_AT = 8, 23, 61


@pytest.fixture(autouse=True)
def retry_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(damage, "LOOK_SECONDS", 0.05)


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
    assert "this partition waits at offset 4, the others continue" in text
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == [
        text
    ]
    assert copy.copy.metrics.behind() is None
    write(copy, b"other", tp=T1)
    copy.run_until(lambda: copy.copied(T1) == both(b"other"))
    change(copy, 2, RECORDS_AT, old)
    copy.run_until(lambda: not copy.copy.problems and copy.copy.metrics.behind() == 0)
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
            and copy.copy.metrics.behind() == 0
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
def test_a_batch_whose_end_is_unknown_is_not_skipped(copy: Copy, at: int, data: bytes) -> None:
    write(copy, b"a", b"b", b"c")
    change(copy, 1, at, data)
    write(copy, b"other", tp=T1)
    copy.start({T0: 0, T1: 0}, SKIP)
    text = wait_until_failed(copy)
    assert "waits at offset 2" in text
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


def planned(next_offset: int, *ranges: tuple[int, int]) -> Plan:
    """Of batches with these first and last offsets."""
    batches = [
        OutgoingBatch(bytearray(), first, last, last - first + 1, 0, 0, None, 0)
        for first, last in ranges
    ]
    return Plan(batches, next_offset)


def records(next_offset: int, end_offset: int) -> Records:
    return Records(T0, next_offset, memoryview(b""), BufferPool(0).take(1), (), end_offset)


@pytest.mark.parametrize(
    ("plan", "next_offset", "end_offset"),
    [
        pytest.param(planned(100, (0, 49), (50, 99)), 0, 100, id="up to the end"),
        pytest.param(planned(300, (90, 199), (200, 299)), 90, 100, id="appended since"),
        pytest.param(planned(201, (90, 199)), 90, 100, id="and a marker"),
        pytest.param(planned(900_000, (0, 9), (899_990, 899_999)), 0, 900_000, id="compacted"),
        pytest.param(planned(900_001, (899_999, 900_000)), 0, 900_000, id="compacted, appended"),
        pytest.param(planned(200), 0, 200, id="nothing to copy"),
    ],
)
def test_offsets_that_a_log_can_have(plan: Plan, next_offset: int, end_offset: int) -> None:
    damage.check_progress(plan, records(next_offset, end_offset))


@pytest.mark.parametrize(
    ("plan", "next_offset", "end_offset"),
    [
        pytest.param(planned(0), 0, 100, id="no batch"),
        pytest.param(planned(1_000_100, (0, 9), (1_000_000, 1_000_099)), 0, 20, id="last"),
        pytest.param(planned(1_000_100, (1_000_000, 1_000_099)), 0, 20, id="only one"),
        pytest.param(planned(1_000_010, (0, 9)), 0, 20, id="one that is not copied"),
        pytest.param(
            planned(1_000_110, (0, 9), (1_000_000, 1_000_099), (1_000_100, 1_000_109)),
            0,
            20,
            id="middle",
        ),
    ],
)
def test_offsets_that_no_log_can_have(plan: Plan, next_offset: int, end_offset: int) -> None:
    with pytest.raises(BatchError):
        damage.check_progress(plan, records(next_offset, end_offset))
