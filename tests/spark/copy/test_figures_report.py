"""What a task reports of its partitions, with a copy loop between two fake clusters."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sparkmirror.batches.header import ATTRIBUTES, ATTRIBUTES_AT, LOG_APPEND_TIME, write_crc
from sparkmirror.batches.records import Record, encode
from sparkmirror.spark.copy import figures_report, partition_problems
from sparkmirror.spark.figures import PartitionFigures, decode_row
from sparkmirror.types import TopicPartition
from tests.spark.copies import T0, T1, Copy, assign
from tests.wire.fake_broker import FETCH, PRODUCE, Do


def rows(message: dict[str, Any]) -> dict[TopicPartition, PartitionFigures]:
    """The rows of a message."""
    found = [decode_row(row) for row in message.get("rows", ())]
    return {row.source: row for row in found}


def write(copy: Copy, tp: TopicPartition, *timestamps: int) -> None:
    """One batch."""
    records = [Record(at, when, None, b"v") for at, when in enumerate(timestamps)]
    copy.source.log(tp.topic, tp.partition).append(bytes(encode(records)))


def now_ms() -> int:
    return int(time.time() * 1000)


def settled(copy: Copy, count: int, tp: TopicPartition = T0) -> None:
    """Until so many records were copied and acknowledged."""
    copy.run_until(lambda: copy.copy._partitions.by_source[tp].counts.records == count)


def test_the_first_report_is_about_all_partitions_the_next_about_changes(copy: Copy) -> None:
    loop = copy.start({T0: None, T1: None})
    first = loop.figures.take()
    assert first["is_first"]
    assert rows(first).keys() == {T0, T1}
    write(copy, T0, now_ms() - 5000, now_ms() - 4000)
    settled(copy, 2)
    found = rows(loop.figures.take())
    assert T0 in found
    row = found[T0]
    assert (row.position, row.end_offset, row.oldest_ms, row.behind) == (2, 2, None, 0)
    assert (row.records, row.problem) == (2, "")
    assert row.target == TopicPartition("a.t", 0)
    assert 4000 <= row.latency.least <= row.latency.most < 5000 + 20_000
    assert row.age.count == 2
    message = loop.figures.take()
    assert rows(message) == {}
    assert message == {"type": "figures"}


def test_what_waits_for_the_target_is_the_oldest_record(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_ms, second_ms = now_ms() - 60_000, now_ms() - 1000
    loop = copy.start({T0: None})
    write(copy, T0, first_ms)
    settled(copy, 1)
    copy.target.intercept(PRODUCE, lambda _: Do(code=7))  # REQUEST_TIMED_OUT
    write(copy, T0, second_ms, second_ms + 500)
    copy.run_until(lambda: bool(loop.problems))
    row = rows(loop.figures.take())[T0]
    assert (row.position, row.end_offset, row.oldest_ms) == (1, 3, second_ms)
    assert row.problem == ""  # it may pass within moments
    monkeypatch.setattr(partition_problems, "PASSING_SECONDS", 0.0)
    row = rows(loop.figures.take())[T0]
    assert row.problem
    assert row.end_offset is None  # it grows, and nothing is fetched
    assert (row.position, row.oldest_ms) == (1, second_ms)
    assert rows(loop.figures.take()) == {}


def test_absurd_timestamps_are_unknown(copy: Copy) -> None:
    loop = copy.start({T0: None})
    copy.target.intercept(PRODUCE, lambda _: Do(code=7))
    write(copy, T0, now_ms() + 10**9)
    copy.run_until(lambda: bool(loop.problems))
    row = rows(loop.figures.take())[T0]
    assert (row.position, row.behind, row.oldest_ms) == (0, 1, None)


def test_what_is_not_fetched_yet_is_no_older_than_what_was(copy: Copy) -> None:
    loop = copy.start({T0: None})
    write(copy, T0, old := now_ms() - 9000)
    settled(copy, 1)
    loop.figures.take()
    fetched = loop._partitions.by_source[T0].fetched
    assert fetched is not None
    fetched.end_offset = 50
    row = rows(loop.figures.take())[T0]
    assert (row.position, row.end_offset, row.oldest_ms) == (1, 50, old)


def test_markers_at_the_end_of_a_log_are_not_behind(copy: Copy) -> None:
    loop = copy.start({T0: None})
    write(copy, T0, now_ms())
    settled(copy, 1)
    batch = encode([Record(0, now_ms(), b"\0\0\0\0", b"\0\0\0\0\0\0")])
    batch[22] |= 0x30  # a transaction's marker
    write_crc(batch)
    copy.source.log("t", 0).append(bytes(batch))
    partition = loop._partitions.by_source[T0]
    copy.run_until(lambda: partition.fetched is not None and partition.fetched.next_offset == 2)
    row = rows(loop.figures.take())[T0]
    assert (row.position, row.end_offset, row.records) == (2, 2, 1)


def test_a_partition_that_left_is_reported_with_its_last_counts(copy: Copy) -> None:
    loop = copy.start({T0: None, T1: None})
    write(copy, T0, now_ms())
    settled(copy, 1)
    loop.figures.take()
    write(copy, T0, now_ms(), now_ms())
    settled(copy, 3)
    loop.revoke([T0])
    copy.run_until(lambda: T0 not in loop._partitions.by_source)
    message = loop.figures.take()
    assert [decode_row(row).records for row in message["gone"]] == [3]
    assert T0 not in rows(message)
    loop.assign([assign(T0, 3)])
    write(copy, T0, now_ms())
    settled(copy, 1)
    assert rows(loop.figures.take())[T0].records == 1


def test_lost_records_are_counted_for_their_partition(copy: Copy) -> None:
    for number in range(5):
        write(copy, T0, now_ms() + number)
    copy.source.log("t", 0).delete_before(3)
    loop = copy.start({T0: 1})
    settled(copy, 2)
    assert rows(loop.figures.take())[T0].lost_records == 2


def test_a_recreated_topic_starts_over(copy: Copy) -> None:
    write(copy, T0, now_ms(), now_ms())
    loop = copy.start({T0: None})
    settled(copy, 2)
    copy.source.delete_topic("t")
    copy.source.create_topic("t")
    write(copy, T0, now_ms())
    settled(copy, 3)
    row = rows(loop.figures.take())[T0]
    assert (row.position, row.end_offset, row.records) == (1, 1, 3)


def test_more_changes_than_fit_come_with_the_next_report(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.source.create_topic("t", 7)
    copy.target.create_topic("a.t", 7)
    partitions = [TopicPartition("t", at) for at in range(7)]
    loop = copy.start(dict.fromkeys(partitions, 0))
    for tp in partitions:
        write(copy, tp, now_ms())
    copy.run_until(lambda: loop.metrics.records == 7)
    assert len(rows(loop.figures.take())) == 7  # the first has all
    for tp in partitions:
        write(copy, tp, now_ms())
    copy.run_until(lambda: loop.metrics.records == 14)
    monkeypatch.setattr(figures_report, "MOST_ROWS", 3)
    reports = [rows(loop.figures.take()).keys() for _ in range(4)]
    assert [len(report) for report in reports] == [3, 3, 1, 0]
    assert set().union(*reports) == set(partitions)


def test_a_source_that_cannot_be_reached_is_a_problem_and_its_end_unknown(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_problems, "PASSING_SECONDS", 0.0)
    loop = copy.start({T0: None})
    write(copy, T0, now_ms())
    settled(copy, 1)
    copy.source.intercept(FETCH, lambda _: Do(drop=True))
    copy.source.write(T0, [b"x"])
    copy.run_until(lambda: bool(loop._fetcher.troubled))
    loop.log_problems()
    row = rows(loop.figures.take())[T0]
    assert row.problem
    assert row.end_offset is None


def test_of_a_topic_with_append_time_that_time_counts(copy: Copy) -> None:
    loop = copy.start({T0: None})
    batch = encode([Record(0, 1000, None, b"v"), Record(1, now_ms() - 5000, None, b"v")])
    ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, LOG_APPEND_TIME)
    write_crc(batch)
    copy.source.log("t", 0).append(bytes(batch))
    settled(copy, 2)
    row = rows(loop.figures.take())[T0]
    for window in (row.age, row.latency):
        assert 5000 <= window.least <= window.most < 5000 + 20_000
        assert window.count == 2


def test_of_thousands_of_idle_partitions_nothing_is_sent(copy: Copy) -> None:
    partitions = [TopicPartition(f"t{at}", 0) for at in range(3000)]
    loop = copy.start(dict.fromkeys([T0, *partitions], 0))
    assert len(loop.figures.take()["rows"]) == 3001
    assert loop.figures.take() == {"type": "figures"}
    write(copy, T0, now_ms())
    settled(copy, 1)
    assert rows(loop.figures.take()).keys() == {T0}
