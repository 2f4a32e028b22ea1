"""Which position holds: the group's, or what sparkmirror stored on the target."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.legacy_policy import LegacyReplicationPolicy
from sparkmirror.mirror.positions.group_positions import (
    changed_by_others,
    commit_mark,
    group_name,
    only_stored,
    plan_commit,
    plan_corrections,
    plan_seeds,
)
from sparkmirror.mirror.topics import MAX_TOPIC_NAME_LENGTH
from sparkmirror.types import TopicPartition

ID, OTHER_ID = bytes(range(16)), bytes(range(1, 17))
MARK = commit_mark("target-id", ID)
NO_ID = commit_mark("target-id")
DELETED = commit_mark("target-id", OTHER_ID)
TP = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("stored", "committed", "seed"),
    [
        pytest.param(None, (50, ""), 50, id="MirrorMaker 1 has run, we never"),
        pytest.param(None, (0, ""), 0, id="somebody reset it to the start"),
        pytest.param(40, (50, ""), 50, id="MirrorMaker 1 has run since"),
        pytest.param(60, (50, ""), 50, id="somebody reset it to an earlier offset"),
        pytest.param(50, (50, ""), None, id="nothing has changed, and the stored one knows more"),
        pytest.param(60, (50, MARK), None, id="we crashed before we could commit"),
        pytest.param(40, (50, MARK), None, id="the source lost records, and we went back"),
        pytest.param(None, (50, MARK), 50, id="our topic was deleted"),
        pytest.param(60, (50, NO_ID), None, id="brokers did not tell ids when we committed"),
        pytest.param(None, (50, NO_ID), 50, id="the same, and our topic was deleted"),
        pytest.param(None, (50, DELETED), None, id="of a topic that is gone"),
        pytest.param(60, (50, DELETED), None, id="the same, and we copy the new one already"),
        pytest.param(60, (50, commit_mark("other", ID)), 50, id="another target: its positions"),
        pytest.param(
            None, (50, commit_mark("other", OTHER_ID)), None, id="another target, topic is gone"
        ),
        pytest.param(60, (50, commit_mark("target-id2")), 50, id="a target with a similar id"),
        pytest.param(60, (50, f"{NO_ID} x"), None, id="what is no id is unknown"),
        pytest.param(60, (-1, ""), None, id="the group has no offset"),
    ],
)
def test_seeds(stored: int | None, committed: tuple[int, str], seed: int | None) -> None:
    positions = {} if stored is None else {TP: stored}
    found = plan_seeds(positions, {TP: committed}, NO_ID, {"orders": ID})
    assert found == ({} if seed is None else {TP: seed})


@pytest.mark.parametrize("topic_ids", [{}, {"orders": b""}])
def test_without_ids_our_commit_is_used_unchanged(topic_ids: dict[str, bytes]) -> None:
    assert plan_seeds({}, {TP: (50, MARK)}, NO_ID, topic_ids) == {TP: 50}


def test_a_position_that_only_we_have_is_reported() -> None:
    other = TopicPartition("orders", 1)
    stored = {TP: 1, other: 2}
    assert only_stored(stored, {TP: (1, "")}) == [other]
    assert only_stored(stored, {TP: (1, ""), other: (-1, "")}) == [other]


@pytest.mark.parametrize(
    ("metadata", "is_corrected"),
    [(DELETED, True), (MARK, False), (NO_ID, False), ("", False), ("x y z", False)],
)
def test_a_commit_of_ours_for_a_topic_that_is_gone_is_corrected(
    metadata: str, is_corrected: bool
) -> None:
    other = TopicPartition("orders", 1)
    committed = {TP: (50, metadata), other: (50, metadata)}
    found = plan_corrections(committed, "target-id", {"orders": ID}, [TP])
    assert found == ({TP: (0, MARK)} if is_corrected else {})
    assert plan_corrections(committed, "target-id", {}, [TP]) == {}


def test_only_changes_are_committed_unless_all_are_renewed() -> None:
    committed = {TP: (50, MARK)}
    same, newer = {TP: (50, MARK)}, {TP: (51, MARK)}
    assert plan_commit(same, committed, everything=False) == {}
    assert plan_commit(newer, committed, everything=False) == newer
    assert plan_commit(same, committed, everything=True) == same
    assert plan_commit(same, {TP: (50, "")}, everything=False) == same
    assert plan_commit(same, {TP: (50, DELETED)}, everything=False) == same


@pytest.mark.parametrize(
    ("committed", "is_told"),
    [((50, MARK), False), ((40, NO_ID), False), ((50, ""), True), ((9, ""), True)],
)
def test_commits_of_others_are_noticed(committed: tuple[int, str], is_told: bool) -> None:
    found = changed_by_others({TP}, {TP: committed}, NO_ID, [TP])
    assert found == ([TP] if is_told else [])


def test_names_are_good_for_topics_and_their_own() -> None:
    assert group_name("mm1", "c-id") == "mm1.c-id"
    strange = {group_name(group, "c") for group in ("a b", "a/b", "a_b", "x" * 500, "x" * 501)}
    assert len(strange) == 5
    longest = f"mm2-offsets.{group_name('x' * 500, 'c' * 22)}.internal"
    assert len(longest) <= MAX_TOPIC_NAME_LENGTH


@pytest.mark.parametrize("topic", ["orders", "my-heartbeats", "__mine", ".dot", "a.internal"])
def test_every_name_of_a_user_is_kept(topic: str) -> None:
    policy = LegacyReplicationPolicy("source")
    assert policy.format_remote_topic("source", topic) == topic
    assert not policy.is_internal_topic(topic)


@pytest.mark.parametrize(
    "topic", ["__consumer_offsets", "__transaction_state", "mm2-offsets.mm1.x.internal"]
)
def test_internal_topics_are_not_copied(topic: str) -> None:
    assert LegacyReplicationPolicy("source").is_internal_topic(topic)
