"""Which position holds: the group's, or what sparkmirror stored on the target."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.group_positions import (
    changed_by_others,
    commit_mark,
    group_name,
    only_stored,
    plan_commit,
    plan_seeds,
)
from sparkmirror.mirror.legacy_policy import LegacyReplicationPolicy
from sparkmirror.mirror.topics import MAX_TOPIC_NAME_LENGTH
from sparkmirror.types import TopicPartition

MARK = commit_mark("target-id")
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
        pytest.param(60, (50, commit_mark("other")), 50, id="another target: its positions"),
        pytest.param(60, (-1, ""), None, id="the group has no offset"),
    ],
)
def test_seeds(stored: int | None, committed: tuple[int, str], seed: int | None) -> None:
    found = plan_seeds({} if stored is None else {TP: stored}, {TP: committed}, MARK)
    assert found == ({} if seed is None else {TP: seed})


def test_a_position_that_only_we_have_is_told() -> None:
    other = TopicPartition("orders", 1)
    stored = {TP: 1, other: 2}
    assert only_stored(stored, {TP: (1, "")}) == [other]
    assert only_stored(stored, {TP: (1, ""), other: (-1, "")}) == [other]


def test_only_changes_are_committed_unless_all_are_renewed() -> None:
    committed = {TP: (50, MARK)}
    assert plan_commit({TP: 50}, committed, MARK, everything=False) == {}
    assert plan_commit({TP: 51}, committed, MARK, everything=False) == {TP: (51, MARK)}
    assert plan_commit({TP: 50}, committed, MARK, everything=True) == {TP: (50, MARK)}
    assert plan_commit({TP: 50}, {TP: (50, "")}, MARK, everything=False) == {TP: (50, MARK)}


@pytest.mark.parametrize(
    ("committed", "is_told"), [((50, MARK), False), ((50, ""), True), ((9, ""), True)]
)
def test_commits_of_others_are_noticed(committed: tuple[int, str], is_told: bool) -> None:
    found = changed_by_others({TP: 50}, {TP: committed}, MARK, [TP])
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
