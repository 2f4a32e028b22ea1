"""Any worker answers for all of its group, and says who did not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkmirror.connect.entities import State
from sparkmirror.errors import MirrorError
from sparkmirror.events import EventKind
from sparkmirror.monitoring.event_log import Event
from sparkmirror.monitoring.gathering.worker_figures import (
    FlowRate,
    OddFigures,
    WorkerFigures,
    decode_figures,
    encode_figures,
)
from sparkmirror.monitoring.lag.partition_lag import PartitionState
from tests.monitoring.views.fakes import FLOW, NAME, NOW, OPS, OTHER, OWN, Scene, lag


def test_figures_of_another_worker_arrive_as_they_were() -> None:
    event = Event(7, NOW, EventKind.STUCK, "x waits", flow=FLOW, topic="x", partition=1, count=3)
    figures = WorkerFigures(
        "w:1", "http://w:1/", NOW, True, [lag(seconds=1.5)], [FlowRate(FLOW, NAME)], [event]
    )
    found = decode_figures(json.dumps(encode_figures(figures)).encode())
    assert found.partitions[0].source == ("orders", 0)
    assert found.partitions[0].seconds_behind == 1.5
    assert found.partitions[0].state is PartitionState.LIVE
    assert found.events == [event]
    assert (found.id, found.leads) == ("w:1", True)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nothing",
        b"[]",
        b"{}",
        b'{"id":1}',
        b"[" * 100_000,
        (
            b'{"id":"a","url":"b","at_ms":"x","leads":true,"partition_fields":[],"partitions":[],'
            b'"rates":[],"event_fields":[],"events":[]}'
        ),
        (
            b'{"id":"a","url":"b","at_ms":1,"leads":true,"partition_fields":["source"],'
            b'"partitions":[["t"]],"rates":[],"event_fields":[],"events":[]}'
        ),
    ],
)
def test_what_is_no_figures_is_an_error_with_a_reason(text: bytes) -> None:
    with pytest.raises(OddFigures, match="cannot be read"):
        decode_figures(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("records_behind", "many"),
        ("records_behind", True),
        ("records_behind", 10**400),
        ("seconds_behind", float("nan")),
        ("seconds_behind", [1]),
        ("task", None),
        ("flow", 7),
        ("state", "odd"),
        ("source", None),
    ],
)
def test_figures_of_the_wrong_type_are_refused(field: str, value: object) -> None:
    found = encode_figures(WorkerFigures("w", "u", NOW, partitions=[lag()]))
    found["partitions"][0][found["partition_fields"].index(field)] = value
    with pytest.raises(OddFigures):
        decode_figures(json.dumps(found).encode())


def test_partitions_of_all_workers_are_in_one_answer() -> None:
    scene = Scene()
    scene.add_source("orders-0", "orders-1")
    scene.lags.lags = [lag(partition=0)]
    scene.add_worker(OTHER, lag(partition=1, task=1, behind=40, seconds=7.0))
    flow = flow_of(scene)
    assert flow["partitions"]["total"] == 2
    assert flow["records_behind"] == 43
    assert flow["seconds_behind"] == 7.0
    assert flow["worst"]["partition"] == 1
    workers = scene.views.flows(OPS)["workers"]
    assert [(each["url"], each["state"]) for each in rows(workers)] == [
        (OWN, "ok"),
        (OTHER, "ok"),
    ]


def test_partitions_of_a_worker_that_does_not_answer_are_unknown_with_the_reason() -> None:
    scene = Scene()
    scene.add_source("orders-0", "orders-1")
    scene.lags.lags = [lag(partition=0)]
    scene.add_worker(OTHER)
    scene.peers.answers[OTHER] = MirrorError("no answer: refused")
    status = scene.herder.statuses[NAME]
    scene.herder.statuses[NAME] = type(status)(
        NAME,
        State.RUNNING,
        "worker-1:8083",
        [status.tasks[0], type(status.tasks[1])(1, State.RUNNING, "worker-2:8083")],
    )
    answer = scene.views.flows(OPS)
    flow = rows(answer["flows"])[0]
    assert answer["missing"] == [f"worker {OTHER}: no answer: refused"]
    assert flow["state"] == "unknown"
    assert flow["records_behind"] is None
    assert "no answer: refused" in flow["unknown"]["records_behind"]
    assert flow["partitions"]["unknown"] == 1
    overview = scene.views.overview(OPS)
    verdict = overview["verdict"]
    assert isinstance(verdict, dict)
    assert verdict["level"] == "unknown"
    assert "worker-2:8083" in verdict["text"]
    failover = rows(overview["failover"])[0]
    assert failover["level"] == "unknown"


def test_a_partition_counts_once_also_while_its_task_moves() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag(position=10, behind=90, is_running=False, at_ms=NOW + 5)]
    scene.add_worker(OTHER, lag(position=95, behind=5))
    flow = flow_of(scene)
    assert flow["partitions"]["total"] == 1
    assert flow["records_behind"] == 5


def test_workers_are_asked_once_a_second_however_many_pages_are_open() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.add_worker(OTHER)
    for _ in range(5):
        scene.views.overview(OPS)
    assert scene.peers.asked == [OTHER]
    scene.look_again()
    scene.views.overview(OPS)
    assert scene.peers.asked == [OTHER, OTHER]


def test_events_of_all_workers_are_merged_newest_first() -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.events.found = [
        Event(1, NOW - 50, EventKind.UNREACHABLE, "broker 3 is gone", cluster="b", lasts=True),
        Event(2, NOW - 40, EventKind.STUCK, "orders-0 waits", flow=FLOW, cause_id=1, lasts=True),
    ]
    figures = WorkerFigures(
        "worker-2:8083",
        OTHER,
        NOW,
        events=[Event(1, NOW - 45, EventKind.ACTION, "paused", flow=FLOW, user="ops")],
    )
    scene.add_worker(OTHER)
    scene.peers.answers[OTHER] = json.dumps(encode_figures(figures)).encode()
    found = rows(scene.views.flow(OPS, FLOW)["events"])
    assert [row["text"] for row in found] == ["orders-0 waits", "paused", "broker 3 is gone"]
    assert found[0]["cause_id"] == found[2]["id"] == "worker-1:8083/1"
    assert found[0]["level"] == "warn"


def flow_of(scene: Scene) -> dict[str, Any]:
    return rows(scene.views.flows(OPS)["flows"])[0]


def rows(found: object) -> list[dict[str, Any]]:
    assert isinstance(found, list)
    return found
