"""Tasks as samples: their clients, checkpoints, groups and heartbeats."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.config.worker.metrics_keys import PerPartition
from sparkmirror.connect.checkpoint.checkpoint_latencies import CheckpointLatencies
from sparkmirror.connect.checkpoint.group_offset_sync import SyncReport
from sparkmirror.connect.checkpoint.mirror_checkpoint_task import MirrorCheckpointTask
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.mirror.group_offsets import NotWritten
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.monitoring.metrics.detail import MOST_SERIES
from sparkmirror.monitoring.metrics.metrics_collector import MetricsCollector
from sparkmirror.monitoring.metrics.parts.task_samples import TaskSamples, sync_states
from sparkmirror.spark.task_runner import TaskState
from sparkmirror.types import FlowName, TopicPartition
from tests.monitoring.metrics.expositions import Exposition
from tests.monitoring.metrics.groups import FakeGroupOfWorkers

SRC, CHK, HBT = "a->b.src", "a->b.chk", "a->b.hbt"
CONSUMER = '"a->b|a->b.src-0|replication-consumer"'
PRODUCER = '"connector-producer-a->b.src-0"'
LATENCY = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"


@pytest.fixture
def world(tmp_path: Path) -> FakeGroupOfWorkers:
    return FakeGroupOfWorkers(tmp_path, [0.0])


def scrape(world: FakeGroupOfWorkers, wanted: PerPartition = PerPartition.AUTO) -> Exposition:
    parts = {"tasks": TaskSamples(lambda: [world.group], wanted)}
    return Exposition(MetricsCollector(parts).text().decode())


def task(**values: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"ids": (0,), "runner": None, "work": None, **values})


def checkpoint_task(*checkpoints: tuple[str, int], **values: Any) -> MirrorCheckpointTask:
    """One that has stored these checkpoints, of (group, partition), in 12 ms."""
    work = MirrorCheckpointTask.__new__(MirrorCheckpointTask)
    work._flow = FlowName("a", "b")
    latencies = CheckpointLatencies(lambda: 0.0)
    latencies.add([Checkpoint(group, "a.t", at, 0, 0, "") for group, at in checkpoints], 12.0)
    work._log = SimpleNamespace(latencies=latencies, made=len(checkpoints))  # type: ignore[assignment]
    work._offsets = SimpleNamespace(noted=len(checkpoints))  # type: ignore[assignment]
    work.last_sync = values.get("last_sync")
    return work


def test_a_copy_task_tells_of_its_clients(world: FakeGroupOfWorkers) -> None:
    clients = {
        "source": [1000, 100, 2],
        "target": [50, 900, 3],
        "pending": 4,
        "room": 8 << 20,
        "commit_ms": [3.0, 1.0, 5.0, 12.0, 4],
    }
    runner = SimpleNamespace(
        task=f"a->b|{SRC}-0",
        state=TaskState.RUNNING,
        restarts=2,
        records=70,
        numbers={"clients": clients, "skipped_records": 1, "polled_records": 75},
    )
    world.tasks = {SRC: [task(runner=runner)]}
    found = scrape(world)
    labels = {"connector": f'"{SRC}"', "task": "0"}
    records = "kafka_connect_source_task_source_record_"
    assert found.value(f"{records}write_total", **labels) == 70
    assert found.value(f"{records}poll_total", **labels) == 75
    (active,) = found.samples(f"{records}active_count", **labels)
    assert active.labels["_objectname"] == (
        'kafka.connect<type=source-task-metrics, connector="a->b.src", task=0>'
        "<>source-record-active-count"
    )
    assert active.value == 4
    commit = "kafka_connect_connector_task_offset_commit_"
    assert found.value(f"{commit}avg_time_ms", **labels) == 3
    assert found.value(f"{commit}max_time_ms", **labels) == 5
    assert found.value("kafka_connect_task_error_total_records_skipped", **labels) == 1
    assert found.value("kafka_consumer_incoming_byte_total", clientid=CONSUMER) == 1000
    assert found.value("kafka_producer_outgoing_byte_total", clientid=PRODUCER) == 900
    assert found.value("kafka_producer_connection_count", clientid=PRODUCER) == 3
    assert found.value("kafka_producer_buffer_available_bytes", clientid=PRODUCER) == 8 << 20
    assert found.value("sparkmirror_task_restarts_total", connector=SRC, task="0") == 2
    assert found.value("sparkmirror_spark_tasks") == 1


def test_a_task_that_has_not_reported_claims_nothing(world: FakeGroupOfWorkers) -> None:
    runner = SimpleNamespace(
        task=f"a->b|{SRC}-0", state=TaskState.UNASSIGNED, restarts=0, records=0, numbers={}
    )
    world.tasks = {SRC: [task(runner=runner)]}
    found = scrape(world)
    assert found.names == {
        "kafka_connect_source_task_source_record_write_total",
        "sparkmirror_task_restarts_total",
        "sparkmirror_spark_tasks",
        "sparkmirror_metrics_part_up",
    }


def test_checkpoints_have_their_own_latency(world: FakeGroupOfWorkers) -> None:
    world.tasks = {CHK: [task(work=checkpoint_task(("g", 0), ("g", 1)))]}
    found = scrape(world)
    labels = {"group": "g", "partition": "1", "source": "a", "target": "b", "topic": "a.t"}
    assert found.value(LATENCY, **labels) == 12
    assert found.value(f"{LATENCY}_avg", **labels) == 12
    name = "kafka_connect_source_task_source_record_write_total"
    assert found.value(name, connector=f'"{CHK}"') == 2


def test_many_checkpoints_become_groups_and_many_groups_a_flow(world: FakeGroupOfWorkers) -> None:
    many = MOST_SERIES + 1
    world.tasks = {CHK: [task(work=checkpoint_task(*(("g", at) for at in range(many))))]}
    (found,) = scrape(world).samples(LATENCY)
    assert found.labels == {"group": "g", "source": "a", "target": "b"}
    assert len(scrape(world, PerPartition.ALWAYS).samples(LATENCY)) == many
    world.tasks = {CHK: [task(work=checkpoint_task(*((f"g{at}", 0) for at in range(many))))]}
    (found,) = scrape(world).samples(LATENCY)
    assert found.labels == {"source": "a", "target": "b"}


def test_groups_show_what_became_of_their_offsets(world: FakeGroupOfWorkers) -> None:
    report = SyncReport(
        written={"w": 2, "half": 1},
        reasons={
            "u": NotWritten.UNCHANGED,
            "used": NotWritten.ACTIVE,
            "x": NotWritten.NOT_DESCRIBED,
        },
        errors={"half": "denied", "x": "away", "denied": "no"},
    )
    world.tasks = {CHK: [task(work=checkpoint_task(last_sync=report))]}
    found = scrape(world)
    states = {
        each.labels["group"]: each.labels["state"]
        for each in found.samples("sparkmirror_group_sync")
    }
    assert states == sync_states(report) == {
        "w": "written", "half": "error", "u": "unchanged", "used": "active",
        "x": "not_described", "denied": "error",
    }  # fmt: skip
    counts = {each.labels["state"]: each.value for each in found.samples("sparkmirror_groups")}
    assert counts["error"] == 2
    assert counts["beyond_end"] == 0


def test_of_too_many_groups_those_with_problems_are_shown(world: FakeGroupOfWorkers) -> None:
    reasons = {f"g{at}": NotWritten.UNCHANGED for at in range(MOST_SERIES)}
    report = SyncReport(reasons={**reasons, "zz": NotWritten.ACTIVE})
    world.tasks = {CHK: [task(work=checkpoint_task(last_sync=report))]}
    found = scrape(world).samples("sparkmirror_group_sync")
    assert len(found) == MOST_SERIES
    assert "zz" in {each.labels["group"] for each in found}


def test_heartbeats_have_an_age(world: FakeGroupOfWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    work = MirrorHeartbeatTask.__new__(MirrorHeartbeatTask)
    work.flow, work.made, work._newest_ms = FlowName("a", "b"), 3, 0
    work._offsets = SimpleNamespace(noted=2, note=lambda key: None)  # type: ignore[assignment]
    work._offset_key = b""
    monkeypatch.setattr(MirrorHeartbeatTask, "is_enabled", True)
    monkeypatch.setattr("time.time_ns", lambda: 90_000 * 1_000_000)
    world.tasks = {HBT: [task(work=work)]}
    name = "sparkmirror_heartbeat_age_seconds"
    assert scrape(world).value(name, source="a", target="b", connector=HBT) == 90
    work._on_stored(80_000, None)
    work._on_stored(70_000, None)  # an older one, acknowledged later
    assert scrape(world).value(name) == 10


def test_latencies_of_checkpoints_are_those_of_the_last_minute() -> None:
    now = [0.0]
    latencies = CheckpointLatencies(lambda: now[0])
    one = [Checkpoint("g", "a.t", 0, 0, 0, "")]
    latencies.add(one, 10.0)
    now[0] = 30.0
    latencies.add(one, 20.0)
    (window,) = latencies.windows().values()
    assert (window.last, window.least, window.most, window.count) == (20, 10, 20, 2)
    now[0] = 200.0
    (window,) = latencies.windows().values()
    assert (window.last, window.count) == (20, 0)
    assert list(latencies.windows()) == [("g", TopicPartition("a.t", 0))]
    assert not math.isnan(window.last)
