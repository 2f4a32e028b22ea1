"""Topics, partitions, events and connectors: filters, orders, pages, and bad parameters."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.connect.entities import State
from sparkmirror.events import EventKind
from sparkmirror.monitoring.clusters.known import Known
from sparkmirror.monitoring.clusters.topics_look import Difference, SettingsSeen
from sparkmirror.monitoring.event_log import Event
from sparkmirror.monitoring.lag.partition_lag import PartitionState
from sparkmirror.monitoring.views.wording.paging import BadQuery, NotThere, Query
from tests.monitoring.views.fakes import FLOW, NAME, NOW, OPS, Scene, lag


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.add_source("orders-0,orders-1,payments-0,payments-refunds-0")
    made.lags.lags = [
        lag("orders", 0),
        lag("orders", 1, PartitionState.STUCK, behind=50, seconds=90.0, problem="no leader"),
        lag("payments", 0, PartitionState.IDLE, behind=0, seconds=0.0),
        lag("payments-refunds", 0, behind=1, seconds=2.0),
    ]
    return made


def names(found: dict[str, Any]) -> list[str]:
    return [row["topic"] for row in found["rows"]]


def test_the_worst_topic_comes_first_and_says_how_many_partitions(scene: Scene) -> None:
    found = scene.views.topics(OPS, Query())
    assert names(found) == ["orders", "payments-refunds", "payments"]
    assert found["rows"][0]["word"] == "Stuck 1 of 2"
    assert found["rows"][0]["records_behind"] == 53
    assert found["counts"]["problem"] == 1
    assert (found["total"], found["matching"]) == (3, 3)


def test_filters_and_states(scene: Scene) -> None:
    topics = scene.views.topics
    assert names(topics(OPS, Query(q="PAY"))) == ["payments-refunds", "payments"]
    assert names(topics(OPS, Query(q="/^pay.*s$/"))) == ["payments-refunds", "payments"]
    assert names(topics(OPS, Query(q="/^payments$/"))) == ["payments"]
    assert names(topics(OPS, Query(state="problem"))) == ["orders"]
    assert names(topics(OPS, Query(state="idle"))) == ["payments"]
    assert names(topics(OPS, Query(sort="topic"))) == ["orders", "payments", "payments-refunds"]
    assert names(topics(OPS, Query(sort="lag", direction="asc")))[0] == "payments"
    page = topics(OPS, Query(sort="topic", offset=1, limit=1))
    assert names(page) == ["payments"]
    assert (page["matching"], page["offset"], page["limit"]) == (3, 1, 1)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (Query(state="bad"), "state=bad: use one of all, problem"),
        (Query(sort="x"), "sort=x"),
        (Query(direction="up"), "dir=up"),
        (Query(q="/(/"), "is no pattern"),
        (Query(q="x" * 1001), "1,001 characters; 1,000 are allowed"),
    ],
)
def test_bad_parameters_say_what_is_allowed(scene: Scene, query: Query, words: str) -> None:
    with pytest.raises(BadQuery, match=words.replace("(", r"\(")):
        scene.views.topics(OPS, query)


def test_names_that_do_not_exist_say_which_do(scene: Scene) -> None:
    with pytest.raises(NotThere, match="no flow 'x->y'; flows: a->b"):
        scene.views.topics(OPS, Query(flow="x->y"))
    with pytest.raises(NotThere, match="unmirrored says why not"):
        scene.views.partitions(OPS, FLOW, "nothing")
    with pytest.raises(NotThere, match="no connector 'nothing'"):
        scene.views.connector(OPS, "", "nothing")


def test_partitions_of_a_topic_the_worst_first(scene: Scene) -> None:
    found = scene.views.partitions(OPS, FLOW, "orders")
    assert [row["partition"] for row in found["rows"]] == [1, 0]
    assert found["rows"][0]["remedy"] is None
    assert found["rows"][1]["loss_at_ms"] == NOW + 600_000_000


def test_lag_lists_partitions_of_all_topics(scene: Scene) -> None:
    found = scene.views.lag(OPS, Query(limit=2))
    assert [(row["topic"], row["partition"]) for row in found["rows"]] == [
        ("orders", 1),
        ("payments-refunds", 0),
    ]


def test_a_topic_that_is_copied_loses_nothing_by_retention(scene: Scene) -> None:
    row = scene.views.topics(OPS, Query(q="/^payments$/"))["rows"][0]
    assert row["seconds_until_loss"] is None
    assert row["not_applicable"]["seconds_until_loss"] == "everything is copied"


def test_settings_that_differ(scene: Scene) -> None:
    assert scene.views.topics(OPS, Query())["rows"][0]["differences"] is None
    scene.watch.settings = Known(
        SettingsSeen({"orders": [Difference("retention.ms", "1", None)]}, {"payments": "denied"}),
        NOW,
        "",
    )
    scene.look_again()
    found = scene.views.topics(OPS, Query(state="drift"))
    assert names(found) == ["orders"]
    difference = found["rows"][0]["differences"][0]
    assert difference == {"key": "retention.ms", "source": "1", "target": ""}
    payments = scene.views.topics(OPS, Query(q="/^payments$/"))["rows"][0]
    assert payments["unknown"]["differences"] == "denied"
    notes = scene.views.overview(OPS)["notes"]
    assert notes[0]["text"] == "1 topic has other settings on the target"


def test_events_by_kind_text_and_id(scene: Scene) -> None:
    scene.events.found = [
        Event(at, NOW + at, kind, f"event {at}", flow=FLOW, topic="orders" if at % 2 else "x")
        for at, kind in enumerate([EventKind.CREATED, EventKind.FAILED, EventKind.RECOVERED], 1)
    ]
    events = scene.views.events
    assert [row["kind"] for row in events(OPS, Query(), [], "")["rows"]] == [
        "recovered",
        "failed",
        "created",
    ]
    assert len(events(OPS, Query(), ["failed"], "")["rows"]) == 1
    assert len(events(OPS, Query(q="orders"), [], "")["rows"]) == 2
    newer = events(OPS, Query(), [], "worker-1:8083/2")["rows"]
    assert [row["text"] for row in newer] == ["event 3"]
    with pytest.raises(BadQuery, match="kind=odd: use some of started"):
        events(OPS, Query(), ["odd"], "")


def test_a_connector_shows_settings_without_secrets(scene: Scene) -> None:
    found = scene.views.connector(OPS, "", NAME)
    settings = {row["key"]: row for row in found["settings"]}
    assert settings["source.cluster.sasl.jaas.config"]["value"] == "[hidden]"
    assert settings["topics"] == {
        "key": "topics",
        "value": "orders, payments",
        "origin": "connector",
    }
    assert settings["tasks.max"]["origin"] == "default"
    assert "very-secret-word" not in str(found)
    assert found["connector"]["path"] == f"/connectors/{NAME}"


def test_a_task_shows_its_partitions_and_why_it_failed() -> None:
    scene = Scene()
    scene.add_source("orders-0", "orders-1", state=State.FAILED, trace="x.Error: denied; ask")
    scene.lags.lags = [lag(partition=0, behind=8, seconds=3.0)]
    row = scene.views.connectors(OPS, "")["rows"][0]
    first, second = row["tasks"]
    assert (first["partitions"], first["records_behind"]) == (1, 8)
    assert first["reason"] == "denied"
    assert second["records_behind"] is None
    assert second["unknown"]["records_behind"] == "not known of all of its partitions"
