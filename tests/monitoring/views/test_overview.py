"""The verdict and the problems: what needs a person first, and unknown is never zero."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.connect.entities import State
from sparkmirror.events import EventKind
from sparkmirror.monitoring.clusters.flow_watch import BrokersSeen
from sparkmirror.monitoring.clusters.known import Known
from sparkmirror.monitoring.event_log import Event
from sparkmirror.monitoring.lag.partition_lag import PartitionState
from tests.monitoring.views.fakes import FLOW, NAME, NOW, OPS, Scene, lag

HOUR = 3600.0


def overview(scene: Scene) -> dict[str, Any]:
    return scene.views.overview(OPS)


def test_a_worker_without_connectors_says_what_to_do() -> None:
    found = overview(Scene())
    assert found["verdict"]["code"] == "empty"
    assert "sparkmirror deploy" in found["verdict"]["text"]
    assert found["flows"] == found["problems"] == []


def test_all_is_right_with_the_evidence() -> None:
    scene = Scene()
    scene.add_source("orders-0,orders-1")
    scene.lags.lags = [lag(), lag(partition=1, state=PartitionState.IDLE, behind=0, seconds=0.0)]
    found = overview(scene)
    assert found["verdict"]["code"] == "ok"
    assert found["verdict"]["text"].startswith("2 of 2 partitions in 1 flow are live")
    assert "0.4 s behind" in found["verdict"]["text"]
    assert found["records_behind"] == 3
    assert found["bytes_per_second"] is None
    assert "10 s" in found["unknown"]["bytes_per_second"]


def test_a_task_that_has_not_reported_is_unknown_not_idle() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    found = overview(scene)
    flow = found["flows"][0]
    assert (flow["state"], flow["records_behind"]) == ("unknown", None)
    assert flow["word"] == "1 partition unknown"
    assert found["verdict"]["level"] == "unknown"
    assert found["records_behind"] is None
    assert "has not reported yet" in found["unknown"]["records_behind"]


def test_a_flow_without_topics_is_not_zero_behind() -> None:
    scene = Scene()
    scene.add_source()
    found = overview(scene)
    flow = found["flows"][0]
    assert flow["records_behind"] is flow["seconds_behind"] is None
    assert flow["not_applicable"]["records_behind"] == "no topic is mirrored yet"
    assert flow["word"] == "No topic yet"
    assert found["records_behind"] == 0
    assert found["failover"][0]["level"] == "unknown"


def test_a_paused_connector_is_paused_with_what_is_known() -> None:
    scene = Scene()
    scene.add_source("orders-0", state=State.PAUSED)
    status = scene.herder.statuses[NAME]
    scene.herder.statuses[NAME] = type(status)(NAME, State.PAUSED, "", status.tasks)
    found = overview(scene)["flows"][0]
    assert (found["state"], found["word"]) == ("paused", "Paused")


def test_problems_are_sorted_by_when_loss_begins() -> None:
    scene = Scene()
    scene.add_source("orders-0,payments-0", "orders-1")
    scene.lags.lags = [
        lag("payments", 0, PartitionState.STUCK, behind=9, seconds=500.0, problem="no leader",
            until_loss=5 * 24 * HOUR),
        lag("orders", 1, PartitionState.FAILED, behind=7, seconds=100.0, task=1,
            problem="too large; raise max.message.bytes", until_loss=2 * HOUR),
        lag("orders", 0),
    ]  # fmt: skip
    overview(scene)
    scene.look_again(61_000)
    found = overview(scene)
    assert [row["topic"] for row in found["problems"]] == ["orders", "payments"]
    first = found["problems"][0]
    assert first["title"] == "`orders-1` has failed"
    assert first["text"] == "too large"
    assert first["remedy"] == {"text": "Raise max.message.bytes", "command": ""}
    assert first["seconds_until_loss"] == 2 * HOUR
    assert first["records_behind"] == 7
    assert found["verdict"]["head"] == "2 things need you. Nothing is lost yet."


def test_what_is_stuck_for_a_moment_is_no_problem_yet() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag(state=PartitionState.STUCK, problem="no leader")]
    assert overview(scene)["problems"] == []
    scene.look_again(61_000)
    assert [row["code"] for row in overview(scene)["problems"]] == ["stuck"]


def test_since_when_a_partition_is_stuck_comes_from_its_event() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag(state=PartitionState.STUCK, problem="no leader")]
    scene.events.found = [
        Event(1, NOW - 90_000, EventKind.STUCK, "orders-0 waits", flow=FLOW, connector=NAME,
              topic="orders", partition=0, lasts=True)
    ]  # fmt: skip
    found = overview(scene)["problems"]
    assert [row["since_ms"] for row in found] == [NOW - 90_000]


def test_partitions_that_wait_for_the_same_reason_are_one_problem() -> None:
    scene = Scene()
    scene.add_source(",".join(f"orders-{at}" for at in range(30)))
    scene.lags.lags = [
        lag(partition=at, state=PartitionState.FAILED, problem=f"a.orders-{at}: denied")
        for at in range(30)
    ]
    found = overview(scene)["problems"]
    assert [row["title"] for row in found] == ["30 partitions have failed"]
    assert found[0]["records_behind"] == 90


def test_lost_records_come_first_and_stay() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag(lost=12)]
    scene.events.found = [
        Event(4, NOW - 9, EventKind.LOST, "orders-0: offsets 5 to 16 are gone", flow=FLOW,
              topic="orders", partition=0)
    ]  # fmt: skip
    found = overview(scene)
    assert found["verdict"]["head"] == "Records were lost."
    assert found["problems"][0]["title"] == "12 records of `orders-0` were lost"
    assert found["problems"][0]["text"] == "orders-0: offsets 5 to 16 are gone"
    assert found["problems"][0]["id"] == f"lost {FLOW}/orders-0/12"


def test_a_failed_task_is_a_problem_with_its_reason_and_remedy() -> None:
    scene = Scene()
    trace = "sparkmirror.errors.RefusedError: orders-0 refused; raise max.message.bytes"
    scene.add_source("orders-0", state=State.FAILED, trace=trace)
    scene.lags.lags = [lag()]
    found = overview(scene)
    assert found["problems"][0]["title"] == f"Task 0 of `{NAME}` has failed"
    assert found["problems"][0]["text"] == "orders-0 refused"
    assert found["problems"][0]["remedy"]["text"] == "Raise max.message.bytes"
    assert found["flows"][0]["word"] == "1 task failed"
    assert found["flows"][0]["sentence"]["level"] == "bad"


def test_an_unreachable_cluster_is_named_and_its_numbers_are_unknown() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag()]
    watch = scene.watch
    watch.source = Known(BrokersSeen(frozenset({1, 2}), frozenset({1, 2, 3})), NOW, "")
    watch.target = Known().failed("connection refused", NOW - 20_000)
    scene.look_again()
    found = overview(scene)
    states = {row["alias"]: row for row in found["clusters"]}
    assert states["a"]["state"] == "partly"
    assert (states["a"]["brokers_reachable"], states["a"]["brokers_known"]) == (2, 3)
    assert states["b"]["state"] == "unreachable"
    assert states["b"]["brokers_known"] is None
    assert states["b"]["unknown"]["brokers_known"] == "connection refused"
    assert [row["code"] for row in found["problems"]] == ["unreachable"]
    assert "cluster b: connection refused" in found["missing"]


def test_the_catch_up_is_estimated_only_after_the_backlog_fell_for_ten_seconds() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    late = PartitionState.CATCHING_UP
    scene.lags.lags = [lag(state=late, behind=100_000, seconds=600.0)]
    found = overview(scene)["flows"][0]["catch_up"]
    assert (found["state"], found["seconds"]) == ("unknown", None)
    scene.look_again(10_000)
    scene.lags.lags = [lag(state=late, behind=80_000, seconds=500.0, position=31_000)]
    flow = overview(scene)["flows"][0]
    assert flow["catch_up"]["state"] == "about"
    assert flow["catch_up"]["seconds"] == pytest.approx(40.0)
    assert flow["catch_up"]["change_per_second"] == pytest.approx(-2000.0)
    assert flow["records_per_second"] == pytest.approx(3000.0)
    assert flow["written_records_per_second"] == pytest.approx(1000.0)
    assert overview(scene)["verdict"]["head"] == "Catching up: a to b is done in about 40 s"


def test_since_when_a_flow_is_caught_up() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag(state=PartitionState.CATCHING_UP, behind=9000, seconds=60.0)]
    overview(scene)
    scene.look_again(5000)
    scene.lags.lags = [lag()]
    found = overview(scene)["flows"][0]["catch_up"]
    assert (found["state"], found["since_ms"]) == ("done", NOW + 5000)


def test_a_backlog_that_grows_is_not_promised_to_end() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    late = PartitionState.CATCHING_UP
    scene.lags.lags = [lag(state=late, behind=1000, seconds=60.0)]
    overview(scene)
    scene.look_again(10_000)
    scene.lags.lags = [lag(state=late, behind=3000, seconds=70.0)]
    found = overview(scene)["flows"][0]["catch_up"]
    assert (found["state"], found["text"]) == ("not by itself", "grows by 200 records/s")


def test_the_heartbeat_is_that_which_arrived_on_the_target() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag()]
    assert "not asked yet" in overview(scene)["flows"][0]["unknown"]["heartbeat_age_seconds"]
    scene.watch.heartbeat = Known(NOW - 800, NOW, "")
    scene.look_again(0)
    assert overview(scene)["flows"][0]["heartbeat_age_seconds"] == 0.8


def test_the_frame_tells_who_asks_and_which_workers_there_are() -> None:
    found = overview(Scene())
    assert found["who"] == {"name": "ops", "role": "operator", "authenticated": True}
    assert found["workers"][0]["is_this"]
    assert found["now_ms"] == NOW
