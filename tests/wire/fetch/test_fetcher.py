"""The fetcher against the fake broker: sessions, positions, leaders, back-pressure."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sparkmirror.errors import BrokerError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.fetch_session import FetchPartition
from tests.wire.fake_broker import (
    FETCH,
    LIST_OFFSETS,
    METADATA,
    Do,
    FakeCluster,
    is_number,
    once,
)
from tests.wire.rigs import LIMITS, TP, FetcherRig

OTHER = TopicPartition("t", 1)


@pytest.fixture
def brokers() -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2) as cluster:
        cluster.create_topic("t", partitions=2)
        yield cluster


@pytest.fixture
def rig(brokers: FakeCluster) -> Iterator[FetcherRig]:
    with FetcherRig(brokers) as rig:
        yield rig


def begin(rig: FetcherRig) -> FetchPartition:
    """One batch written and fetched."""
    rig.brokers.write(TP, [b"0", b"1"])
    partition = rig.fetcher.add(TP, 0)
    rig.wait_for([b"0", b"1"])
    return partition


def fail_once(rig: FetcherRig, api: int, failure: Do) -> None:
    """Let the next request that is sent fail, and wait until it did."""
    interceptor = once(failure)
    rig.brokers.intercept(api, interceptor)
    rig.run_until(lambda: interceptor.happened, lambda: rig.brokers.requests[-3:])


def test_records_come_as_they_are_written(rig: FetcherRig) -> None:
    partition = begin(rig)
    rig.brokers.write(TP, [b"2"])
    rig.wait_for([b"0", b"1", b"2"])
    assert (partition.next_offset, partition.end_offset) == (3, 3)
    assert partition.unread_records == 0
    assert rig.errors == []
    assert rig.out_of_range == []


def test_reading_begins_at_the_given_offset(rig: FetcherRig) -> None:
    rig.brokers.write(TP, [b"0", b"1", b"2"])
    rig.brokers.write(TP, [b"3"])
    rig.fetcher.add(TP, 2)
    rig.wait_for([b"2", b"3"])


@pytest.mark.parametrize(
    ("at_end", "expected"), [(False, [b"0", b"1", b"new"]), (True, [b"new"])], ids=["start", "end"]
)
def test_without_a_position_the_consumer_chooses(
    rig: FetcherRig, at_end: bool, expected: list[bytes]
) -> None:
    rig.start_at_end = at_end
    rig.brokers.write(TP, [b"0", b"1"])
    rig.fetcher.add(TP, None)
    rig.run_until(lambda: bool(rig.out_of_range), lambda: rig.errors)
    assert rig.out_of_range == [(None, 0, 2)]
    rig.brokers.write(TP, [b"new"])
    rig.wait_for(expected)


def test_many_partitions_are_asked_for_with_two_requests(rig: FetcherRig) -> None:
    rig.fetcher.add(TP, None)
    rig.fetcher.add(OTHER, None)
    rig.run_until(lambda: len(rig.out_of_range) == 2, lambda: rig.out_of_range)
    assert len(rig.brokers.sent(LIST_OFFSETS)) == 2


def test_a_session_names_only_what_has_changed(rig: FetcherRig) -> None:
    rig.fetcher.add(OTHER, 0)
    begin(rig)
    rig.brokers.write(TP, [b"2"])
    rig.wait_for([b"0", b"1", b"2"])
    first, *_, last = rig.brokers.sent(FETCH)
    assert (first.body.session_id, first.body.session_epoch) == (0, 0)
    assert last.body.session_id > 0
    named = [row.partition for topic in last.body.topics for row in topic.partitions]
    assert OTHER.partition not in named


def test_a_broker_without_sessions_gets_everything_each_time(rig: FetcherRig) -> None:
    with FakeCluster(sessions=False) as brokers, FetcherRig(brokers) as other:
        brokers.create_topic("t")
        begin(other)
        brokers.write(TP, [b"2"])
        other.wait_for([b"0", b"1", b"2"])
        for request in brokers.sent(FETCH):
            assert (request.body.session_id, request.body.session_epoch) == (0, 0)
            assert len(request.body.topics) == 1


def test_an_old_broker_is_asked_by_name() -> None:
    with FakeCluster(newest_fetch=12) as brokers, FetcherRig(brokers) as rig:
        brokers.create_topic("t")
        begin(rig)
        assert {request.version for request in brokers.sent(FETCH)} == {12}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(70, id="FETCH_SESSION_ID_NOT_FOUND"),
        pytest.param(71, id="INVALID_FETCH_SESSION_EPOCH"),
    ],
)
def test_a_session_that_failed_is_opened_again(rig: FetcherRig, code: int) -> None:
    begin(rig)
    fail_once(rig, FETCH, Do(code=code))
    rig.brokers.write(TP, [b"2"])
    rig.wait_for([b"0", b"1", b"2"])
    assert rig.errors == []
    opened = [r for r in rig.brokers.sent(FETCH) if r.body.session_epoch == 0]
    assert len(opened) == 2


def test_a_session_that_the_broker_forgot_is_opened_again(rig: FetcherRig) -> None:
    begin(rig)
    rig.brokers.forget_sessions()
    rig.brokers.write(TP, [b"2"])
    rig.wait_for([b"0", b"1", b"2"])


@pytest.mark.parametrize("failure", [Do(drop=True), Do(apply=True, drop=True)], ids=str)
def test_a_connection_that_broke_is_opened_again(rig: FetcherRig, failure: Do) -> None:
    begin(rig)
    fail_once(rig, FETCH, failure)
    rig.brokers.write(TP, [b"2"])
    rig.wait_for([b"0", b"1", b"2"])


def test_a_broker_that_was_down_is_read_on(rig: FetcherRig) -> None:
    begin(rig)
    rig.brokers.stop_node(1)
    rig.brokers.write(TP, [b"2"])
    rig.run_for(0.1)
    rig.brokers.start_node(1)
    rig.wait_for([b"0", b"1", b"2"])


@pytest.mark.parametrize("garbage", [b"\0", b"\x7f" * 60], ids=["cut", "nonsense"])
def test_an_unreadable_response_is_requested_again(rig: FetcherRig, garbage: bytes) -> None:
    begin(rig)
    fail_once(rig, FETCH, Do(garbage=garbage))
    rig.brokers.write(TP, [b"2"])
    rig.wait_for([b"0", b"1", b"2"])


def test_a_position_below_the_log_is_reported_with_the_logs_range(rig: FetcherRig) -> None:
    rig.brokers.write(TP, [b"0", b"1"])
    rig.brokers.write(TP, [b"2"])
    rig.brokers.log("t").delete_before(2)
    rig.fetcher.add(TP, 1)
    rig.wait_for([b"2"])
    assert rig.out_of_range == [(1, 2, 3)]


def test_a_position_above_the_log_is_reported_with_the_logs_range(rig: FetcherRig) -> None:
    rig.brokers.write(TP, [b"0"])
    rig.fetcher.add(TP, 2)
    rig.wait_for([b"0"])
    assert rig.out_of_range == [(2, 0, 1)]


def test_a_leader_that_moves_is_followed(rig: FetcherRig) -> None:
    begin(rig)
    rig.brokers.move_leader(TP, 2)
    rig.brokers.write(TP, [b"2"])
    rig.wait_for([b"0", b"1", b"2"])
    assert rig.brokers.sent(FETCH)[-1].node == 2


def test_a_leader_that_died_is_left_for_the_new_one(rig: FetcherRig) -> None:
    begin(rig)
    rig.brokers.stop_node(1)
    rig.brokers.move_leader(TP, 2)
    rig.brokers.write(TP, [b"2"])
    rig.wait_for([b"0", b"1", b"2"])


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(3, id="UNKNOWN_TOPIC_OR_PARTITION"),
        pytest.param(6, id="NOT_LEADER_OR_FOLLOWER"),
        pytest.param(9, id="REPLICA_NOT_AVAILABLE"),
        pytest.param(56, id="KAFKA_STORAGE_ERROR"),
        pytest.param(75, id="UNKNOWN_LEADER_EPOCH"),
        pytest.param(78, id="OFFSET_NOT_AVAILABLE"),
        pytest.param(100, id="UNKNOWN_TOPIC_ID"),
    ],
)
def test_an_error_that_passes_is_reported_and_retried(rig: FetcherRig, code: int) -> None:
    begin(rig)
    fail_once(rig, FETCH, Do(code=code))
    rig.brokers.write(TP, [b"2"])
    rig.wait_for([b"0", b"1", b"2"])
    (error,) = rig.errors
    assert isinstance(error, BrokerError)
    assert error.code == code
    assert "fetch t-0 on 'fake'" in str(error)


def test_an_error_that_does_not_pass_leaves_the_others_alone(rig: FetcherRig) -> None:
    rig.fetcher.add(OTHER, 0)
    begin(rig)
    rig.brokers.intercept(FETCH, once(Do(code=29), lambda r: bool(r.body.topics)))
    rig.brokers.write(TP, [b"2"])
    rig.run_until(lambda: bool(rig.errors), lambda: rig.errors)
    codes = {error.code for error in rig.errors if isinstance(error, BrokerError)}
    assert codes == {29}


def test_a_range_that_is_not_to_be_had_yet_is_asked_for_again(rig: FetcherRig) -> None:
    rig.brokers.intercept(LIST_OFFSETS, once(Do(code=6)))
    rig.brokers.write(TP, [b"0"])
    rig.fetcher.add(TP, None)
    rig.wait_for([b"0"])


@pytest.mark.parametrize("garbage", [b"\0", bytes(8)], ids=["cut", "without the partition"])
@pytest.mark.parametrize("number", [1, 2], ids=["start", "end"])
def test_a_range_that_cannot_be_read_is_asked_for_again(
    rig: FetcherRig, garbage: bytes, number: int
) -> None:
    rig.brokers.intercept(LIST_OFFSETS, once(Do(garbage=garbage), is_number(number)))
    rig.brokers.write(TP, [b"0"])
    rig.fetcher.add(TP, None)
    rig.wait_for([b"0"])


@pytest.mark.parametrize("garbage", [b"", b"\x7f" * 40], ids=["empty", "nonsense"])
def test_metadata_that_cannot_be_read_is_asked_for_again(rig: FetcherRig, garbage: bytes) -> None:
    rig.brokers.intercept(METADATA, once(Do(garbage=garbage)))
    begin(rig)
    assert len(rig.brokers.sent(METADATA)) >= 2


def test_a_recreated_topic_is_reported_and_read_from_the_consumers_choice(
    rig: FetcherRig,
) -> None:
    begin(rig)
    rig.brokers.create_topic("t", partitions=2)
    rig.brokers.write(TP, [b"new 0"])
    rig.wait_for([b"0", b"1", b"new 0"])
    assert rig.recreated == [2]
    assert rig.out_of_range[-1] == (None, 0, 1)


def test_a_topic_that_is_deleted_is_waited_for(rig: FetcherRig) -> None:
    begin(rig)
    rig.brokers.delete_topic("t")
    rig.run_until(lambda: bool(rig.errors), lambda: rig.errors)
    rig.brokers.create_topic("t")
    rig.brokers.write(TP, [b"new 0"])
    rig.wait_for([b"0", b"1", b"new 0"])
    assert rig.recreated == [2]


def test_the_preferred_replica_is_read_and_the_leader_again_when_it_fails(
    brokers: FakeCluster,
) -> None:
    with FetcherRig(brokers, LIMITS._replace(rack="here")) as rig:
        brokers.prefer(TP, 2)
        begin(rig)
        assert [r.node for r in brokers.sent(FETCH) if r.body.topics][:2] == [1, 2]
        brokers.prefer(TP, -1)
        brokers.write(TP, [b"2"])
        rig.wait_for([b"0", b"1", b"2"])
        assert brokers.sent(FETCH)[-1].node == 1


def test_a_follower_that_lags_behind_is_left_for_the_leader(brokers: FakeCluster) -> None:
    with FetcherRig(brokers, LIMITS._replace(rack="here")) as rig:
        brokers.prefer(TP, 2)
        begin(rig)
        fail_once(rig, FETCH, Do(code=1))
        brokers.write(TP, [b"2"])
        rig.wait_for([b"0", b"1", b"2"])
        assert rig.out_of_range == []


def test_a_preferred_replica_that_died_is_left_for_the_leader(brokers: FakeCluster) -> None:
    with FetcherRig(brokers, LIMITS._replace(rack="here")) as rig:
        brokers.prefer(TP, 2)
        begin(rig)
        assert brokers.sent(FETCH)[-1].node == 2
        brokers.stop_node(2)
        brokers.prefer(TP, -1)
        brokers.write(TP, [b"2"])
        rig.wait_for([b"0", b"1", b"2"])


# -- what the consumer asks -----------------------------------------------------------------------


def test_nothing_is_fetched_while_the_consumer_is_busy(brokers: FakeCluster) -> None:
    # A wait so long that the request on its way cannot end without a record.
    with FetcherRig(brokers, LIMITS._replace(max_wait_ms=10_000)) as rig:
        begin(rig)
        rig.run_for(0.1)  # the next request is on its way
        rig.allowed = False
        brokers.write(TP, [b"2"])
        rig.wait_for([b"0", b"1", b"2"])
        sent = len(brokers.sent(FETCH))
        brokers.write(TP, [b"3"])
        rig.run_for(0.3)
        assert len(brokers.sent(FETCH)) == sent
        rig.allowed = True
        rig.fetcher.send_ready()
        rig.wait_for([b"0", b"1", b"2", b"3"])


def test_a_paused_partition_does_not_stop_the_others(rig: FetcherRig) -> None:
    begin(rig)
    rig.fetcher.add(OTHER, 0)
    rig.fetcher.pause(TP)
    rig.brokers.write(TP, [b"2"])
    rig.brokers.write(OTHER, [b"x"])
    rig.wait_for([b"x"], OTHER)
    rig.run_for(0.15)
    assert rig.fetched() == [b"0", b"1"]
    rig.fetcher.resume(TP)
    rig.wait_for([b"0", b"1", b"2"])


def test_a_removed_partition_is_not_fetched_any_more(rig: FetcherRig) -> None:
    begin(rig)
    rig.fetcher.add(OTHER, 0)
    rig.fetcher.remove(TP)
    rig.brokers.write(TP, [b"2"])
    rig.brokers.write(OTHER, [b"x"])
    rig.wait_for([b"x"], OTHER)
    rig.run_for(0.15)
    assert rig.fetched() == [b"0", b"1"]
    forgotten = [r.body.forgotten_topics_data for r in rig.brokers.sent(FETCH)]
    assert [row.partitions for rows in forgotten for row in rows] == [[0]]


def test_a_partition_that_comes_back_starts_at_its_new_position(rig: FetcherRig) -> None:
    begin(rig)
    rig.fetcher.remove(TP)
    rig.fetcher.add(TP, 1)
    rig.wait_for([b"0", b"1", b"1"])


def test_nothing_is_fetched_after_stop(rig: FetcherRig) -> None:
    begin(rig)
    rig.fetcher.stopped = True
    sessions = rig.fetcher._sessions.values()
    rig.run_until(
        lambda: not any(session.in_flight or session.is_paced for session in sessions),
        lambda: rig.errors,
    )
    sent = len(rig.brokers.sent(FETCH))
    rig.brokers.write(TP, [b"2"])
    rig.run_for(0.15)
    assert len(rig.brokers.sent(FETCH)) == sent


def test_an_idle_partition_costs_one_request_per_wait(rig: FetcherRig) -> None:
    begin(rig)
    sent, began = len(rig.brokers.sent(FETCH)), time.monotonic()
    rig.run_for(0.5)
    most = (time.monotonic() - began) / (LIMITS.max_wait_ms / 1000) + 1
    assert len(rig.brokers.sent(FETCH)) - sent <= most


def test_buffers_without_users_go_back(rig: FetcherRig) -> None:
    begin(rig)
    rig.fetcher.stopped = True
    rig.run_for(0.2)
    assert rig.pool.used_bytes == 0
