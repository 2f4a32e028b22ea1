"""Consumer groups and topics that are not mirrored: the reason, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.monitoring.clusters.groups_look import (
    GroupPosition,
    GroupSeen,
    GroupsSeen,
    records_again,
)
from sparkmirror.monitoring.clusters.known import Known
from sparkmirror.monitoring.clusters.topics_look import TopicsSeen
from sparkmirror.monitoring.views import views as views_module
from sparkmirror.monitoring.views.wording.paging import NotThere, Query
from sparkmirror.types import TopicPartition
from tests.monitoring.views.fakes import FLOW, NOW, OPS, Scene, lag

SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("a.orders", 0)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views_module, "GROUPS_WAIT_SECONDS", 0.0)


def place(
    *,
    translated: int | None = 100,
    exact: bool = True,
    checkpoint: int | None = 100,
    on_target: int | None = 100,
    reread: int | None = 0,
    why: str = "",
) -> GroupPosition:
    return GroupPosition(SOURCE, TARGET, 100, translated, exact, checkpoint, on_target, reread, why)


def scene_with(*groups: GroupSeen, is_synced: bool = True) -> Scene:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag()]
    scene.watch.groups = Known(GroupsSeen(groups, is_synced), NOW, "")
    scene.look_again()
    return scene


def only(scene: Scene) -> dict[str, Any]:
    found: dict[str, Any] = scene.views.groups(OPS, Query())["rows"][0]
    return found


def test_a_group_is_synced_when_its_checkpoint_is_on_the_target() -> None:
    found = only(scene_with(GroupSeen("g", [place()], 2, 0, NOW - 41_000)))
    assert (found["state"], found["translation"]) == ("synced", "exact")
    assert found["checkpoint_age_seconds"] == 42.0
    assert found["newest"]["committed_on_target"] == 100


@pytest.mark.parametrize(
    ("group", "is_synced", "state", "reason"),
    [
        (GroupSeen("g", [place()], 1, 3), True, "not synced", "3 members on b"),
        (GroupSeen("g", [place(on_target=None, reread=None)], 0, 0), True, "not synced",
         "no offset on b yet"),
        (GroupSeen("g", [place(on_target=90)], 0, 0), True, "not synced", "older than the last"),
        (GroupSeen("g", [place(), place(on_target=None, reread=None)], 0, 0), True,
         "partly synced", "no offset on b yet"),
        (GroupSeen("g", [place(translated=None, checkpoint=None, on_target=None, reread=None,
                               why="no sync")], 0, 0), True, "not synced", "no sync"),
        (GroupSeen("g", [place(on_target=None, reread=None)], 0, 0), False, "not synced",
         "`sync.group.offsets.enabled` is false"),
        (GroupSeen("g", error="denied; to allow it: kafka-acls.sh x"), True, "unknown", "denied"),
        (GroupSeen("g", [place()], 0, None, target_error="target denies"), True, "unknown",
         "target denies"),
    ],
)  # fmt: skip
def test_why_a_group_is_not_synced(
    group: GroupSeen, is_synced: bool, state: str, reason: str
) -> None:
    found = only(scene_with(group, is_synced=is_synced))
    assert found["state"] == state
    assert reason in found["reason"]


def test_a_missing_permission_comes_with_the_command() -> None:
    found = only(scene_with(GroupSeen("g", error="denied; to allow it: kafka-acls.sh x")))
    assert found["remedy"] == {"text": "To allow it:", "command": "kafka-acls.sh x"}
    assert found["reread_records"] is None
    assert found["unknown"]["reread_records"].startswith("denied")


def test_partitions_of_a_group_say_why_there_is_nothing() -> None:
    places = [place(on_target=None, reread=None), place(exact=False, reread=7, on_target=93)]
    found = scene_with(GroupSeen("g", places, 0, 0)).views.group(OPS, FLOW, "g")
    first, second = found["rows"]
    assert (first["reread_records"], first["translation"]) == (7, "MM2's rule")
    assert second["committed_on_target"] is None
    assert "auto.offset.reset" in second["not_applicable"]["reread_records"]


def test_a_group_that_is_not_followed_is_not_there() -> None:
    with pytest.raises(NotThere, match="a->b follows no group 'x'"):
        scene_with().views.group(OPS, FLOW, "x")


def test_groups_that_cannot_be_asked_are_missing_with_the_reason() -> None:
    scene = scene_with()
    scene.watch.groups = Known().failed("target is down", NOW)
    found = scene.views.groups(OPS, Query())
    assert found["rows"] == []
    assert "groups of a->b: target is down" in found["missing"]


class HalfRate:
    """Every second source offset was copied; exact up to 80."""

    def translate(self, tp: TopicPartition, upstream_offset: int) -> Any:
        return type("T", (), {"downstream_offset": upstream_offset // 2})()

    def is_exact(self, tp: TopicPartition, upstream_offset: int) -> bool:
        return upstream_offset <= 80


def test_records_read_again_are_counted_on_the_source() -> None:
    translator: Any = HalfRate()
    assert records_again(translator, SOURCE, 80, 40) == 0
    assert records_again(translator, SOURCE, 80, 45) == 0
    assert records_again(translator, SOURCE, 80, 30) == 20
    assert records_again(translator, SOURCE, 100, 50) == 0


# -- not mirrored ---------------------------------------------------------------------------------


def not_mirrored(scene: Scene, **query: str) -> dict[str, Any]:
    return scene.views.unmirrored(OPS, Query(**query))  # type: ignore[arg-type]


def scene_of_topics(**hidden: str) -> Scene:
    scene = scene_with()
    found = {
        "orders": 1,
        "payments": 2,
        "secret-internal": 1,
        "other": 1,
        "mm2-offsets.b.internal": 1,
    }
    found |= {f"us.t{at}": 1 for at in range(8)}
    wanted = {"orders": "a.orders", "payments": "a.payments"}
    scene.watch.topics = Known(TopicsSeen(found, {"a.orders": 1}, wanted, hidden), NOW, "")
    return scene


def test_every_topic_that_is_not_mirrored_has_its_rule() -> None:
    found = not_mirrored(scene_of_topics())
    by_name = {row["topic"]: row for row in found["rows"]}
    assert by_name["payments"]["verdict"] == "blocked"
    other = by_name["other"]
    assert other["verdict"] == "by rule"
    assert other["key"] == "topics"
    stop = next(rule for rule in other["rules"] if rule["passed"] is False)
    assert stop["rule"] == "topics"
    assert other["rules"][-1]["passed"] is None
    assert "topics" in other["remedy"]["command"]
    assert other["explain"] == "sparkmirror explain topic other"
    assert by_name["us.*"]["count"] == 8
    assert len(by_name["us.*"]["topics"]) == 8
    assert found["counts"] == {"all": 12, "blocked": 1, "by rule": 11}
    assert found["rows"][0]["topic"] == "payments"


def test_not_mirrored_by_name_and_verdict() -> None:
    scene = scene_of_topics()
    assert [row["topic"] for row in not_mirrored(scene, state="blocked")["rows"]] == ["payments"]
    assert [row["topic"] for row in not_mirrored(scene, q="oth")["rows"]] == ["other"]


def test_a_topic_that_may_not_be_seen_is_blocked_with_the_command() -> None:
    scene = scene_of_topics(payroll="DENIED on payroll; to allow it: kafka-acls.sh y")
    row = not_mirrored(scene, q="payroll")["rows"][0]
    assert (row["verdict"], row["reason"]) == ("blocked", "DENIED on payroll")
    assert row["remedy"]["command"] == "kafka-acls.sh y"


def test_while_the_source_does_not_tell_its_topics_that_is_said() -> None:
    scene = scene_with()
    scene.watch.topics = Known().failed("source is down", NOW)
    found = not_mirrored(scene)
    assert found["rows"] == []
    assert "topics of a->b: source is down" in found["missing"]
