"""Connect's side of a worker as samples: connectors, tasks, starts, rebalances."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkmirror import __version__
from sparkmirror.monitoring.metrics.metrics_collector import FillIn, MetricsCollector
from sparkmirror.monitoring.metrics.parts.machine_samples import ProcessSamples, SparkSamples
from sparkmirror.monitoring.metrics.parts.worker_samples import WorkerSamples
from sparkmirror.types import ConnectorTaskId
from tests.monitoring.metrics.expositions import Exposition
from tests.monitoring.metrics.groups import OTHER, OWN, FakeGroupOfWorkers

SRC = "a->b.src"
QUOTED = '"a->b.src"'
COUNTS = "kafka_connect_worker_connector_{}_task_count"


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def world(tmp_path: Path, now: list[float]) -> FakeGroupOfWorkers:
    return FakeGroupOfWorkers(tmp_path, now)


def scrape(*worlds: FakeGroupOfWorkers) -> Exposition:
    parts = {"worker": WorkerSamples(lambda: [world.group for world in worlds])}
    return Exposition(MetricsCollector(parts).text().decode())


def test_tasks_of_this_worker_are_counted_by_state(world: FakeGroupOfWorkers) -> None:
    world.add(SRC, ("RUNNING", OWN), ("FAILED", OWN), ("PAUSED", OWN), ("RUNNING", OTHER))
    world.assigned = frozenset(ConnectorTaskId(SRC, at) for at in range(3))
    found = scrape(world)
    counts = {
        state: found.value(COUNTS.format(state), connector=QUOTED)
        for state in ("total", "running", "failed", "paused", "unassigned", "destroyed")
    }
    assert counts == {
        "total": 3, "running": 1, "failed": 1, "paused": 1, "unassigned": 0, "destroyed": 0
    }  # fmt: skip
    statuses = found.samples("kafka_connect_connector_status", connector=QUOTED)
    assert {(each.labels["task"], each.labels["status"]) for each in statuses} == {
        ("0", "running"), ("1", "failed"), ("2", "paused")
    }  # fmt: skip
    assert found.value("kafka_connect_worker_task_count") == 3
    assert found.value("kafka_connect_worker_connector_count") == 1
    assert found.value("kafka_connect_coordinator_assigned_tasks") == 3
    assert found.value("kafka_connect_coordinator_assigned_connectors") == 1
    assert found.value("sparkmirror_task_state", connector=SRC, task="1", state="failed") == 1
    assert found.value("sparkmirror_connector_state", connector=SRC, state="running") == 1


def test_tasks_that_were_taken_out_of_the_configuration_do_not_count(
    world: FakeGroupOfWorkers,
) -> None:
    world.add(SRC, ("RUNNING", OWN), ("RUNNING", OWN))
    world.configs.put_tasks(SRC, [{}])
    assert scrape(world).value("kafka_connect_worker_task_count") == 1


def test_starts_have_shares_only_after_the_first(world: FakeGroupOfWorkers) -> None:
    prefix = "kafka_connect_worker_task_startup_"
    found = scrape(world)
    assert found.value(f"{prefix}attempts_total") == 0
    assert not found.samples(f"{prefix}success_percentage")
    world.task_starts.failed()
    for _ in range(3):
        world.task_starts.succeeded()
    found = scrape(world)
    assert found.value(f"{prefix}attempts_total") == 4
    assert found.value(f"{prefix}failure_total") == 1
    assert found.value(f"{prefix}success_percentage") == 0.75
    assert found.value(f"{prefix}failure_percentage") == 0.25


def test_rebalances_are_measured(world: FakeGroupOfWorkers, now: list[float]) -> None:
    rebalance, coordinator = "kafka_connect_worker_rebalance_", "kafka_connect_coordinator_"
    found = scrape(world)
    assert math.isnan(found.value(f"{rebalance}rebalance_avg_time_ms"))
    assert math.isnan(found.value(f"{rebalance}time_since_last_rebalance_ms"))
    figures = world.figures
    figures.begin_rebalance()
    assert scrape(world).value(f"{rebalance}rebalancing") == 1
    now[0] += 3.0
    figures.note_join()
    figures.end_rebalance(is_done=True)
    figures.begin_rebalance()
    figures.begin_rebalance()  # the first one came to nothing
    now[0] += 1.0
    figures.end_rebalance(is_done=True)
    figures.note_heartbeat()
    now[0] += 2.0
    found = scrape(world)
    assert found.value(f"{rebalance}rebalancing") == 0
    assert found.value(f"{rebalance}completed_rebalances_total") == 2
    assert found.value(f"{rebalance}rebalance_avg_time_ms") == 2000
    assert found.value(f"{rebalance}rebalance_max_time_ms") == 3000
    assert found.value(f"{rebalance}time_since_last_rebalance_ms") == 2000
    assert found.value(f"{rebalance}epoch") == 7
    assert found.value(f"{coordinator}failed_rebalance_total") == 1
    assert found.value(f"{coordinator}heartbeat_total") == 1
    assert found.value(f"{coordinator}rebalance_latency_total") == 4000
    client = '"connect-worker-1:8083"'
    assert found.value(f"{coordinator}last_heartbeat_seconds_ago", clientid=client) == 2
    now[0] += 100
    assert math.isnan(scrape(world).value(f"{rebalance}rebalance_avg_time_ms"))


def test_the_worker_says_who_it_is(world: FakeGroupOfWorkers) -> None:
    found = scrape(world)
    assert found.value("sparkmirror_build_info", version=__version__) == 1
    assert found.value("kafka_connect_version", clientid='"worker-1:8083"', version="4.3.1") == 1
    assert found.value("sparkmirror_worker_leader", group=world.name) == 1
    assert found.value("sparkmirror_worker_members") == 2
    world.health = "unhealthy"
    assert scrape(world).value("sparkmirror_worker_healthy") == 0


def test_pairs_of_one_process_are_added_up(tmp_path: Path, now: list[float]) -> None:
    worlds = [FakeGroupOfWorkers(tmp_path, now) for _ in range(2)]
    for world in worlds:
        world.add("MirrorSourceConnector", ("RUNNING", OWN))
    found = scrape(*worlds)
    assert found.value("kafka_connect_worker_task_count") == 2
    assert found.value(COUNTS.format("running"), connector="MirrorSourceConnector") == 2
    assert found.value("kafka_connect_connector_status", task="0") == 1


def test_without_spark_there_is_no_jvm(world: FakeGroupOfWorkers) -> None:
    world.spark.is_up = False
    parts: Mapping[str, FillIn] = {
        "spark": SparkSamples(lambda: [world.group]),
        "process": ProcessSamples(),
    }
    found = Exposition(MetricsCollector(parts).text().decode())
    assert found.value("sparkmirror_spark_up") == 0
    assert not [name for name in found.names if name.startswith("jvm_")]
    assert found.value("sparkmirror_metrics_part_up", part="spark") == 1
    assert found.value("process_open_fds") > 3
