"""A broker that is far: more lines, larger batches, more bytes that wait; a near one: as ever."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce import broker_queues
from tests.wire.fake_broker import PRODUCE, Do, FakeCluster
from tests.wire.rigs import ProducerRig, flat, numbered

TPS = [TopicPartition("t", at) for at in range(4)]
ROUND_TRIP_SECONDS = 0.04


@pytest.fixture
def rig() -> Iterator[ProducerRig]:
    with FakeCluster(nodes=1) as brokers:
        brokers.create_topic("t", partitions=4)
        with ProducerRig(brokers, connections=2) as rig:
            rig.join_most = 10
            yield rig


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every broker is far, by its fastest response."""
    monkeypatch.setattr(broker_queues, "FAR_SECONDS", 0.0)
    monkeypatch.setattr(broker_queues, "FEWEST_RESPONSES", 1)
    monkeypatch.setattr(broker_queues, "CONNECTIONS_PER_SECOND", 1e9)


def requests_by_batches(rig: ProducerRig) -> int:
    return sum(
        len(topic.partition_data)
        for request in rig.brokers.sent(PRODUCE)
        for topic in request.body.topic_data
    )


def connections_in_use(rig: ProducerRig) -> int:
    return len(
        {partition.connection_index for partition in rig.producer.accumulator.partitions.values()}
    )


def offer_everywhere(rig: ProducerRig, count: int) -> list[bytes]:
    batches = numbered(count)
    for tp in TPS:
        rig.append(batches[0], tp=tp)
    rig.finish()
    for tp in TPS:
        rig.append(*batches[1:], tp=tp)
    rig.finish()
    for tp in TPS:
        assert rig.brokers.log(*tp).values() == flat(batches)
        assert [value for at, values, _ in rig.acked if at == tp for value in values] == flat(
            batches
        )
    return flat(batches)


@pytest.mark.usefixtures("far")
def test_what_waits_for_a_far_target_goes_joined_and_over_more_lines(rig: ProducerRig) -> None:
    offer_everywhere(rig, 60)
    assert connections_in_use(rig) == len(TPS)
    assert requests_by_batches(rig) < 4 * 60 / 2
    assert rig.producer.accumulator.waiting_bytes == rig.producer.accumulator.sent_bytes == 0


def test_a_near_target_gets_every_batch_as_it_came(rig: ProducerRig) -> None:
    offer_everywhere(rig, 60)
    assert rig.joins == 0
    assert requests_by_batches(rig) == 4 * 60
    assert connections_in_use(rig) <= 2
    assert rig.producer.wanted_bytes == 0


def test_the_fastest_response_shows_how_far_a_broker_is(
    rig: ProducerRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer_everywhere(rig, broker_queues.FEWEST_RESPONSES + 1)
    connection = rig.cluster.connection(1)
    assert connection is not None
    near = connection.fastest_seconds
    assert 0.0 < near < broker_queues.FAR_SECONDS
    monkeypatch.setattr(connection, "fastest_seconds", ROUND_TRIP_SECONDS)
    monkeypatch.setattr(broker_queues, "FAR_SECONDS", near / 2)
    rig.append([b"more"])
    rig.finish()
    rig.producer.note_silence()
    assert rig.producer.wanted_bytes > 0


@pytest.mark.usefixtures("far")
def test_a_batch_that_left_stays_as_it_is(rig: ProducerRig) -> None:
    """Sent again, it has to have the records that its number stands for."""
    rig.append([b"known"])
    rig.finish()
    lost = iter([Do(apply=True, drop=True)])
    rig.brokers.intercept(PRODUCE, lambda _: next(lost, None))
    batches = numbered(40)
    rig.append(*batches)
    rig.finish()
    assert rig.brokers.log("t", 0).values() == [b"known", *flat(batches)]
    assert rig.acked_values == [b"known", *flat(batches)]
    assert rig.joins > 0
