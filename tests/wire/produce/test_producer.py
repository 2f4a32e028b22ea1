"""The producer at work: order, requests under way, sequence numbers, buffers, producer ids."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from sparkmirror.errors import BrokerError, RefusedError, TransportError
from sparkmirror.retry import RetryPolicy
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.produce import transaction_manager
from sparkmirror.wire.produce.sequences import LAST_SEQUENCE
from tests.wire.fake_broker import INIT_PRODUCER_ID, PRODUCE, Do, FakeCluster, Request, once
from tests.wire.rigs import TP, WAIT_SECONDS, ProducerRig, encoded, flat, numbered

UNKNOWN_TOPIC_OR_PARTITION = 3
COORDINATOR_LOAD_IN_PROGRESS = 14
CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_VERSION = 35
DUPLICATE_SEQUENCE_NUMBER = 46


@pytest.fixture
def brokers() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.create_topic("t", partitions=3)
        yield cluster


@pytest.fixture
def rig(brokers: FakeCluster) -> Iterator[ProducerRig]:
    with ProducerRig(brokers) as rig:
        yield rig


def hold(brokers: FakeCluster, api: int) -> threading.Event:
    """Requests of this kind get no response until the event is set."""
    released = threading.Event()

    def wait(_: Request) -> None:
        assert released.wait(WAIT_SECONDS)

    brokers.intercept(api, wait)
    return released


def producer_ids(brokers: FakeCluster) -> list[int]:
    """Of every batch of t-0, in order."""
    return [
        int.from_bytes(stored.data[43:51], "big", signed=True)
        for stored in brokers.log("t").batches
    ]


def test_batches_arrive_in_order_and_are_reported_with_their_offsets(rig: ProducerRig) -> None:
    batches = numbered(20)
    rig.append(*batches)
    rig.finish()
    assert rig.brokers.log("t").values() == flat(batches)
    assert rig.acked == [(TP, tuple(each), 2 * at) for at, each in enumerate(batches)]
    assert rig.blocked == []


def test_at_most_five_requests_are_under_way(rig: ProducerRig) -> None:
    batches = numbered(12)
    rig.append(batches[0])
    rig.finish()
    released = hold(rig.brokers, PRODUCE)
    rig.append(*batches[1:])
    connection = rig.cluster.connection(1)
    assert connection is not None
    assert connection.in_flight == 5
    assert rig.producer.accumulator.pending(TP) == 11
    assert not rig.producer.idle
    assert rig.producer.accumulator.sent_bytes == sum(len(encoded(*each)) for each in batches[1:6])
    released.set()
    rig.finish()
    assert (rig.producer.accumulator.pending(TP), rig.producer.accumulator.sent_bytes) == (0, 0)
    assert rig.brokers.log("t").values() == flat(batches)


def test_batches_of_several_partitions_share_a_request(rig: ProducerRig) -> None:
    tps = [TopicPartition("t", at) for at in range(3)]
    for tp in tps:
        rig.producer.append(tp, [rig.batch(b"v")])
    rig.producer.send_ready()
    rig.finish()
    (request,) = rig.brokers.sent(PRODUCE)
    (topic,) = request.body.topic_data
    assert [row.index for row in topic.partition_data] == [0, 1, 2]
    assert [rig.brokers.log("t", at).values() for at in range(3)] == [[b"v"]] * 3


def test_an_error_of_one_partition_does_not_touch_its_neighbour(rig: ProducerRig) -> None:
    other = TopicPartition("t", 1)
    rig.brokers.log("t", 1).max_message_bytes = 10
    rig.split = False
    for tp in (TP, other):
        rig.producer.append(tp, [rig.batch(b"v")])
    rig.producer.send_ready()
    rig.finish()
    assert rig.acked == [(TP, (b"v",), 0)]
    assert rig.rejected == [(b"v",)]


def test_many_large_batches_go_in_several_requests(rig: ProducerRig) -> None:
    large = bytes(400_000)
    for at in range(3):
        rig.producer.append(TopicPartition("t", at), [rig.batch(large)])
    rig.producer.send_ready()
    rig.finish()
    assert len(rig.brokers.sent(PRODUCE)) == 2


def test_sequence_numbers_wrap_around(rig: ProducerRig) -> None:
    rig.append()
    rig.producer.accumulator.partitions[TP].next_sequence = LAST_SEQUENCE - 2
    batches = numbered(4)
    rig.append(*batches)
    rig.finish()
    assert rig.brokers.log("t").values() == flat(batches)
    (state,) = rig.brokers.log("t").producers.values()
    firsts = [sent.first_sequence for sent in state.sent]
    assert firsts == [LAST_SEQUENCE - 2, LAST_SEQUENCE, 1, 3]


def test_without_idempotence_one_batch_at_a_time(brokers: FakeCluster) -> None:
    with ProducerRig(brokers, acks=1) as rig:
        released = hold(brokers, PRODUCE)
        batches = numbered(4)
        rig.append(*batches)
        rig.run_until(lambda: bool(brokers.sent(PRODUCE)), lambda: brokers.requests)
        connection = rig.cluster.connection(1)
        assert connection is not None
        assert connection.in_flight == 1
        released.set()
        rig.finish()
    assert brokers.log("t").values() == flat(batches)
    assert producer_ids(brokers) == [-1] * 4
    assert brokers.sent(INIT_PRODUCER_ID) == []


def test_buffers_go_back_when_their_batches_are_acknowledged(rig: ProducerRig) -> None:
    released = hold(rig.brokers, PRODUCE)
    buffer = rig.pool.take(1000)
    batches = []
    for value in (b"x", b"y"):
        data = encoded(value)
        view = memoryview(buffer.memory)[: len(data)]
        view[:] = data
        buffer.hold()
        batches.append(rig.batch(value, view=view, buffer=buffer))
        buffer = rig.pool.take(1000)
    rig.producer.append(TP, batches)
    for each in batches:
        assert each.buffer is not None
        each.buffer.release()
    buffer.release()
    rig.producer.send_ready()
    held = rig.pool.used_bytes
    released.set()
    rig.finish()
    assert held == 2 * 64 * 1024
    assert rig.pool.used_bytes == 0
    assert rig.brokers.log("t").values() == [b"x", b"y"]


def test_buffers_are_not_held_while_a_partition_waits(rig: ProducerRig) -> None:
    buffer = rig.pool.take(1000)
    data = encoded(b"x")
    view = memoryview(buffer.memory)[: len(data)]
    view[:] = data
    missing = TopicPartition("later", 0)
    rig.producer.append(missing, [rig.batch(b"x", view=view, buffer=buffer)])
    rig.run_until(lambda: rig.pool.used_bytes == 0, lambda: rig.blocked)
    buffer.memory[:] = bytes(len(buffer.memory))
    assert (
        rig.producer.accumulator.blocked_bytes
        == rig.producer.accumulator.waiting_bytes
        == len(data)
    )
    rig.brokers.create_topic("later")
    rig.finish()
    assert rig.brokers.log("later").values() == [b"x"]
    assert rig.producer.accumulator.blocked_bytes == 0


def test_a_topic_that_does_not_exist_yet_is_waited_for(rig: ProducerRig) -> None:
    later = TopicPartition("later", 0)
    rig.append([b"v"], tp=later)
    rig.run_until(lambda: bool(rig.blocked), lambda: rig.blocked)
    error = rig.blocked[0]
    assert isinstance(error, BrokerError)
    assert error.code == UNKNOWN_TOPIC_OR_PARTITION
    assert "later-0 on 'fake'" in str(error)
    rig.brokers.create_topic("later")
    rig.finish()
    assert rig.blocked[-1] is None
    assert rig.brokers.log("later").values() == [b"v"]


def test_a_broker_that_is_down_is_waited_for(rig: ProducerRig) -> None:
    batches = numbered(10)
    rig.append(*batches[:5])
    rig.finish()
    rig.brokers.stop_node(1)
    rig.append(*batches[5:])
    rig.run_until(lambda: rig.cluster.last_error is not None, lambda: "no error")
    assert isinstance(rig.cluster.last_error, TransportError)
    rig.run_for(0.1)
    rig.brokers.start_node(1)
    rig.finish()
    assert rig.brokers.log("t").values() == flat(batches)


def test_a_duplicate_that_the_broker_no_longer_knows_the_place_of_is_stored(
    rig: ProducerRig,
) -> None:
    rig.brokers.intercept(PRODUCE, once(Do(code=DUPLICATE_SEQUENCE_NUMBER)))
    rig.append([b"v"])
    rig.finish()
    assert rig.acked == [(TP, (b"v",), -1)]


def test_a_producer_id_that_is_not_to_be_had_yet_is_asked_for_again(rig: ProducerRig) -> None:
    rig.brokers.intercept(INIT_PRODUCER_ID, once(Do(code=COORDINATOR_LOAD_IN_PROGRESS)))
    rig.append([b"v"])
    rig.finish()
    assert len(rig.brokers.sent(INIT_PRODUCER_ID)) == 2
    assert rig.brokers.log("t").values() == [b"v"]


def test_a_producer_id_that_is_refused_ends_the_task(rig: ProducerRig) -> None:
    rig.brokers.intercept(INIT_PRODUCER_ID, lambda _: Do(code=UNSUPPORTED_VERSION))
    rig.append([b"v"])
    with pytest.raises(RefusedError, match="UNSUPPORTED_VERSION"):
        rig.finish()


@pytest.mark.parametrize(
    ("newest", "lacking"),
    [
        pytest.param(9, "User:ANONYMOUS lacks WRITE on topic 't' of cluster 'fake'", id="2.8"),
        pytest.param(8, "User:ANONYMOUS lacks IDEMPOTENT_WRITE on cluster 'fake'", id="2.7"),
    ],
)
def test_a_producer_id_that_we_may_not_have_is_waited_for(
    rig: ProducerRig, newest: int, lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_manager, "DENIED", RetryPolicy.every(0.01))
    monkeypatch.setattr(NetworkClient, "newest", lambda *_: newest)
    rig.brokers.intercept(INIT_PRODUCER_ID, once(Do(code=CLUSTER_AUTHORIZATION_FAILED)))
    rig.append([b"v"])
    rig.finish()
    assert rig.brokers.log("t").values() == [b"v"]
    assert lacking in str(rig.blocked[0])
    assert rig.blocked[-1] is None


def test_a_partition_is_forgotten_only_when_nothing_of_it_is_under_way(rig: ProducerRig) -> None:
    rig.append([b"v"])
    with pytest.raises(AssertionError):
        rig.producer.remove(TP)
    rig.producer.remove(TopicPartition("never", 0))
    assert rig.producer.accumulator.pending(TP) == 0
