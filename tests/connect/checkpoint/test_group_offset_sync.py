"""Groups get their offsets on the target: never back, not while in use, and never silently."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from sparkmirror.connect.checkpoint.group_offset_sync import GroupOffsetSync
from sparkmirror.errors import TransportError
from sparkmirror.mirror.group_offsets import NotWritten
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.types import FlowName, TopicPartition
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.connect.group_fakes import FakeGroups

T0, T1 = TopicPartition("a.t", 0), TopicPartition("a.t", 1)
FLOW = FlowName("a", "b")


@pytest.fixture
def target() -> FakeGroups:
    return FakeGroups()


@pytest.fixture
def sync(target: FakeGroups, caplog: pytest.LogCaptureFixture) -> GroupOffsetSync:
    caplog.set_level(logging.INFO)
    return GroupOffsetSync(FLOW, target)


def checkpoints(
    offsets: Mapping[TopicPartition, int], group: str = "g"
) -> dict[str, dict[TopicPartition, Checkpoint]]:
    return {group: {tp: Checkpoint(group, *tp, at, at, "m") for tp, at in offsets.items()}}


def test_a_group_that_is_new_on_the_target_gets_all(
    sync: GroupOffsetSync, target: FakeGroups
) -> None:
    report = sync.run(["g"], checkpoints({T0: 5, T1: 7}))
    assert target.altered == [("g", {T0: (5, "m"), T1: (7, "m")})]
    assert report.written == {"g": 2}
    assert report.reasons == {}


def test_an_offset_goes_forward_and_never_back(sync: GroupOffsetSync, target: FakeGroups) -> None:
    target.set("g", {T0: 3, T1: 9})
    assert sync.run(["g"], checkpoints({T0: 5, T1: 7})).written == {"g": 1}
    assert target.altered == [("g", {T0: (5, "m")})]


def test_a_group_that_is_ahead_is_named_with_its_partitions(
    sync: GroupOffsetSync, target: FakeGroups, caplog: pytest.LogCaptureFixture
) -> None:
    target.set("g", {T0: 9})
    report = sync.run(["g"], checkpoints({T0: 5}))
    assert report.reasons == {"g": NotWritten.ALREADY_AHEAD}
    (line,) = caplog.messages
    assert line.startswith("[a->b] offsets of group 'g' on the target: not written: the offset on")
    assert line.endswith("is further (a.t-0)")


def test_states_are_read_before_offsets(sync: GroupOffsetSync, target: FakeGroups) -> None:
    target.set("g", {T0: 3})
    sync.run(["g", "none"], checkpoints({T0: 5}))
    assert target.asked == [("states", ("g",)), ("offsets", ("g",))]


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance", "?"])
def test_a_group_in_use_is_not_touched(
    sync: GroupOffsetSync, target: FakeGroups, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    target.set("g", {T0: 3}, state=state)
    report = sync.run(["g"], checkpoints({T0: 5}))
    assert target.altered == []
    assert report.reasons == {"g": NotWritten.ACTIVE}
    assert "'g' on the target: not written: the group has members" in caplog.messages[0]


def test_a_member_that_comes_between_the_look_and_the_write(
    sync: GroupOffsetSync, target: FakeGroups
) -> None:
    target.set("g", {T0: 3})
    target.joining = {"g"}
    report = sync.run(["g"], checkpoints({T0: 5}))
    assert report.reasons == {"g": NotWritten.ACTIVE}
    assert (report.written, target.altered) == ({}, [])


def test_a_reason_is_said_once_and_again_when_it_changes(
    sync: GroupOffsetSync, target: FakeGroups, caplog: pytest.LogCaptureFixture
) -> None:
    known = checkpoints({T0: 5})
    target.set("g", {T0: 3}, state="Stable")
    for _ in range(3):
        sync.run(["g"], known)
    target.set("g", {T0: 9})
    sync.run(["g"], known)
    target.set("g", {T0: 3}, state="Stable")
    sync.run(["g"], known)
    assert [line.partition("not written: the ")[2][:10] for line in caplog.messages] == [
        "group has ",
        "offset on ",
        "group has ",
    ]


def test_nothing_is_said_of_groups_with_nothing_to_write(
    sync: GroupOffsetSync, target: FakeGroups, caplog: pytest.LogCaptureFixture
) -> None:
    target.set("same", {T0: 5})
    report = sync.run(["same", "new"], checkpoints({T0: 5}, "same"))
    assert report.reasons == {"same": NotWritten.UNCHANGED, "new": NotWritten.NO_CHECKPOINT}
    assert caplog.messages == []
    assert target.altered == []


def test_a_group_that_cannot_be_asked_is_left_alone_and_named(
    sync: GroupOffsetSync, target: FakeGroups, caplog: pytest.LogCaptureFixture
) -> None:
    target.set("g", {T0: 3})
    target.errors["g"] = TransportError("describe group 'g': cut")
    report = sync.run(["g"], checkpoints({T0: 5}))
    assert report.reasons == {"g": NotWritten.NOT_DESCRIBED}
    assert report.errors == {"g": "describe group 'g': cut"}
    assert caplog.records[0].levelno == logging.WARNING
    assert caplog.messages[0].endswith("(describe group 'g': cut)")
    assert target.altered == []


def test_offsets_that_cannot_be_read_are_not_overwritten(
    sync: GroupOffsetSync, target: FakeGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.set("g", {T0: 3})
    cut = TransportError("cut")
    monkeypatch.setattr(target, "committed_offsets", lambda groups: dict.fromkeys(groups, cut))
    assert sync.run(["g"], checkpoints({T0: 5})).reasons == {"g": NotWritten.OFFSETS_UNREAD}
    assert target.altered == []


def test_an_offset_that_others_took_away_is_written_with_a_warning(
    sync: GroupOffsetSync, target: FakeGroups, caplog: pytest.LogCaptureFixture
) -> None:
    target.set("g", {T0: -1})
    assert sync.run(["g"], checkpoints({T0: 5})).written == {"g": 1}
    assert "group 'g' has no offset any more on the target in a.t-0" in caplog.messages[0]


def test_partitions_that_the_broker_refuses_are_named(
    sync: GroupOffsetSync, target: FakeGroups, caplog: pytest.LogCaptureFixture
) -> None:
    target.refused[T1] = broker_error("commit", 3)
    report = sync.run(["g"], checkpoints({T0: 5, T1: 7}))
    assert report.written == {"g": 1}
    assert report.errors == {"g": "commit: UNKNOWN_TOPIC_OR_PARTITION"}
    assert "a.t-1 not written: commit: UNKNOWN_TOPIC_OR_PARTITION" in caplog.messages[0]


def test_groups_that_are_not_followed_are_not_written(
    sync: GroupOffsetSync, target: FakeGroups
) -> None:
    assert sync.run(["other"], checkpoints({T0: 5})).written == {}
    assert target.altered == []


def test_counts_by_reason(sync: GroupOffsetSync, target: FakeGroups) -> None:
    target.set("busy", {T0: 3}, state="Stable")
    known = checkpoints({T0: 5}, "busy") | checkpoints({T0: 5}, "free")
    report = sync.run(["busy", "free", "x", "y"], known)
    assert report.counts == {NotWritten.ACTIVE: 1, NotWritten.NO_CHECKPOINT: 2}


def test_a_stop_ends_the_round_between_two_groups(
    sync: GroupOffsetSync, target: FakeGroups
) -> None:
    known = checkpoints({T0: 5}, "first") | checkpoints({T0: 5}, "second")
    report = sync.run(["first", "second"], known, lambda: bool(target.altered))
    assert report.written == {"first": 1}
    assert [group for group, _ in target.altered] == ["first"]
