"""Two workers on real brokers: each shows the figures of both, as independent clients measure them.

The tests play one after the other; the last one kills a worker.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from confluent_kafka import Consumer, Producer

from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import start_clusters
from tests.mm2_suite.topics import ends
from tests.worker_cluster.scene import PARTITIONS, Scene
from tests.worker_cluster.workers import Worker, connector_path

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(400)]

RECORDS = 900
FLUSH_SECONDS = 30


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with start_clusters("source", "target") as (source, target):
        made = Scene(tmp_path_factory.mktemp("workers"), source, target)
        try:
            produce(source, made.flow.topic, RECORDS)
            for worker in made.pair:
                worker.start()
            for name, config in made.flow.configs().items():
                answer = made.pair[0].ask("POST", "/connectors", {"name": name, "config": config})
                assert answer.status_code == 201, answer.text
            wait_copied(made, made.pair[0])
            yield made
        finally:
            made.close()


def produce(cluster: KafkaCluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for at in range(count):
        producer.produce(topic, f"{at:010}".encode(), partition=at % PARTITIONS)
    assert producer.flush(FLUSH_SECONDS) == 0


def commit(cluster: KafkaCluster, topic: str, group: str, count: int) -> None:
    """A consumer that has read so many records, and left."""
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    read = 0
    until = time.monotonic() + FLUSH_SECONDS
    while read < count and time.monotonic() < until:
        read += len(consumer.consume(count - read, 1.0))
    assert read == count
    consumer.commit(asynchronous=False)
    consumer.close()


def view(worker: Worker, path: str, **parameters: str) -> dict[str, Any]:
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    answer = worker.ask("GET", f"/sparkmirror/{path}{'?' if query else ''}{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def flow_name(scene: Scene) -> str:
    return f"{scene.flow.alias}->b"


def flow_row(scene: Scene, worker: Worker) -> dict[str, Any]:
    rows = [row for row in view(worker, "flows")["flows"] if row["flow"] == flow_name(scene)]
    return rows[0] if rows else {}


def written(scene: Scene) -> int:
    return sum(ends(scene.source, [scene.flow.topic]).values())


def wait_copied(scene: Scene, worker: Worker) -> None:
    def holds() -> bool:
        """Of the topic and of heartbeats."""
        row = flow_row(scene, worker)
        rows = view(worker, "topics", flow=flow_name(scene))["rows"] if row else []
        own = next((each for each in rows if each["topic"] == scene.flow.topic), None)
        return own is not None and own["records_behind"] == 0

    worker.wait_for(holds, lambda: f"all is copied: {flow_row(scene, worker)}")


def check(scene: Scene, worker: Worker, *options: str) -> subprocess.CompletedProcess[str]:
    """`sparkmirror failover check`, as a script runs it."""
    words = ["failover", "check", scene.flow.alias, "b", "--url", worker.url, *options]
    return subprocess.run(
        [sys.executable, "-m", "sparkmirror.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_both_workers_show_all_partitions_as_the_source_has_them(scene: Scene) -> None:
    topic, flow = scene.flow.topic, flow_name(scene)
    for worker in scene.pair:
        wait_copied(scene, worker)
        found = view(worker, "partitions", flow=flow, topic=topic)
        shown = {
            TopicPartition(topic, row["partition"]): row["end_offset"] for row in found["rows"]
        }
        assert shown == ends(scene.source, [topic])
        assert all(row["position"] == row["end_offset"] for row in found["rows"])
        assert {each["state"] for each in found["workers"]} == {"ok"}
        assert len(found["workers"]) == 2
        assert found["missing"] == []
    runs = {row["worker"] for row in view(scene.pair[0], "lag", flow=flow)["rows"]}
    assert runs == {worker.worker_id for worker in scene.pair}


def test_without_heartbeats_on_the_source_that_is_said(scene: Scene) -> None:
    """The flow's own heartbeat connector writes to the target; none writes to the source."""
    worker = scene.pair[1]
    worker.wait_for(
        lambda: "heartbeat_age_seconds" in flow_row(scene, worker)["not_applicable"],
        lambda: f"no heartbeat: {flow_row(scene, worker)}",
    )
    row = flow_row(scene, worker)
    assert row["heartbeat_age_seconds"] is None
    assert "is missing or empty" in row["not_applicable"]["heartbeat_age_seconds"]


def test_groups_with_what_a_failover_would_read_again(scene: Scene) -> None:
    flow, group, worker = flow_name(scene), scene.flow.group, scene.pair[1]
    commit(scene.source, scene.flow.topic, group, RECORDS)

    def row() -> dict[str, Any]:
        rows = view(worker, "groups", flow=flow)["rows"]
        return next((each for each in rows if each["group"] == group), {})

    worker.wait_for(lambda: row().get("state") == "synced", lambda: f"it is synced: {row()}")
    assert row()["reread_records"] == 0
    assert row()["translation"] == "exact"
    parts = view(worker, "group", flow=flow, group=group)["rows"]
    assert sum(part["committed"] for part in parts) == RECORDS
    assert [part["committed_on_target"] for part in parts] == [RECORDS // PARTITIONS] * PARTITIONS


def test_failover_is_ready_only_when_nothing_is_written(scene: Scene) -> None:
    worker = scene.pair[1]
    wait_copied(scene, worker)
    worker.wait_for(
        lambda: check(scene, worker).returncode == 0, lambda: check(scene, worker).stdout
    )
    found = json.loads(check(scene, worker, "--json").stdout)
    assert found["records_lost"] == 0
    stop = threading.Event()

    def keep_producing() -> None:
        while not stop.wait(0.1):
            produce(scene.source, scene.flow.topic, 30)

    writer = threading.Thread(target=keep_producing)
    writer.start()
    try:
        time.sleep(6)
        for _ in range(3):
            ended = check(scene, worker)
            assert ended.returncode == 1, ended.stdout
        planned = check(scene, worker, "--planned")
        assert planned.returncode == 0, planned.stdout
        before, began = written(scene), time.monotonic()
        time.sleep(15)
        per_second = (written(scene) - before) / (time.monotonic() - began)
        row = flow_row(scene, worker)
        assert row["written_records_per_second"] == pytest.approx(per_second, rel=0.35)
        assert row["records_per_second"] == pytest.approx(per_second, rel=0.35)
        assert row["latency"]["p50_ms"] > 0
    finally:
        stop.set()
        writer.join()


def test_a_paused_flow_falls_behind_by_what_is_written(scene: Scene) -> None:
    worker, source_name = scene.pair[1], scene.flow.source_name
    wait_copied(scene, worker)
    assert worker.ask("PUT", connector_path(source_name, "pause")).status_code == 202
    worker.wait_for_states(source_name, "PAUSED")
    began = time.time()
    produce(scene.source, scene.flow.topic, 300)
    worker.wait_for(
        lambda: flow_row(scene, worker)["records_behind"] == 300,
        lambda: f"300 records behind: {flow_row(scene, worker)}",
    )
    row = flow_row(scene, worker)
    assert row["state"] == "paused"
    assert row["seconds_behind"] == pytest.approx(time.time() - began, abs=20)
    answer = check(scene, worker)
    assert answer.returncode == 1
    assert "300 records would be lost" in answer.stdout
    assert check(scene, worker, "--planned").returncode == 1
    assert worker.ask("PUT", connector_path(source_name, "resume")).status_code == 202
    wait_copied(scene, worker)


def test_topics_that_are_not_mirrored_have_their_rule(scene: Scene) -> None:
    rows = view(scene.pair[0], "unmirrored", flow=flow_name(scene), q="mm2-")["rows"]
    for row in rows:
        assert row["verdict"] == "by rule"
        assert [rule["passed"] for rule in row["rules"]].count(False) == 1


def test_settings_that_somebody_changed_on_the_target(scene: Scene) -> None:
    topics = view(scene.pair[0], "topics", flow=flow_name(scene))["rows"]
    own = next(row for row in topics if row["topic"] == scene.flow.topic)
    scene.pair[0].wait_for(
        lambda: next(
            row for row in view(scene.pair[0], "topics", flow=flow_name(scene))["rows"]
            if row["topic"] == own["topic"]
        )["differences"] == [],
        lambda: "settings were compared",
    )  # fmt: skip


def test_the_stream_follows(scene: Scene) -> None:
    url = f"{scene.pair[0].url}/sparkmirror/stream"
    with httpx.stream("GET", url, timeout=20, trust_env=False) as answer:
        lines = answer.iter_lines()
        data = next(line for line in lines if line.startswith("data: "))
    found = json.loads(data.removeprefix("data: "))
    assert flow_name(scene) in [row["flow"] for row in found["flows"]]


def test_a_worker_that_is_gone_is_missing_and_its_partitions_are_unknown(scene: Scene) -> None:
    leader, follower = sorted(scene.pair, key=scene.leads, reverse=True)
    follower.kill()
    seen: list[dict[str, Any]] = []

    def is_missing() -> bool:
        seen.append(view(leader, "flows"))
        return bool(seen[-1]["missing"])

    leader.wait_for(is_missing, lambda: f"a worker is missing: {seen[-1]['missing']}")
    found = seen[-1]
    row = next(each for each in found["flows"] if each["flow"] == flow_name(scene))
    assert follower.worker_id in found["missing"][0]
    assert row["records_behind"] is None
    assert "no answer" in row["unknown"]["records_behind"]
    assert check(scene, leader).returncode == 1
    # As soon as its session is over the leader has its tasks.
    wait_copied(scene, leader)
    leader.wait_for(
        lambda: view(leader, "flows")["missing"] == [], lambda: "none is missing any more"
    )
