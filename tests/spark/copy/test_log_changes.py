"""A source log that is not, or is no longer, the one that was copied: truncated, cut, recreated."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore, StoredPosition
from sparkmirror.errors import DataLossError
from tests.flows import make_flow
from tests.spark.copies import OFFSETS, T0, Copy, assign
from tests.wire.fake_broker import PRODUCE, Do, FakeCluster

OLD = [b"old %d" % at for at in range(10)]
NEW = [b"new %d" % at for at in range(5, 15)]
LATEST = {"a.consumer.auto.offset.reset": "latest"}


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    with FakeCluster() as source, FakeCluster() as target:
        source.create_topic("t")
        target.create_topic("a.t")
        target.create_topic(OFFSETS, partitions=5)
        copy = Copy(tmp_path, source, target)
        yield copy
        copy.close()


@pytest.fixture
def positions(copy: Copy, tmp_path: Path) -> KafkaOffsetBackingStore:
    """What a worker would read, at any time."""
    flow = make_flow(tmp_path, target=copy.target.bootstrap_servers)
    store = KafkaOffsetBackingStore(flow.worker, "MirrorSourceConnector", "a")
    store.partitions = 5
    return store


def write_old(copy: Copy) -> None:
    for value in OLD:
        copy.source.write(T0, [value])


def stored_next(positions: KafkaOffsetBackingStore) -> int | None:
    found = positions.load().get(T0)
    return None if found is None else found.next_offset


# -- an unclean election --------------------------------------------------------------------------


def test_records_of_a_log_that_was_truncated_and_grew_again_are_copied_and_the_lost_ones_named(
    copy: Copy, caplog: pytest.LogCaptureFixture
) -> None:
    write_old(copy)
    copy.start({T0: None})
    copy.wait_for(10)
    copy.source.elect_unclean(T0, 5, NEW)
    assert copy.wait_for(20) == OLD + NEW
    assert (
        "t-0 on 'a' was truncated by an unclean leader election: source offsets 5 to 9, which were "
        "copied, are gone there; their records exist only on the target, within offsets 5 to 9 of "
        "a.t-0. Copying continues at source offset 5"
    ) in caplog.text
    copy.stop()
    assert copy.stored() == {T0: 14}


def test_the_position_after_a_truncation_is_stored_at_once(
    copy: Copy, positions: KafkaOffsetBackingStore
) -> None:
    write_old(copy)
    loop = copy.start({T0: 10}, {"b.offset.flush.interval.ms": "600000"})
    copy.source.write(T0, [b"10"])
    copy.wait_for(1)
    copy.target.intercept(PRODUCE, _refuse_records)
    copy.source.elect_unclean(T0, 5, NEW)
    copy.run_until(lambda: stored_next(positions) == 5)
    assert loop.metrics.records == 1


def _refuse_records(request: object) -> Do | None:
    """Positions are stored, records are not."""
    topics = request.body.topic_data  # type: ignore[attr-defined]
    return Do(code=6) if any(topic.name == "a.t" for topic in topics) else None


def test_a_stored_position_of_a_truncated_log_is_noticed_by_the_next_task(
    copy: Copy, positions: KafkaOffsetBackingStore, caplog: pytest.LogCaptureFixture
) -> None:
    write_old(copy)
    copy.start({T0: None})
    copy.wait_for(10)
    copy.stop()
    copy.source.elect_unclean(T0, 5, NEW)
    stored = positions.load()[T0]
    assert stored.provenance.epochs == ((0, 0),)
    _start_again(copy, stored)
    assert copy.wait_for(20) == OLD + NEW
    assert "within offsets 5 to 9 of a.t-0" in caplog.text


def _start_again(copy: Copy, stored: StoredPosition) -> None:
    copy.copy.close()
    copy.start({})
    copy.copy.assign([assign(T0, stored.next_offset)._replace(provenance=stored.provenance)])


def test_what_is_under_way_when_the_log_is_truncated_makes_no_position(
    copy: Copy, positions: KafkaOffsetBackingStore, caplog: pytest.LogCaptureFixture
) -> None:
    write_old(copy)
    hold = threading.Event()
    copy.target.intercept(PRODUCE, lambda r: _wait(hold) if _is_of_records(r) else None)
    copy.start({T0: None})
    copy.run_until(lambda: bool(copy.copy._producer.accumulator.sent_bytes))
    copy.source.elect_unclean(T0, 5)
    copy.run_until(lambda: "was truncated" in caplog.text)
    assert copy.copied(T0) == []
    hold.set()
    copy.wait_for(10)
    copy.run_until(lambda: copy.copy._producer.idle)
    copy.stop()
    assert stored_next(positions) == 5


def _wait(event: threading.Event) -> None:
    assert event.wait(20)


def _is_of_records(request: object) -> bool:
    return any(topic.name == "a.t" for topic in request.body.topic_data)  # type: ignore[attr-defined]


def test_a_truncation_ends_the_task_if_so_wanted(copy: Copy) -> None:
    write_old(copy)
    loop = copy.start({T0: 0}, {"a.consumer.auto.offset.reset": "none"})
    copy.wait_for(10)
    copy.source.elect_unclean(T0, 5, NEW)
    with pytest.raises(DataLossError, match=r"source offsets 5 to 9.*auto.offset.reset=none"):
        loop.run()


# -- positions that were decided ------------------------------------------------------------------


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 0), ("latest", 3)])
def test_the_choice_for_a_position_beyond_the_end_is_stored_at_once(
    copy: Copy, positions: KafkaOffsetBackingStore, reset: str, expected: int
) -> None:
    for value in OLD[:3]:
        copy.source.write(T0, [value])
    copy.target.intercept(PRODUCE, _refuse_records)
    copy.start(
        {T0: 10},
        {"a.consumer.auto.offset.reset": reset, "b.offset.flush.interval.ms": "600000"},
    )
    copy.run_until(lambda: stored_next(positions) == expected)


def test_the_end_of_an_empty_log_is_stored_at_once_with_latest(
    copy: Copy, positions: KafkaOffsetBackingStore
) -> None:
    copy.start({T0: None}, LATEST)
    copy.run_until(lambda: stored_next(positions) == 0)
    assert copy.stored() == {T0: None}  # as MirrorMaker 2 reads it
    copy.copy.close()  # a crash
    copy.source.write(T0, [b"0"])
    copy.start({T0: stored_next(positions)}, LATEST)
    assert copy.wait_for(1) == [b"0"]


def test_what_retention_took_is_stored_at_once(
    copy: Copy, positions: KafkaOffsetBackingStore
) -> None:
    write_old(copy)
    copy.source.log("t").delete_before(4)
    copy.target.intercept(PRODUCE, _refuse_records)
    loop = copy.start({T0: 2}, {"b.offset.flush.interval.ms": "600000"})
    copy.run_until(lambda: stored_next(positions) == 4)
    assert loop.lost_records == 2


# -- another topic --------------------------------------------------------------------------------


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_topic_recreated_while_nothing_was_copied_is_not_taken_for_the_old_one(
    copy: Copy, positions: KafkaOffsetBackingStore, reset: str, caplog: pytest.LogCaptureFixture
) -> None:
    write_old(copy)
    copy.start({T0: 0})
    copy.wait_for(10)
    copy.stop()
    copy.source.create_topic("t")
    for value in NEW + NEW:  # so the old position lies inside
        copy.source.write(T0, [value])
    stored = positions.load()[T0]
    copy.copy.close()
    copy.start({}, {"a.consumer.auto.offset.reset": reset})
    copy.copy.assign([assign(T0, stored.next_offset)._replace(provenance=stored.provenance)])
    copy.run_until(lambda: "was deleted and recreated" in caplog.text)
    if reset == "earliest":
        assert copy.wait_for(30) == OLD + NEW + NEW
    else:
        copy.run_until(lambda: stored_next(positions) == 20)
        assert copy.copied(T0) == OLD


def test_a_position_of_the_new_topic_is_used_after_a_restart(
    copy: Copy, positions: KafkaOffsetBackingStore
) -> None:
    write_old(copy)
    copy.start({T0: 0})
    copy.wait_for(10)
    copy.source.create_topic("t")
    for value in NEW:
        copy.source.write(T0, [value])
    assert copy.wait_for(20) == OLD + NEW
    copy.stop()
    _start_again(copy, positions.load()[T0])
    copy.source.write(T0, [b"on"])
    assert copy.wait_for(21) == [*OLD, *NEW, b"on"]


def test_a_partition_that_returns_before_anything_was_stored_is_not_copied_twice(
    copy: Copy, caplog: pytest.LogCaptureFixture
) -> None:
    write_old(copy)
    stuck = True
    copy.target.intercept(PRODUCE, lambda r: Do(code=6) if stuck and _is_of_records(r) else None)
    loop = copy.start({T0: None})
    copy.run_until(lambda: loop._producer.accumulator.waiting_bytes > 0)
    loop.revoke([T0])
    loop.assign([assign(T0, None)])  # nothing was stored when the worker looked
    stuck = False
    copy.wait_for(10)
    copy.source.write(T0, [b"on"])
    assert copy.wait_for(11) == [*OLD, b"on"]
    assert "recreated" not in caplog.text
    copy.stop()
    assert copy.stored() == {T0: 10}
