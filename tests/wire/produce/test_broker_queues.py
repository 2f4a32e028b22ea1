"""Two connections to one broker: who uses which, and what happens when one of them dies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.errors import TransportError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce import broker_queues
from tests.wire.fake_broker import PRODUCE, FakeCluster
from tests.wire.rigs import ProducerRig, flat, numbered

TPS = [TopicPartition("t", at) for at in range(4)]


@pytest.fixture
def backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever waits is a backlog: every partition goes over its own line."""
    monkeypatch.setattr(broker_queues, "TRICKLE_BYTES", 0)


@pytest.fixture
def rig() -> Iterator[ProducerRig]:
    with FakeCluster(nodes=2) as brokers:
        brokers.create_topic("t", partitions=4)
        for tp in TPS:
            brokers.move_leader(tp, 1)
        with ProducerRig(brokers, connections=2) as rig:
            yield rig


def partitions_by_request(rig: ProducerRig) -> set[tuple[int, ...]]:
    return {
        tuple(row.index for topic in request.body.topic_data for row in topic.partition_data)
        for request in rig.brokers.sent(PRODUCE)
    }


@pytest.mark.usefixtures("backlog")
def test_partitions_take_turns_and_stay_on_their_line(rig: ProducerRig) -> None:
    batches = numbered(30)
    for tp in TPS:
        rig.append(*batches, tp=tp)
    rig.finish()
    for tp in TPS:
        assert rig.brokers.log("t", tp.partition).values() == flat(batches)
    used = {number % 2 for row in partitions_by_request(rig) for number in row}
    assert used == {0, 1}
    assert all(len({number % 2 for number in row}) == 1 for row in partitions_by_request(rig))
    assert rig.cluster.connection(1, 0) is not rig.cluster.connection(1, 1)


@pytest.mark.usefixtures("backlog")
def test_the_other_line_does_not_notice_when_one_dies(rig: ProducerRig) -> None:
    batches = numbered(40)
    for tp in TPS:
        rig.append(*batches[:20], tp=tp)
    rig.finish()
    dying = rig.cluster.connection(1, 1)
    assert dying is not None
    for tp in TPS:
        rig.append(*batches[20:], tp=tp)
    dying.fail(TransportError("cut"))
    rig.finish()
    for tp in TPS:
        assert rig.brokers.log("t", tp.partition).values() == flat(batches)
        assert [values for at, values, _ in rig.acked if at == tp] == [tuple(b) for b in batches]


@pytest.mark.usefixtures("backlog")
def test_both_lines_follow_a_new_leader(rig: ProducerRig) -> None:
    batches = numbered(20)
    for tp in TPS:
        rig.append(*batches[:10], tp=tp)
    rig.finish()
    for tp in TPS:
        rig.brokers.move_leader(tp, 2)
        rig.append(*batches[10:], tp=tp)
    rig.finish()
    for tp in TPS:
        assert rig.brokers.log("t", tp.partition).values() == flat(batches)
    assert rig.cluster.connection(2, 0) is not None
    assert rig.cluster.connection(2, 1) is not None


def test_a_trickle_goes_over_the_first_line_in_one_request(rig: ProducerRig) -> None:
    rig.append_to_all(TPS, [b"first"])  # one after the other: the leader does not know us yet
    rig.finish()
    before = len(rig.brokers.sent(PRODUCE))
    rig.append_to_all(TPS, [b"second"])
    rig.finish()
    assert len(rig.brokers.sent(PRODUCE)) == before + 1
    assert rig.cluster.connection(1, 0) is not None


def test_a_backlog_spreads_over_both_lines_and_a_trickle_comes_back(rig: ProducerRig) -> None:
    small, large = [b"small"], [bytes(broker_queues.TRICKLE_BYTES)]
    rounds = [small, small, large, large, small, large, small]
    for values in rounds:
        rig.append_to_all(TPS, values)
        rig.loop.run_once(0.002)
    rig.finish()
    rig.append_to_all(TPS, small)
    rig.finish()
    for tp in TPS:
        assert rig.brokers.log("t", tp.partition).values() == flat([*rounds, small])
    lines = {frozenset(number % 2 for number in row) for row in partitions_by_request(rig)}
    assert {frozenset({0, 1}), frozenset({0}), frozenset({1})} <= lines
    assert rig.cluster.connection(1, 0) is not rig.cluster.connection(1, 1)
