"""Where many logs start and end, asked once and within a time limit."""

from __future__ import annotations

import pytest

from sparkmirror.errors import DeniedError, TransportError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.log_ranges import fetch_ranges
from sparkmirror.wire.fetch.offset_fetcher import Range
from tests.wire.fake_broker import LIST_OFFSETS, METADATA, Do, FakeCluster, once
from tests.wire.rigs import WAIT_SECONDS, client_config

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
NOT_LEADER, DENIED = 6, 29


def test_ranges_of_two_brokers_come_together() -> None:
    with FakeCluster(nodes=2) as brokers:
        brokers.create_topic("t", partitions=2)
        brokers.create_topic("u", leader=2)
        brokers.write(T0, [b"x"] * 9)
        brokers.log("t", 0).delete_before(4)
        brokers.write(U0, [b"x"] * 3)
        found = fetch_ranges(client_config(brokers), [T0, T1, U0], WAIT_SECONDS)
        assert found == {T0: Range(4, 9), T1: Range(0, 0), U0: Range(0, 3)}
        assert len(brokers.sent(LIST_OFFSETS)) == 4


def test_nothing_is_asked_for_no_partitions() -> None:
    with FakeCluster() as brokers:
        assert fetch_ranges(client_config(brokers), [], WAIT_SECONDS) == {}


@pytest.mark.parametrize("action", [Do(code=NOT_LEADER), Do(drop=True)], ids=["moved", "cut off"])
def test_a_failure_that_passes_is_asked_again(action: Do) -> None:
    with FakeCluster() as brokers:
        brokers.create_topic("t")
        brokers.write(T0, [b"x"] * 3)
        brokers.intercept(LIST_OFFSETS, once(action))
        assert fetch_ranges(client_config(brokers), [T0], WAIT_SECONDS) == {T0: Range(0, 3)}


def test_a_missing_topic_is_reported_when_time_is_up_and_does_not_hide_others() -> None:
    with FakeCluster() as brokers:
        brokers.create_topic("t")
        found = fetch_ranges(client_config(brokers), [T0, U0], 0.5)
        assert found[T0] == Range(0, 0)
        error = found[U0]
        assert isinstance(error, TransportError)
        assert str(error) == (
            "ask for the range of u-0 on 'fake': no response within 0.5 s (no leader is known)"
        )


def test_a_broker_that_always_hangs_up_is_reported_when_time_is_up() -> None:
    with FakeCluster() as brokers:
        brokers.create_topic("t")
        brokers.intercept(LIST_OFFSETS, lambda _: Do(drop=True))
        error = fetch_ranges(client_config(brokers), [T0], 0.5)[T0]
        assert isinstance(error, TransportError)


def test_a_topic_that_may_not_be_described_is_reported_at_once() -> None:
    with FakeCluster() as brokers:
        brokers.create_topic("t")
        brokers.intercept(METADATA, lambda _: Do(code=DENIED))
        error = fetch_ranges(client_config(brokers), [T0], WAIT_SECONDS)[T0]
        assert isinstance(error, DeniedError)
