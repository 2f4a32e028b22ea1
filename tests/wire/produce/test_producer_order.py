"""The producer keeps the order when refusals, failures and lost responses come together."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from sparkmirror.errors import BrokerError, RefusedError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce.record_accumulator import ProducerBatch, Replacement
from sparkmirror.wire.produce.sequences import QUIET_SECONDS
from tests.wire.fake_broker import INIT_PRODUCER_ID, PRODUCE, Do, FakeCluster, Request, once
from tests.wire.rigs import TP, WAIT_SECONDS, ProducerRig, Values, flat, numbered

MESSAGE_TOO_LARGE = 10
NOT_ENOUGH_REPLICAS = 19
INVALID_RECORD = 87
OTHER = TopicPartition("t", 1)
THIRD = TopicPartition("t", 2)


@pytest.fixture
def rig() -> Iterator[ProducerRig]:
    with FakeCluster(nodes=1) as brokers, ProducerRig(brokers) as rig:
        brokers.create_topic("t", partitions=3)
        yield rig


def establish(rig: ProducerRig, *tps: TopicPartition) -> None:
    """Store one batch in each, so that the broker knows the producer."""
    for tp in tps or (TP,):
        rig.append(*numbered(1), tp=tp)
    rig.finish()


def be_quiet(rig: ProducerRig, seconds: float) -> None:
    """The clock advances, and nothing happens."""
    clock = rig.loop.clock
    rig.loop.clock = lambda: clock() + seconds


# -- a broker that forgot the producer -------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(NOT_ENOUGH_REPLICAS, id="not enough replicas"),
        pytest.param(MESSAGE_TOO_LARGE, id="too large, split"),
    ],
)
def test_a_partition_that_was_quiet_keeps_its_order_when_the_broker_forgot_it(
    rig: ProducerRig, code: int
) -> None:
    """producer.id.expiration.ms has passed: the broker takes any number as the first."""
    establish(rig)
    be_quiet(rig, 2 * QUIET_SECONDS)
    rig.brokers.log("t").producers.clear()
    rig.brokers.intercept(PRODUCE, once(Do(code=code)))
    rig.append(*numbered(4, start=1))
    rig.finish()
    assert rig.brokers.log("t").values() == flat(numbered(5))
    assert rig.acked_values == flat(numbered(5))


def test_one_batch_leaves_after_a_pause_and_the_others_after_its_response(
    rig: ProducerRig,
) -> None:
    establish(rig)
    be_quiet(rig, 2 * QUIET_SECONDS)
    rig.append(*numbered(7, start=1))
    connection = rig.cluster.connection(1)
    assert connection is not None
    assert connection.in_flight == 1
    rig.finish()
    rig.append(*numbered(7, start=8))  # without a pause
    assert connection.in_flight == 5
    rig.finish()
    assert rig.brokers.log("t").values() == flat(numbered(15))


# -- one response about several partitions ---------------------------------------------------------


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_refusal_that_ends_the_task_lets_nothing_overtake_in_the_partitions_beside_it(
    acks: int,
) -> None:
    """What is stored before the task ends goes through the same producer (commit_failing)."""

    def refuse(tp: TopicPartition, batch: ProducerBatch[Values], error: BrokerError) -> Replacement:
        raise RefusedError(f"{tp}: {error}")

    refused = {0: INVALID_RECORD, 2: INVALID_RECORD}
    with FakeCluster() as brokers, ProducerRig(brokers, acks=acks) as rig:
        brokers.create_topic("t", partitions=3)
        establish(rig, TP, OTHER, THIRD)
        rig.on_rejected = refuse  # type: ignore[method-assign]
        brokers.intercept(PRODUCE, once(Do(codes={**refused, 1: NOT_ENOUGH_REPLICAS})))
        brokers.intercept(PRODUCE, lambda _: Do(apply=True, codes=refused))
        for tp in (TP, OTHER, THIRD):
            values = [b"one", b"two"]
            rig.producer.append(tp, [rig.batch(each) for each in values])
        rig.producer.send_ready()
        with pytest.raises(RefusedError):
            rig.finish()
        deadline = time.monotonic() + WAIT_SECONDS
        while rig.producer.accumulator.pending(OTHER):
            assert time.monotonic() < deadline, rig.acked
            with contextlib.suppress(RefusedError):
                rig.producer.send_ready()
                rig.loop.run_once(0.01)
        first = flat(numbered(1))
        assert brokers.log("t", 1).values() == [*first, b"one", b"two"]
        # Nothing follows a batch about which nothing was decided.
        assert brokers.log("t", 0).values() == brokers.log("t", 2).values() == first


# -- skipped batches -------------------------------------------------------------------------------


def test_a_skipped_batch_that_may_be_stored_yet_does_not_hide_the_next_one(
    rig: ProducerRig,
) -> None:
    """Its first copy was stored, its response lost; by the second attempt a limit has changed."""
    establish(rig)
    rig.split = False
    rig.brokers.intercept(PRODUCE, once(Do(apply=True, drop=True)))
    rig.brokers.intercept(PRODUCE, once(Do(code=INVALID_RECORD)))
    rig.append(*numbered(3, start=1))
    rig.finish()
    assert rig.rejected == [tuple(numbered(1, start=1)[0])]
    assert rig.brokers.log("t").values() == flat(numbered(4))
    assert len(rig.brokers.sent(INIT_PRODUCER_ID)) == 2


def test_a_skipped_batch_that_was_sent_once_costs_no_producer_id(rig: ProducerRig) -> None:
    establish(rig)
    rig.split = False
    rig.brokers.intercept(PRODUCE, once(Do(code=INVALID_RECORD)))
    rig.append(*numbered(3, start=1))
    rig.finish()
    assert rig.brokers.log("t").values() == flat(numbered(1) + numbered(2, start=2))
    assert len(rig.brokers.sent(INIT_PRODUCER_ID)) == 1


@pytest.mark.parametrize("failure", [Do(drop=True), Do(code=NOT_ENOUGH_REPLICAS)], ids=str)
def test_a_partition_whose_only_batch_is_skipped_waits_no_more(
    rig: ProducerRig, failure: Do
) -> None:
    establish(rig)
    rig.split = False
    for _ in range(2):
        rig.brokers.intercept(PRODUCE, once(failure))

    def refuse(request: Request) -> Do | None:
        return Do(code=INVALID_RECORD) if any(rig.blocked) else None

    rig.brokers.intercept(PRODUCE, refuse)
    rig.append([b"poison"])
    rig.finish()
    assert any(rig.blocked)
    assert rig.blocked[-1] is None
    assert rig.producer.accumulator.blocked_bytes == 0


# -- silence ---------------------------------------------------------------------------------------


def test_partitions_of_a_silent_broker_are_named_before_the_deadline(rig: ProducerRig) -> None:
    establish(rig, TP, OTHER)
    released = threading.Event()

    def hold(request: Request) -> None:
        released.wait(20.0)

    rig.brokers.intercept(PRODUCE, hold)
    rig.append(*numbered(2, start=1))
    rig.producer.note_silence()
    assert rig.blocked == []
    be_quiet(rig, 7.0)
    rig.producer.note_silence()
    (error,) = rig.blocked
    assert "no byte for 7 s" in str(error)
    released.set()
    rig.finish()
    assert rig.blocked[-1] is None
    assert rig.brokers.log("t").values() == flat(numbered(3))
