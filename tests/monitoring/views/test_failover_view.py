"""Exit code 0 of `failover check` only if nothing would be lost, and only with all evidence."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.monitoring.clusters.groups_look import GroupPosition, GroupSeen, GroupsSeen
from sparkmirror.monitoring.clusters.known import Known
from sparkmirror.monitoring.clusters.topics_look import TopicsSeen
from sparkmirror.monitoring.lag.partition_lag import PartitionLag, PartitionState
from sparkmirror.monitoring.views import view_base
from sparkmirror.monitoring.views import views as views_module
from sparkmirror.types import TopicPartition
from tests.monitoring.views.fakes import NOW, OPS, Scene, lag

IDLE = PartitionState.IDLE


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views_module, "READINGS_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(views_module, "GROUPS_WAIT_SECONDS", 0.0)
    assert view_base.READINGS_KEPT_MS


def copied(partition: int = 0) -> PartitionLag:
    return lag(partition=partition, state=IDLE, behind=0, seconds=0.0)


def position(committed: int, on_target: int | None, *, exact: bool = True) -> GroupPosition:
    return GroupPosition(
        TopicPartition("orders", 0),
        TopicPartition("a.orders", 0),
        committed,
        committed,
        exact,
        committed if on_target is None else on_target,
        on_target,
        None if on_target is None else committed - on_target,
    )


def scene_of(*lags: PartitionLag) -> Scene:
    scene = Scene()
    scene.add_source(",".join(f"orders-{at}" for at in range(max(1, len(lags)))))
    scene.lags.lags = list(lags)
    watch = scene.watch
    watch.topics = Known(
        TopicsSeen({"orders": 1}, {"a.orders": 1}, {"orders": "a.orders"}, {}), NOW, ""
    )
    groups = [GroupSeen("g", [position(100, 100)], 0, 0, NOW)]
    watch.groups = Known(GroupsSeen(groups, is_synced=True), NOW, "")
    watch.heartbeat = Known(NOW - 500, NOW, "")
    return scene


def ask(scene: Scene) -> dict[str, Any]:
    scene.views.flows(OPS)
    scene.look_again(5000)
    return scene.views.failover(OPS, "a", "b")


def evidence(found: dict[str, Any]) -> dict[str, str]:
    return {each["code"]: each["word"] for each in found["evidence"]}


def test_nothing_is_lost_if_all_was_copied_twice() -> None:
    found = ask(scene_of(copied()))
    assert found["lost"]["nothing_lost"]
    assert found["planned"]["nothing_lost"]
    assert found["records_lost"] == found["records_reread"] == 0
    assert found["lost"]["sentence"]["head"] == "Ready: nothing would be lost, 0 records re-read"
    assert len(found["readings"]) == 2
    assert found["readings"][1]["time_ms"] - found["readings"][0]["time_ms"] == 5000
    assert evidence(found) == {
        "alive": "Yes",
        "copied": "Yes",
        "lost": "Yes",
        "groups": "Yes",
        "exact": "Yes",
        "topics": "Yes",
        "consumers": "You check",
    }


def test_one_reading_is_not_enough() -> None:
    scene = scene_of(copied())
    found = scene.views.failover(OPS, "a", "b")
    assert not found["lost"]["nothing_lost"]
    assert found["lost"]["sentence"]["code"] == "not yet"


def test_what_is_on_the_way_would_be_lost_but_a_move_is_possible() -> None:
    found = ask(scene_of(lag(behind=41, seconds=0.6)))
    assert not found["lost"]["nothing_lost"]
    assert found["records_lost"] == found["records_on_the_way"] == 41
    assert (
        found["lost"]["sentence"]["head"] == "Only the last 0.6 s would be lost: about 41 records"
    )
    assert found["planned"]["nothing_lost"]
    assert found["planned"]["sentence"]["head"] == "Ready to move: nothing will be lost"


def test_while_producers_write_something_is_always_on_the_way() -> None:
    """Also if every report of the tasks happens to say that all was copied."""
    scene = scene_of(copied())
    scene.views.flows(OPS)
    scene.look_again(10_000)
    moved = lag(state=PartitionState.LIVE, behind=0, seconds=0.0, position=2000, at_ms=NOW + 10_000)
    scene.lags.lags = [moved]
    found = scene.views.failover(OPS, "a", "b")
    assert [reading["records_behind"] for reading in found["readings"]] == [0, 0]
    assert not found["lost"]["nothing_lost"]
    assert found["planned"]["nothing_lost"]


def test_heartbeats_are_no_records_that_somebody_misses() -> None:
    scene = scene_of(copied())
    scene.lags.lags.append(lag("heartbeats", behind=1, seconds=1.0))
    scene.views.flows(OPS)
    scene.look_again(5000)
    scene.lags.lags[1] = lag("heartbeats", behind=1, seconds=1.0, position=1005)
    assert scene.views.failover(OPS, "a", "b")["lost"]["nothing_lost"]


def test_old_figures_are_no_evidence() -> None:
    scene = scene_of(copied())
    scene.views.flows(OPS)
    scene.look_again(20_000)
    scene.views.flows(OPS)
    scene.look_again(5_000)
    found = scene.views.failover(OPS, "a", "b")
    assert not found["lost"]["nothing_lost"]
    assert (
        "figures of `orders-0` are 25 s old" in found["readings"][-1]["unknown"]["records_behind"]
    )


def test_a_stuck_partition_is_neither() -> None:
    found = ask(scene_of(copied(), lag(partition=1, state=PartitionState.STUCK, behind=254_906)))
    assert found["lost"]["sentence"]["head"] == "Not ready: 254,906 records would be lost"
    assert not found["planned"]["nothing_lost"]
    assert evidence(found)["copied"] == "No"


def test_what_is_not_known_makes_it_unknown() -> None:
    found = ask(scene_of(copied(), lag(partition=1, behind=None, seconds=None)))
    assert not found["lost"]["nothing_lost"]
    assert not found["planned"]["nothing_lost"]
    assert found["records_lost"] is None
    assert "orders-1" in found["unknown"]["records_lost"]
    assert found["lost"]["sentence"]["level"] == "unknown"
    assert evidence(found)["copied"] == "Unknown"


def test_without_the_list_of_topics_nothing_is_promised() -> None:
    scene = scene_of(copied())
    scene.watch.topics = Known().failed("timeout", NOW)
    found = ask(scene)
    assert not found["lost"]["nothing_lost"]
    assert not found["planned"]["nothing_lost"]
    assert evidence(found)["topics"] == "Unknown"


def test_a_topic_that_cannot_be_mirrored_would_be_missing() -> None:
    scene = scene_of(copied())
    topics = TopicsSeen(
        {"orders": 1, "payments": 2},
        {"a.orders": 1},
        {"orders": "a.orders", "payments": "a.payments"},
        {},
    )
    scene.watch.topics = Known(topics, NOW, "")
    found = ask(scene)
    assert not found["lost"]["nothing_lost"]
    assert "1 topic would be missing" in found["lost"]["sentence"]["head"]
    assert evidence(found)["topics"] == "Not all"


def test_skipped_records_are_on_the_source_only() -> None:
    found = ask(scene_of(lag(state=IDLE, behind=0, seconds=0.0, skipped=3)))
    assert not found["lost"]["nothing_lost"]
    assert found["records_lost"] == 3
    assert evidence(found)["lost"] == "No"


def test_groups_that_are_not_synced_cost_reading_again_not_records() -> None:
    scene = scene_of(copied())
    groups = [
        GroupSeen("busy", [position(100, 40)], 2, 3, NOW),
        GroupSeen("new", [position(100, None)], 1, 0, None),
        GroupSeen("old", [position(100, 90, exact=False)], 0, 0, NOW),
    ]
    scene.watch.groups = Known(GroupsSeen(groups, is_synced=True), NOW, "")
    found = ask(scene)
    assert found["lost"]["nothing_lost"]
    assert not found["planned"]["nothing_lost"]
    assert "stop the consumers of `busy` on b" in found["planned"]["sentence"]["text"]
    assert found["groups_without_offset"] == 1
    assert found["records_reread"] is None
    assert evidence(found)["groups"] == "Not all"
    assert evidence(found)["exact"] == "Not all"


def test_an_old_heartbeat_means_no() -> None:
    scene = scene_of(copied())
    scene.watch.heartbeat = Known(NOW - 60_000, NOW, "")
    assert evidence(ask(scene))["alive"] == "No"


def test_the_steps_name_the_command_and_what_is_done() -> None:
    found = ask(scene_of(copied()))
    commands = [step["command"] for step in found["planned"]["steps"]]
    assert "sparkmirror failover check a b" in commands
    assert [step["is_done"] for step in found["planned"]["steps"]][:3] == [True, True, True]
