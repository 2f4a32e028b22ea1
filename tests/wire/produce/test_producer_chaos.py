"""Anything that can go wrong, at random, and still every record once and in order."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce import broker_queues
from tests.wire.fake_broker import INIT_PRODUCER_ID, PRODUCE, Do, FakeCluster, Request
from tests.wire.rigs import ProducerRig

NODES = (1, 2, 3)
PARTITIONS = [TopicPartition("t", at) for at in range(4)]
BATCHES = 60
MOST_BYTES = 400
FAILURES = [
    Do(drop=True),
    Do(apply=True, drop=True),
    Do(code=6),
    Do(code=7),
    Do(apply=True, code=7),
    Do(apply=True, code=20),
    Do(code=56),
    Do(garbage=b""),
    Do(garbage=b"\x7f" * 30),
]


def trouble(dice: random.Random, brokers: FakeCluster) -> Callable[[Request], Do | None]:
    """A broker's day: now and then a failure, or another leader."""

    def decide(_: Request) -> Do | None:
        chance = dice.random()
        if chance < 0.15:
            return dice.choice(FAILURES)
        if chance < 0.25:
            brokers.move_leader(dice.choice(PARTITIONS), dice.choice(NODES))
        return None

    return decide


def make_batch(dice: random.Random, number: int) -> list[bytes]:
    """One to four records, which are sometimes too large for one batch."""
    size = 150 if dice.random() < 0.1 else 5
    return [b"%03d-%d-" % (number, at) + bytes(size) for at in range(dice.randint(1, 4))]


@pytest.mark.parametrize("is_far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("seed", range(12))
def test_every_record_arrives_once_and_in_order(
    seed: int, is_far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few bytes that partitions change their line again and again.
    monkeypatch.setattr(broker_queues, "TRICKLE_BYTES", 400)
    monkeypatch.setattr(broker_queues, "FAR_SECONDS", 0.0 if is_far else 60.0)
    monkeypatch.setattr(broker_queues, "FEWEST_RESPONSES", 1)
    dice = random.Random(seed)
    with FakeCluster(nodes=len(NODES)) as brokers, ProducerRig(brokers, connections=2) as rig:
        rig.join_most = 4
        brokers.create_topic("t", partitions=len(PARTITIONS))
        for tp in PARTITIONS:
            brokers.log(*tp).max_message_bytes = MOST_BYTES
        brokers.intercept(PRODUCE, trouble(dice, brokers))
        expected: dict[TopicPartition, list[bytes]] = {tp: [] for tp in PARTITIONS}
        for number in range(BATCHES):
            tp = dice.choice(PARTITIONS)
            values = make_batch(dice, number)
            expected[tp] += values
            rig.append(values, tp=tp)
            if dice.random() < 0.3:
                rig.loop.run_once(0.002)
        rig.finish()
        stored: dict[TopicPartition, list[bytes]] = {tp: [] for tp in PARTITIONS}
        for tp, stored_values, _ in rig.acked:
            stored[tp] += stored_values
        assert {tp: brokers.log(*tp).values() for tp in PARTITIONS} == expected
        assert stored == expected
        assert bool(rig.joins) is is_far
        assert len(brokers.sent(INIT_PRODUCER_ID)) == 1
        producer = rig.producer
        assert (
            producer.accumulator.waiting_bytes,
            producer.accumulator.sent_bytes,
            producer.accumulator.blocked_bytes,
        ) == (0, 0, 0)
