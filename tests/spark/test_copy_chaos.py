"""A copy between two clusters that fail at random: every record once and in order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce import broker_queues
from tests.spark.copies import OFFSETS, Copy
from tests.wire.fake_broker import FETCH, LIST_OFFSETS, METADATA, PRODUCE, Do, FakeCluster, Request

PARTITIONS = [TopicPartition("t", at) for at in range(3)]
BATCHES = 60
# Error codes that pass by themselves; 1 is a follower that lags behind, 70 and 71 are sessions.
SOURCE_FAILURES = {
    FETCH: [Do(drop=True), Do(garbage=b"\0"), *(Do(code=code) for code in (1, 3, 6, 70, 71, 78))],
    LIST_OFFSETS: [Do(drop=True), Do(code=6), Do(garbage=b"")],
    METADATA: [Do(drop=True), Do(code=5), Do(garbage=b"\x7f" * 9)],
}
TARGET_FAILURES = {
    PRODUCE: [
        Do(drop=True),
        Do(apply=True, drop=True),
        Do(code=6),
        Do(apply=True, code=7),
        Do(apply=True, code=20),
        Do(garbage=b""),
    ],
    METADATA: [Do(drop=True), Do(code=5), Do(garbage=b"\x7f" * 9)],
}


def trouble(dice: random.Random, failures: list[Do]) -> Callable[[Request], Do | None]:
    """Every tenth request fails somehow."""
    return lambda _: dice.choice(failures) if dice.random() < 0.1 else None


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    with FakeCluster(nodes=2) as source, FakeCluster(nodes=2) as target:
        source.create_topic("t", partitions=len(PARTITIONS))
        target.create_topic("a.t", partitions=len(PARTITIONS))
        target.create_topic(OFFSETS, partitions=5)
        copy = Copy(tmp_path, source, target)
        yield copy
        copy.close()


@pytest.mark.parametrize("is_far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("seed", range(8))
def test_every_record_is_copied_once_and_in_order(
    copy: Copy, seed: int, is_far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_queues, "FAR_SECONDS", 0.0 if is_far else 60.0)
    monkeypatch.setattr(broker_queues, "FEWEST_RESPONSES", 1)
    dice = random.Random(seed)
    for cluster, failures in ((copy.source, SOURCE_FAILURES), (copy.target, TARGET_FAILURES)):
        for api, actions in failures.items():
            cluster.intercept(api, trouble(dice, actions))
    loop = copy.start(dict.fromkeys(PARTITIONS), {"b.offset.flush.interval.ms": "30"})
    written: dict[TopicPartition, list[bytes]] = {tp: [] for tp in PARTITIONS}
    for number in range(BATCHES):
        tp = dice.choice(PARTITIONS)
        values = [b"%d-%d" % (number, at) for at in range(dice.randint(1, 3))]
        copy.source.write(tp, values)
        written[tp] += values
        if dice.random() < 0.1:
            copy.source.move_leader(dice.choice(PARTITIONS), dice.choice((1, 2)))
        if dice.random() < 0.1:
            moved = dice.choice(PARTITIONS)
            copy.target.move_leader(moved._replace(topic="a.t"), dice.choice((1, 2)))
        if dice.random() < 0.5:
            copy.copy.turn()
    total = sum(map(len, written.values()))
    copy.run_until(lambda: loop.metrics.records == total)
    copy.stop()
    assert {tp: copy.copied(tp) for tp in PARTITIONS} == written
    assert copy.stored() == {tp: len(values) - 1 for tp, values in written.items()}
    assert loop.is_clean
    assert (loop.lost_records, loop.skipped_records) == (0, 0)
