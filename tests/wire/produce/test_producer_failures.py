"""The producer against brokers that fail: order is kept and nothing is doubled."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from sparkmirror.errors import BrokerError, RefusedError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce.record_accumulator import ProducerBatch, Replacement
from tests.wire.fake_broker import (
    INIT_PRODUCER_ID,
    PRODUCE,
    Do,
    FakeCluster,
    Request,
    is_number,
    once,
)
from tests.wire.rigs import TP, WAIT_SECONDS, ProducerRig, Values, flat, numbered

NOT_LEADER = 6
REQUEST_TIMED_OUT = 7
INVALID_RECORD = 87

NOT_APPENDED = [
    pytest.param(Do(drop=True), id="hung up before append"),
    pytest.param(Do(code=NOT_LEADER), id="not leader"),
    pytest.param(Do(code=REQUEST_TIMED_OUT), id="time-out before append"),
    pytest.param(Do(code=56), id="disk failed"),
    pytest.param(Do(code=2), id="damaged on the way"),
]
APPENDED = [
    pytest.param(Do(apply=True, drop=True), id="hung up after append"),
    pytest.param(Do(apply=True, code=REQUEST_TIMED_OUT), id="time-out after append"),
    pytest.param(Do(apply=True, code=20), id="not enough replicas after append"),
]


@pytest.fixture
def rig() -> Iterator[ProducerRig]:
    with FakeCluster(nodes=2) as brokers, ProducerRig(brokers) as rig:
        brokers.create_topic("t")
        yield rig


def establish(rig: ProducerRig) -> list[list[bytes]]:
    """Store one batch, so that the broker knows the producer."""
    first = numbered(1)
    rig.append(*first)
    rig.finish()
    return first


def check(rig: ProducerRig, batches: list[list[bytes]]) -> None:
    """Everything is there once and in order, and was reported in that order."""
    assert rig.brokers.log("t").values() == flat(batches)
    assert rig.acked_values == flat(batches)


@pytest.mark.parametrize("number", [1, 3, 5])
@pytest.mark.parametrize("failure", NOT_APPENDED + APPENDED)
def test_a_failure_of_one_of_five_under_way(rig: ProducerRig, failure: Do, number: int) -> None:
    first = establish(rig)
    rig.brokers.intercept(PRODUCE, once(failure, is_number(number)))
    batches = numbered(5, start=1)
    rig.append(*batches)
    rig.finish()
    check(rig, first + batches)
    assert [offset for _, _, offset in rig.acked] == [0, 2, 4, 6, 8, 10]
    assert rig.producer.retries >= 1
    assert len(rig.brokers.sent(INIT_PRODUCER_ID)) == 1


@pytest.mark.parametrize("number", [1, 3, 5])
@pytest.mark.parametrize("failure", NOT_APPENDED + APPENDED)
def test_a_failure_with_a_long_queue_behind_it(rig: ProducerRig, failure: Do, number: int) -> None:
    first = establish(rig)
    rig.brokers.intercept(PRODUCE, once(failure, is_number(number)))
    batches = numbered(20, start=1)
    rig.append(*batches)
    rig.finish()
    check(rig, first + batches)
    assert len(rig.brokers.sent(INIT_PRODUCER_ID)) == 1


@pytest.mark.parametrize("failure", NOT_APPENDED + APPENDED)
def test_a_failure_of_the_very_first_batch(rig: ProducerRig, failure: Do) -> None:
    """A broker that does not know the producer would take the second as its first."""
    rig.brokers.intercept(PRODUCE, once(failure))
    batches = numbered(5)
    rig.append(*batches)
    rig.finish()
    check(rig, batches)


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x7f" * 40, id="nonsense"),
        pytest.param(bytes(40), id="without the partition"),
    ],
)
def test_a_response_that_cannot_be_read(rig: ProducerRig, garbage: bytes) -> None:
    first = establish(rig)
    rig.brokers.intercept(PRODUCE, once(Do(garbage=garbage)))
    batches = numbered(3, start=1)
    rig.append(*batches)
    rig.finish()
    check(rig, first + batches)


def test_a_producer_id_that_cannot_be_read(rig: ProducerRig) -> None:
    rig.brokers.intercept(INIT_PRODUCER_ID, once(Do(garbage=b"\0")))
    rig.append(*numbered(1))
    rig.finish()
    check(rig, numbered(1))


def test_many_failures_in_a_row(rig: ProducerRig) -> None:
    first = establish(rig)
    for each in (Do(apply=True, drop=True), Do(code=NOT_LEADER), Do(drop=True)):
        rig.brokers.intercept(PRODUCE, once(each, is_number(2)))
    batches = numbered(5, start=1)
    rig.append(*batches)
    rig.finish()
    check(rig, first + batches)
    assert rig.producer.retries >= 2


def test_a_leader_that_moves_between_batches(rig: ProducerRig) -> None:
    batches = numbered(12)
    for at, node in ((0, 2), (4, 1), (8, 2)):
        rig.append(*batches[at : at + 4])
        rig.finish()
        rig.brokers.move_leader(TP, node)
    check(rig, batches)
    assert {request.node for request in rig.brokers.sent(PRODUCE)} == {1, 2}


def test_a_leader_that_moves_with_batches_under_way(rig: ProducerRig) -> None:
    """What goes to the new leader waits until the old one has responded."""
    released = threading.Event()

    def hold(request: Request) -> None:
        if request.node == 1:
            assert released.wait(WAIT_SECONDS)

    rig.brokers.intercept(PRODUCE, hold)
    batches = numbered(8)
    rig.append(*batches[:3])
    rig.run_until(lambda: bool(rig.brokers.sent(PRODUCE)), lambda: rig.brokers.requests)
    rig.brokers.move_leader(TP, 2)
    rig.metadata.refresh()
    rig.run_until(lambda: rig.metadata.leaders[TP].node == 2, lambda: rig.metadata.leaders)
    rig.append(*batches[3:])
    rig.run_for(0.1)
    assert {request.node for request in rig.brokers.sent(PRODUCE)} == {1}
    released.set()
    rig.finish()
    check(rig, batches)


def test_not_leader_in_the_middle_moves_the_rest_to_the_new_leader(rig: ProducerRig) -> None:
    first = establish(rig)

    def move(request: Request) -> None:
        if len(rig.brokers.sent(PRODUCE)) == 3 and request.node == 1:
            rig.brokers.move_leader(TP, 2)

    rig.brokers.intercept(PRODUCE, move)
    batches = numbered(5, start=1)
    rig.append(*batches)
    rig.finish()
    check(rig, first + batches)
    assert rig.brokers.sent(PRODUCE)[-1].node == 2


@pytest.mark.parametrize("at", [0, 1, 2, 3])
@pytest.mark.parametrize("is_known", [True, False], ids=["known producer", "new producer"])
def test_a_batch_too_large_among_five_is_replaced_in_its_place(
    rig: ProducerRig, is_known: bool, at: int
) -> None:
    first = establish(rig) if is_known else []
    batches = numbered(5, start=1)
    batches[at] = [b"part %d " % part + bytes(150) for part in range(4)]
    rig.brokers.log("t").max_message_bytes = 400
    rig.append(*batches)
    rig.finish()
    check(rig, first + batches)
    assert rig.rejected == [tuple(batches[at])]
    assert len(rig.brokers.sent(INIT_PRODUCER_ID)) == 1


def test_batches_too_large_one_after_the_other(rig: ProducerRig) -> None:
    first = establish(rig)
    batches = [[b"%d %d " % (at, part) + bytes(150) for part in range(4)] for at in range(12)]
    rig.brokers.log("t").max_message_bytes = 400
    rig.append(*batches)
    rig.finish()
    check(rig, first + batches)
    assert len(rig.rejected) == 12


def test_a_refused_batch_can_be_left_out(rig: ProducerRig) -> None:
    first = establish(rig)
    rig.split = False
    rig.brokers.intercept(PRODUCE, once(Do(code=INVALID_RECORD), is_number(2)))
    batches = numbered(5, start=1)
    rig.append(*batches)
    rig.finish()
    left = first + batches[:1] + batches[2:]
    check(rig, left)
    assert rig.producer.accumulator.waiting_bytes == 0


def test_a_refused_batch_can_end_the_task(rig: ProducerRig) -> None:
    def refuse(tp: TopicPartition, batch: ProducerBatch[Values], error: BrokerError) -> Replacement:
        raise RefusedError(f"{tp}: {error}")

    rig.on_rejected = refuse  # type: ignore[method-assign]
    rig.brokers.intercept(PRODUCE, once(Do(code=INVALID_RECORD)))
    rig.append([b"v"])
    with pytest.raises(RefusedError, match="t-0: produce to t-0 on 'fake': INVALID_RECORD"):
        rig.finish()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(45, id="OUT_OF_ORDER_SEQUENCE_NUMBER"),
        pytest.param(47, id="INVALID_PRODUCER_EPOCH"),
        pytest.param(59, id="UNKNOWN_PRODUCER_ID"),
    ],
)
def test_a_broker_that_forgot_the_producer_gets_a_new_one(rig: ProducerRig, code: int) -> None:
    first = establish(rig)
    rig.brokers.intercept(PRODUCE, once(Do(code=code)))
    batches = numbered(5, start=1)
    rig.append(*batches)
    rig.finish()
    check(rig, first + batches)
    assert len(rig.brokers.sent(INIT_PRODUCER_ID)) == 2
    assert len(rig.brokers.log("t").producers) == 2


def test_another_partition_keeps_its_producer_id(rig: ProducerRig) -> None:
    rig.brokers.create_topic("u")
    other = TopicPartition("u", 0)
    rig.append([b"1"], tp=other)
    establish(rig)
    rig.brokers.intercept(PRODUCE, once(Do(code=45)))
    rig.append([b"001-a"])
    rig.finish()
    rig.append([b"2"], tp=other)
    rig.finish()
    assert len(rig.brokers.log("u").producers) == 1
    assert len(rig.brokers.log("t").producers) == 2


def test_a_partition_that_comes_back_continues_with_its_numbers(rig: ProducerRig) -> None:
    """To begin again at 0 would be to repeat what the broker has: it would store nothing."""
    first = establish(rig)
    rig.producer.remove(TP)
    again = numbered(3, start=1)
    rig.append(*again)
    rig.finish()
    check(rig, first + again)


def test_a_partition_that_fails_twice_is_reported_blocked_and_again_when_it_continues(
    rig: ProducerRig,
) -> None:
    establish(rig)
    for _ in range(3):
        rig.brokers.intercept(PRODUCE, once(Do(code=19)))
    rig.append([b"v"])
    rig.finish()
    errors = [error for error in rig.blocked if error is not None]
    assert [type(error) for error in errors] == [BrokerError, BrokerError]
    assert "NOT_ENOUGH_REPLICAS" in str(errors[0])
    assert rig.blocked[-1] is None
    assert rig.producer.accumulator.blocked_bytes == 0
