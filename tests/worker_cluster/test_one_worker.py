"""One worker under load: connectors come and go, and odd requests come by the thousand.

SPARKMIRROR_CYCLES: how many lives of connectors there are; 12 without it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import ReservedPort
from tests.clusters import create_topic, start_clusters, unique_name, wait_for
from tests.handover.traffic import GroupMember
from tests.kafka.records import Feeder
from tests.rest.requests import request
from tests.worker_cluster.copies import repeated
from tests.worker_cluster.cycles import Lives
from tests.worker_cluster.odd_requests import (
    MEGABYTE,
    NAMES_WITHOUT_URL,
    ODD_NAMES,
    ODD_REQUESTS,
    REFUSED_NAMES,
    VALIDATE,
    OddRequest,
    plain_request,
    send_at_once,
)
from tests.worker_cluster.resources import Held, held_by, spark_jobs
from tests.worker_cluster.workers import Flow, Worker, Workers, connector_path

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

CYCLES = int(os.environ.get("SPARKMIRROR_CYCLES", "12"))
PER_SECOND = 200
SETTLE_SECONDS = 40.0
# What an allocator keeps, and caches that fill.
MOST_GROWTH_BYTES = 40 * MEGABYTE


@dataclass(frozen=True, slots=True)
class World:
    """A worker that copies one topic all the time, as `steady` says."""

    workers: Workers
    worker: Worker
    steady: Flow
    clusters: tuple[KafkaCluster, ...]
    ui_port: int

    def held(self) -> Held:
        # Threads for requests that are idle for some seconds end with the next request.
        assert self.worker.is_healthy()
        return held_by(self.worker, self.clusters)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with start_clusters("source", "target") as (source, target), ReservedPort() as ui_port:
        workers = Workers(tmp_path_factory.mktemp("worker"), source, target)
        ui = {"spark.ui.enabled": "true", "spark.ui.port": str(ui_port.number)}
        worker = workers.new_worker("worker", ui)
        steady = Flow(workers, create_topic(source), unique_name("group"), tasks_max=1)
        made = World(workers, worker, steady, (source, target), ui_port.number)
        try:
            with (
                Feeder(source, steady.topic, 1, per_second=PER_SECOND),
                GroupMember(source, steady.group, [steady.topic]),
            ):
                worker.start()
                for name, config in steady.configs().items():
                    _create(worker, name, config)
                    worker.wait_for_states(name, "RUNNING", tasks=1)
                yield made
        finally:
            worker.close()


def _create(worker: Worker, name: str, config: dict[str, str]) -> None:
    answer = worker.ask("POST", "/connectors", {"name": name, "config": config})
    assert answer.status_code == 201, answer.text


# -- lives -----------------------------------------------------------------------------------------


def test_connectors_that_come_and_go_leave_nothing_behind(world: World) -> None:
    worker, steady = world.worker, world.steady
    cycled = Flow(world.workers, steady.topic, steady.group, tasks_max=1)
    lives = [
        Lives(worker, name, config, seed)
        for seed, (name, config) in enumerate(cycled.configs().items())
    ]
    _run(lives, 1)
    _wait_until_gone(world, lives)
    before = world.held()
    began = time.monotonic()
    _run(lives, CYCLES // len(lives))
    seconds = time.monotonic() - began
    _wait_until_gone(world, lives)
    wait_for(
        lambda: not world.held().leftovers(before),
        within=SETTLE_SECONDS,
        describe=lambda: f"{world.held().leftovers(before)}, {world.held()}; {worker.log_end()}",
    )
    after = world.held()
    asked = sum((each.asked for each in lives), Counter[str]())
    done = spark_jobs(world.ui_port, "succeeded")
    print(f"{CYCLES} lives in {seconds:.0f} s, {done} Spark jobs: {dict(asked)}")  # noqa: T201
    print(f"before {before}\nafter  {after}")  # noqa: T201
    assert after.memory_bytes - before.memory_bytes < MOST_GROWTH_BYTES
    assert after.children <= before.children + len(lives)
    _, target = world.clusters
    assert sum(repeated(target, steady.remote, 0)) == 0
    assert sum(repeated(target, cycled.remote, 0)) == 0


def _wait_until_gone(world: World, lives: list[Lives]) -> None:
    """Only the one job of the connector that is always there runs."""
    for each in lives:
        each.wait_until_gone()
    wait_for(
        lambda: spark_jobs(world.ui_port, "running") == 1,
        within=SETTLE_SECONDS,
        describe=lambda: f"{spark_jobs(world.ui_port, 'running')} Spark jobs, not 1",
    )


def _run(lives: list[Lives], cycles: int) -> None:
    with ThreadPoolExecutor(len(lives)) as threads:
        for done in [threads.submit(each.run, cycles) for each in lives]:
            done.result()


# -- odd requests ----------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ODD_REQUESTS, ids=[odd.title for odd in ODD_REQUESTS])
def test_odd_requests_are_answered_and_the_worker_is_well(world: World, odd: OddRequest) -> None:
    name = world.steady.heartbeat_name
    config = json.dumps(world.steady.configs()[name])
    body = odd.body.replace("{name}", name).replace("{config}", config)
    data = body.encode("latin-1") if body else None
    answer = request(world.worker.url, odd.method, odd.path, data, content_type=odd.content_type)
    assert (answer.status_code, odd.text in _message(answer)) == (odd.status, True), answer.text
    assert world.worker.is_healthy()


def _message(answer: httpx.Response) -> str:
    return str(answer.json().get("message", ""))


def test_settings_that_no_topic_takes_are_refused(world: World) -> None:
    config = world.steady.configs()[world.steady.heartbeat_name]
    body = {"name": "big", "config": config | {"name": "big", "note": "x" * (10 * MEGABYTE)}}
    answer = world.worker.ask("POST", "/connectors", body)
    assert answer.status_code == 500
    assert "MESSAGE_TOO_LARGE" in _message(answer)
    assert "big" not in world.worker.ask("GET", "/connectors").json()
    _create_and_delete(world.worker, "small", config | {"name": "small"})


def test_large_bodies_are_forgotten(world: World) -> None:
    body = '{"connector.class":"MirrorSourceConnector","topics":"%s"}' % ("x" * (10 * MEGABYTE))
    held = []
    for _ in range(6):
        answer = world.worker.ask("PUT", VALIDATE, body)
        assert answer.json()["error_count"] > 0
        held.append(world.held().memory_bytes)
    print([size // MEGABYTE for size in held])  # noqa: T201
    assert held[-1] - held[1] < MOST_GROWTH_BYTES


def _create_and_delete(worker: Worker, name: str, config: dict[str, str]) -> None:
    body = {"name": name, "config": config | {"name": name}, "initial_state": "STOPPED"}
    answer = worker.ask("POST", "/connectors", body)
    assert (answer.status_code, answer.json().get("name")) == (201, name), answer.text
    assert worker.ask("GET", connector_path(name)).json()["name"] == name
    worker.wait_for_states(name, "STOPPED")
    assert worker.ask("DELETE", connector_path(name)).status_code == 204
    assert name not in worker.ask("GET", "/connectors").json()


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_a_name_may_have_odd_characters(world: World, name: str) -> None:
    _create_and_delete(world.worker, name, world.steady.configs()[world.steady.heartbeat_name])


@pytest.mark.parametrize("name", REFUSED_NAMES, ids=ascii)
def test_names_that_are_refused(world: World, name: str) -> None:
    config = world.steady.configs()[world.steady.heartbeat_name] | {"name": name}
    answer = world.worker.ask("POST", "/connectors", {"name": name, "config": config})
    assert answer.status_code == 400
    assert "name" in _message(answer) or "String" in _message(answer)


def test_names_that_no_url_can_say(world: World) -> None:
    worker, config = world.worker, world.steady.configs()[world.steady.heartbeat_name]
    for name, written in NAMES_WITHOUT_URL.items():
        body = {"name": name, "config": config | {"name": name}, "initial_state": "STOPPED"}
        assert worker.ask("POST", "/connectors", body).status_code == 201
        answer = worker.ask("GET", f"/connectors/{written}")
        assert answer.status_code == 400
        assert "Ambiguous URI" in answer.text or "Suspicious Path" in answer.text
    assert NAMES_WITHOUT_URL.keys() < set(worker.ask("GET", "/connectors").json())


def test_a_thousand_requests_at_once_leave_no_trace(world: World) -> None:
    path = connector_path(world.steady.heartbeat_name)
    kinds = [
        (plain_request("GET", "/connectors?expand=status&expand=info"), b"200", 400),
        (plain_request("GET", f"{path}/status"), b"200", 300),
        (plain_request("POST", "/connectors", b'{"name":'), b"500", 150),
        (plain_request("GET", "/connectors/nobody"), b"404", 100),
        (plain_request("PUT", f"{path}/resume"), b"202", 50),
    ]
    requests = [data for data, _, count in kinds for _ in range(count)]
    wanted = [status for _, status, count in kinds for _ in range(count)]
    assert len(requests) == 1000
    url = httpx.URL(world.worker.url)
    held = []
    for _ in range(2):
        began = time.monotonic()
        lines = asyncio.run(send_at_once(url, requests))
        print(f"1,000 requests in {time.monotonic() - began:.1f} s")  # noqa: T201
        assert [line.split()[1] for line in lines] == wanted
        held.append(world.held())
    print("\n".join(map(str, held)))  # noqa: T201
    assert held[-1].memory_bytes - held[0].memory_bytes < MOST_GROWTH_BYTES
    wait_for(
        lambda: world.held().broker_connections <= held[0].broker_connections,
        within=SETTLE_SECONDS,
        describe=lambda: f"{held[0].broker_connections} connections to brokers: {world.held()}",
    )
    world.worker.wait_for_states(world.steady.heartbeat_name, "RUNNING", tasks=1)
