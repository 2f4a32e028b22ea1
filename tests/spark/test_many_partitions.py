"""Many partitions in one task: what is asked of brokers does not grow with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.spark.offsets.offset_committer import OffsetCommitter
from sparkmirror.types import TopicPartition
from tests.spark.copies import OFFSETS, Copy
from tests.wire.fake_broker import (
    EPOCH_ENDS,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    Do,
    FakeCluster,
    once,
)

NAMES = ["t", *(f"t{number}" for number in range(29))]
EACH = 10
PARTITIONS = [TopicPartition(name, at) for name in NAMES for at in range(EACH)]
# Requests of one kind, of one cluster: for one partition it would be one or two.
FEW = 4
NOT_LEADER = 6


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    with FakeCluster(nodes=2) as source, FakeCluster() as target:
        for name in NAMES:
            source.create_topic(name, partitions=EACH)
            target.create_topic(f"a.{name}", partitions=EACH)
        target.create_topic(OFFSETS, partitions=5)
        for tp in PARTITIONS:
            source.write(tp, [b"0"])
        copy = Copy(tmp_path, source, target)
        yield copy
        copy.close()


def sent(brokers: FakeCluster) -> Counter[int]:
    return Counter(request.api for request in list(brokers.requests))


def wait_for_all(copy: Copy, count: int) -> None:
    copy.run_until(lambda: all(len(copy.copied(tp)) == count for tp in PARTITIONS))


def test_a_start_takes_a_few_requests(copy: Copy) -> None:
    copy.start(dict.fromkeys(PARTITIONS))
    wait_for_all(copy, 1)
    for api in (METADATA, LIST_OFFSETS):
        assert sent(copy.source)[api] <= FEW
    assert sent(copy.target)[METADATA] <= FEW


def test_all_leaders_that_move_at_once_are_found_and_asked_with_a_few_requests(copy: Copy) -> None:
    copy.start(dict.fromkeys(PARTITIONS))
    wait_for_all(copy, 1)
    before = sent(copy.source)
    for tp in PARTITIONS:
        copy.source.move_leader(tp, 2)
        copy.source.write(tp, [b"1"])
    wait_for_all(copy, 2)
    asked = sent(copy.source) - before
    assert 1 <= asked[METADATA] <= FEW
    assert 1 <= asked[EPOCH_ENDS] <= FEW
    assert [copy.copied(tp) for tp in PARTITIONS] == [[b"0", b"1"]] * len(PARTITIONS)


def test_partitions_that_leave_together_are_stored_together(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = copy.start(dict.fromkeys(PARTITIONS))
    wait_for_all(copy, 1)
    commits: list[int] = []
    commit = OffsetCommitter.commit

    def count(committer: OffsetCommitter) -> None:
        commits.append(loop.metrics.partitions)
        commit(committer)

    turns = 0

    def is_empty() -> bool:
        nonlocal turns
        turns += 1
        return loop.metrics.partitions == 0

    monkeypatch.setattr(OffsetCommitter, "commit", count)
    loop.revoke(PARTITIONS)
    copy.run_until(is_empty)
    assert 1 <= len(commits) <= turns
    assert set(copy.stored().values()) == {0}
    assert len(copy.stored()) == len(PARTITIONS)


def test_partitions_that_a_broker_refuses_for_a_while_come_back_together(copy: Copy) -> None:
    rejections = [once(Do(code=NOT_LEADER)) for _ in range(3)]
    for refusal in rejections:
        copy.target.intercept(PRODUCE, refusal)
    # By chance the waits are 20 % shorter or longer: a request for each, if each came back alone.
    copy.start(dict.fromkeys(PARTITIONS), {"b.producer.retry.backoff.ms": "200"})
    wait_for_all(copy, 1)
    assert all(refusal.happened for refusal in rejections)
    assert len(rejections) < sent(copy.target)[PRODUCE] <= 5 * len(rejections)
    assert sent(copy.target)[METADATA] <= 3 * FEW
