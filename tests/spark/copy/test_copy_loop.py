"""The copy itself, between two fake clusters, without Spark."""

from __future__ import annotations

import time

import pytest

from sparkmirror.batches.records import Record, encode
from sparkmirror.errors import DataLossError, RefusedError, TransportError
from sparkmirror.spark.copy import copy_loop
from sparkmirror.spark.copy.copy_loop import REST_SECONDS, WAITING_BYTES
from tests.spark.copies import T0, T1, Copy, assign
from tests.wire.fake_broker import PRODUCE, Do, once


def test_records_are_copied_and_their_positions_stored_at_the_end(copy: Copy) -> None:
    copy.source.write(T0, [b"0", b"1"])
    copy.source.write(T1, [b"x"])
    loop = copy.start({T0: None, T1: None})
    copy.wait_for(2)
    copy.wait_for(1, T1)
    copy.source.write(T0, [b"2"])
    assert copy.wait_for(3) == [b"0", b"1", b"2"]
    assert copy.copied(T1) == [b"x"]
    copy.run_until(lambda: loop.metrics.records == 4)
    assert loop.metrics.behind() == 0
    assert loop.metrics.bytes > 0
    assert copy.stored() == {}
    copy.stop()
    assert loop.is_clean
    assert copy.stored() == {T0: 2, T1: 0}


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the loop has rested, each time."""
    taken: list[float] = []
    monkeypatch.setattr(copy_loop, "sleep", taken.append)
    return taken


def test_the_loop_rests_while_the_target_has_much_to_do(
    copy: Copy, rests: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_loop, "BUSY_BYTES", 100)
    values = [bytes([number]) * 1_000 for number in range(50)]
    for value in values:
        copy.source.write(T0, [value])
    copy.start({T0: None})
    assert copy.wait_for(50) == values
    # All may have arrived with one request; then its response is still to come, in the next turn.
    copy.run_until(lambda: bool(rests))
    assert set(rests) == {REST_SECONDS}
    copy.stop()


def test_a_trickle_is_not_kept_waiting(copy: Copy, rests: list[float]) -> None:
    copy.start({T0: None})
    for number in range(20):
        copy.source.write(T0, [b"%d" % number])
        copy.wait_for(number + 1)
    assert rests == []


def test_positions_go_to_the_connectors_own_topic_if_it_has_one(copy: Copy) -> None:
    copy.target.create_topic("mine", partitions=5)
    copy.source.write(T0, [b"0", b"1"])
    copy.start({T0: None}, {"a->b.offsets.storage.topic": "mine"})
    copy.wait_for(2)
    copy.stop()
    rows = [record.value for at in range(5) for record in copy.target.log("mine", at).records()]
    assert rows[-1] == b'{"offset":1}'
    assert copy.stored() == {}


def test_a_copy_continues_at_its_position(copy: Copy) -> None:
    copy.source.write(T0, [b"0", b"1", b"2"])
    loop = copy.start({T0: 2})
    assert copy.wait_for(1) == [b"2"]
    copy.stop()
    assert loop.is_clean
    assert copy.stored() == {T0: 2}


def test_topics_are_active_while_they_get_records(copy: Copy) -> None:
    copy.source.write(T0, [b"0", b"1"])
    loop = copy.start({T0: 1, T1: None})
    assert loop.metrics.take_active_topics() == []
    copy.run_until(lambda: loop.metrics.records == 1)
    assert loop.metrics.take_active_topics() == ["a.t"]
    assert loop.metrics.take_active_topics() == []
    copy.source.write(T1, [b"x"])
    copy.run_until(lambda: loop.metrics.records == 2)
    assert loop.metrics.take_active_topics() == ["a.t"]


def test_positions_are_stored_now_and_then(copy: Copy) -> None:
    copy.source.write(T0, [b"0"])
    copy.start({T0: None}, {"b.offset.flush.interval.ms": "20"})
    copy.run_until(lambda: copy.stored() == {T0: 0})
    copy.source.write(T0, [b"1"])
    copy.run_until(lambda: copy.stored() == {T0: 1})


def test_nothing_is_copied_twice_when_the_target_hangs_up(copy: Copy) -> None:
    copy.target.intercept(PRODUCE, once(Do(apply=True, drop=True)))
    for at in range(30):
        copy.source.write(T0, [b"%d" % at])
    copy.start({T0: None})
    copy.wait_for(30)
    copy.run_until(lambda: copy.copy.metrics.records == 30)
    assert copy.copied(T0) == [b"%d" % at for at in range(30)]


def test_batches_too_large_for_the_target_are_split(copy: Copy) -> None:
    values = [b"%d " % at + bytes(1000) for at in range(20)]
    copy.target.log("a.t").max_message_bytes = 3000
    copy.source.write(T0, values)
    copy.source.write(T0, [b"last"])
    loop = copy.start({T0: None})
    assert copy.wait_for(21) == [*values, b"last"]
    copy.stop()
    assert loop.is_clean
    assert copy.stored() == {T0: 20}


def test_a_record_too_large_for_the_target_ends_the_task_with_its_offset(copy: Copy) -> None:
    copy.target.log("a.t").max_message_bytes = 3000
    copy.source.write(T0, [b"0"])
    copy.source.write(T0, [bytes(5000)])
    loop = copy.start({T0: None})
    with pytest.raises(RefusedError, match=r"offsets 1 to 1 of t-0 .*MESSAGE_TOO_LARGE.*errors"):
        loop.run()
    assert copy.copied(T0) == [b"0"]
    assert copy.stored() == {T0: 0}


def test_a_record_too_large_for_the_target_is_skipped_and_counted_if_so_wanted(
    copy: Copy, caplog: pytest.LogCaptureFixture
) -> None:
    copy.target.log("a.t").max_message_bytes = 3000
    copy.source.write(T0, [b"0", bytes(5000), b"2"])
    loop = copy.start({T0: None}, {"a->b.errors.tolerance": "all"})
    assert copy.wait_for(2) == [b"0", b"2"]
    copy.stop()
    assert loop.skipped_records == 1
    assert "offsets 1 to 1 of t-0" in caplog.text
    assert copy.stored() == {T0: 2}


def test_a_refusal_that_is_not_about_records_ends_the_task_also_then(copy: Copy) -> None:
    copy.target.intercept(PRODUCE, lambda _: Do(code=44))
    copy.source.write(T0, [b"0"])
    loop = copy.start({T0: None}, {"a->b.errors.tolerance": "all"})
    with pytest.raises(RefusedError, match="POLICY_VIOLATION"):
        loop.run()


def test_a_topic_that_may_not_be_written_waits_until_it_may(copy: Copy) -> None:
    denied = True
    copy.target.intercept(PRODUCE, lambda _: Do(code=29) if denied else None)
    copy.source.write(T0, [b"0", b"1"])
    loop = copy.start({T0: None})
    copy.run_until(lambda: T0 in loop.problems)
    text = loop.problems[T0].text
    assert text.startswith(
        "produce to a.t-0 on 'b': TOPIC_AUTHORIZATION_FAILED: User:ANONYMOUS lacks WRITE on topic "
        "'a.t' of cluster 'b'; its partitions wait and lose nothing; the others continue; "
        "to allow it: kafka-acls.sh "
    )
    denied = False
    assert copy.wait_for(2) == [b"0", b"1"]
    copy.run_until(lambda: not loop.problems)


def test_a_target_that_takes_nothing_ends_the_task_after_the_delivery_timeout(copy: Copy) -> None:
    copy.source.write(T0, [b"0"])
    copy.target.intercept(PRODUCE, lambda _: Do(drop=True))
    timeouts = {"b.producer.delivery.timeout.ms": "300", "b.producer.request.timeout.ms": "300"}
    copy.start({T0: 0}, timeouts)
    with pytest.raises(TransportError, match=r"accepted nothing of a\.t-0 for 0\.3 s"):
        copy.run_until(lambda: False)


def test_what_retention_deleted_is_counted_and_logged(
    copy: Copy, caplog: pytest.LogCaptureFixture
) -> None:
    copy.source.write(T0, [b"0", b"1", b"2"])
    copy.source.write(T0, [b"3"])
    copy.source.log("t").delete_before(3)
    loop = copy.start({T0: 1})
    assert copy.wait_for(1) == [b"3"]
    assert loop.lost_records == 2
    assert "offsets 1 to 2 were deleted by retention" in caplog.text


def test_a_copy_by_duration_begins_with_the_first_record_that_is_young_enough(copy: Copy) -> None:
    now_ms = int(time.time() * 1000)
    for age_hours in (30, 9, 5, 1):
        stamped = Record(0, now_ms - age_hours * 3_600_000, None, b"%d" % age_hours)
        copy.source.log("t").append(bytes(encode([stamped])))
    copy.source.write(T1, [b"all are older"])
    reset = {"a.consumer.auto.offset.reset": "by_duration:PT6H"}
    loop = copy.start({T0: None, T1: None}, reset)
    assert copy.wait_for(2) == [b"5", b"1"]
    # Stored at once: after a crash, the clock would choose an offset behind records not yet copied.
    copy.run_until(lambda: {T0, T1} <= copy.stored().keys())
    assert copy.stored()[T1] == 0
    copy.source.write(T1, [b"new"])
    assert copy.wait_for(1, T1) == [b"new"]
    assert loop.lost_records == 0


def test_a_position_that_is_gone_ends_the_task_if_so_wanted(copy: Copy) -> None:
    copy.source.write(T0, [b"0"])
    loop = copy.start({T0: 5}, {"a.consumer.auto.offset.reset": "none"})
    with pytest.raises(DataLossError, match="t-0: position 5 is outside the log"):
        loop.run()


def test_a_recreated_topic_is_copied_from_its_start(
    copy: Copy, caplog: pytest.LogCaptureFixture
) -> None:
    copy.source.write(T0, [b"0", b"1"])
    copy.start({T0: None, T1: None})
    copy.wait_for(2)
    copy.source.create_topic("t", partitions=2)
    copy.source.write(T0, [b"new"])
    assert copy.wait_for(3) == [b"0", b"1", b"new"]
    assert "was deleted and recreated" in caplog.text
    copy.stop()
    assert copy.stored()[T0] == 0


def test_a_missing_target_topic_is_reported_and_awaited(copy: Copy) -> None:
    copy.target.delete_topic("a.t")
    copy.source.write(T0, [b"0"])
    loop = copy.start({T0: None})
    copy.run_until(lambda: loop.missing.topics == {"a.t"})
    assert "UNKNOWN_TOPIC_OR_PARTITION" in loop.problems[T0].text
    copy.target.create_topic("a.t", partitions=2)
    assert copy.wait_for(1) == [b"0"]
    copy.run_until(lambda: not loop.problems)


def test_partitions_come_and_go_while_the_others_are_copied(copy: Copy) -> None:
    copy.source.write(T0, [b"0"])
    copy.source.write(T1, [b"x"])
    loop = copy.start({T0: None})
    copy.wait_for(1)
    loop.assign([assign(T1, None)])
    copy.wait_for(1, T1)
    loop.revoke([T0])
    copy.run_until(lambda: loop.metrics.partitions == 1)
    assert copy.stored()[T0] == 0
    copy.source.write(T0, [b"1"])
    copy.source.write(T1, [b"y"])
    copy.wait_for(2, T1)
    assert copy.copied(T0) == [b"0"]
    loop.assign([assign(T0, 1)])
    assert copy.wait_for(2) == [b"0", b"1"]


def test_a_partition_that_returns_before_it_has_left_is_not_copied_twice(copy: Copy) -> None:
    copy.source.write(T0, [b"0", b"1"])
    loop = copy.start({T0: None})
    copy.wait_for(2)
    loop.revoke([T0])
    loop.assign([assign(T0, 0)])
    copy.source.write(T0, [b"2"])
    copy.wait_for(3)
    copy.stop()
    assert copy.copied(T0) == [b"0", b"1", b"2"]


def test_a_slow_target_slows_the_fetch(copy: Copy) -> None:
    """What waits is bounded by the settings, not by what the source has."""
    fetch_bytes = 1 << 20
    copy.target.delete_topic("a.t")
    for _ in range(40):
        copy.source.write(T0, [bytes(500_000)])
    copy.target.create_topic("a.t", partitions=2)
    copy.target.intercept(PRODUCE, lambda _: time.sleep(0.02))
    loop = copy.start({T0: None}, {"a.consumer.fetch.max.bytes": str(fetch_bytes)})
    most = 0

    def copied() -> bool:
        nonlocal most
        most = max(most, loop._producer.accumulator.waiting_bytes)
        return len(copy.target.log("a.t").batches) >= 40

    copy.run_until(copied)
    assert 0 < most <= WAITING_BYTES + 2 * fetch_bytes
