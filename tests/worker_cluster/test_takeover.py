"""Two workers, three connectors, load running: the leader is killed, frozen, restarted.

SPARKMIRROR_FREEZE_SECONDS: how long a leader is frozen at least; without it, until another one has
taken over.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from sparkmirror.embedded.process import wait_gone
from tests.clusters import start_clusters
from tests.handover.traffic import GroupMember
from tests.kafka.records import Feeder
from tests.worker_cluster.scene import PARTITIONS, Scene, connector_answers, signal_all
from tests.worker_cluster.workers import Worker, connector_path

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

PER_SECOND = 300
# Spark's JVM and its Python processes, after their worker was killed.
ORPHAN_SECONDS = 20.0
FREEZE_SECONDS = float(os.environ.get("SPARKMIRROR_FREEZE_SECONDS", "0"))
# What a worker that wakes up could do wrong, it does at once.
WAKING_SECONDS = 3.0


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with start_clusters("source", "target") as (source, target):
        made = Scene(tmp_path_factory.mktemp("workers"), source, target)
        topic = made.flow.topic
        try:
            with (
                Feeder(source, topic, PARTITIONS, per_second=PER_SECOND),
                GroupMember(source, made.flow.group, [topic]),
            ):
                for worker in made.pair:
                    worker.start()
                made.start_connectors()
                yield made
        finally:
            made.close()


def test_every_worker_answers_as_the_leader_does(scene: Scene) -> None:
    leader, follower = scene.leader_and_follower()
    assert leader is scene.pair[0]
    scene.wait_until_runs_on(leader, follower, asked=follower)
    scene.wait_until_moves(leader)
    leader.wait_for(
        lambda: connector_answers(leader, scene.flow) == connector_answers(follower, scene.flow),
        lambda: f"{follower.name} says the same",
    )
    name = scene.flow.heartbeat_name
    assert follower.ask("PUT", connector_path(name, "pause")).status_code == 202
    for worker in scene.pair:
        worker.wait_for_states(name, "PAUSED", tasks=1)
    assert follower.ask("PUT", connector_path(name, "resume")).status_code == 202
    scene.wait_until_runs_on(leader, follower, asked=follower)


def test_writes_that_a_follower_is_asked_for(scene: Scene) -> None:
    leader, follower = scene.leader_and_follower()
    # It has no task: when tasks are there is a matter of moments.
    own = {"name": "written here", "emit.heartbeats.enabled": "false"}
    config = scene.flow.configs()[scene.flow.heartbeat_name] | own
    path = connector_path("written here")
    asked: list[tuple[str, str, object, int]] = [
        ("PUT", f"{path}/config", config, 201),
        ("PUT", f"{path}/config", config | {"tasks.max": "5"}, 200),
        ("POST", "/connectors", {"name": "written here", "config": config}, 409),
        ("PUT", f"{path}/config", config | {"tasks.max": "none"}, 400),
        ("PUT", f"{path}/stop", None, 204),
        ("DELETE", path, None, 204),
        ("DELETE", path, None, 404),
        ("POST", f"{path}/restart", None, 404),
        ("DELETE", f"{path}?forward=true", None, 400),
    ]
    assert _exchange(follower, asked) == _exchange(leader, asked)


def _exchange(
    worker: Worker, asked: list[tuple[str, str, object, int]]
) -> list[tuple[int, str, str]]:
    found = []
    for method, path, body, status in asked:
        answer = worker.ask(method, path, body)
        assert answer.status_code == status, (method, path, answer.text)
        location = answer.headers.get("location", "").removeprefix(worker.url)
        found.append((answer.status_code, answer.text, location))
    return found


def test_tasks_are_restarted_through_either_worker_and_copy_nothing_twice(scene: Scene) -> None:
    leader, follower = scene.leader_and_follower()
    name = scene.flow.source_name
    tasks = len(leader.states(name)) - 1
    assert tasks == 2
    for asked in (follower, leader):
        scene.wait_until_moves(leader)
        before = _starts_again(scene.pair, name, tasks)
        for task in range(tasks):
            path = connector_path(name, f"tasks/{task}/restart")
            assert asked.ask("POST", path).status_code == 204
        wanted = [count + 1 for count in before]
        leader.wait_for(
            lambda: _starts_again(scene.pair, name, tasks) == wanted,  # noqa: B023 - this round
            lambda: f"each task of {name} restarted once: {_starts_again(scene.pair, name, tasks)}",
        )
        scene.wait_until_runs_on(leader, follower, asked=asked)
    scene.wait_until_moves(leader)
    assert sum(scene.check_copies().values()) == 0


def _starts_again(workers: Iterable[Worker], name: str, tasks: int) -> list[int]:
    """How often each task has run again, by the workers' logs: the state between is too short."""
    text = "".join(worker.log_path.read_text() for worker in workers)
    again = rf"\[{re.escape(name)}\|task-(\d+)\] (?:\S+: )?RUNNING again"
    found = Counter(re.findall(again, text))
    return [found[str(task)] for task in range(tasks)]


def test_a_leader_that_is_killed_is_followed_by_the_other(scene: Scene) -> None:
    leader, follower = scene.leader_and_follower()
    orphans = leader.descendants
    assert len(orphans) >= 3  # the JVM, Python's daemon, and the tasks
    began = time.monotonic()
    leader.kill()
    scene.wait_until_runs_on(follower)
    seconds = scene.wait_until_moves(follower) - began
    assert wait_gone(orphans, ORPHAN_SECONDS) == []
    _tell("kill -9", seconds, scene.check_copies())
    assert seconds < scene.most_takeover_seconds
    leader.start()
    assert scene.leader_and_follower() == (follower, leader)
    scene.wait_until_runs_on(follower, leader, asked=leader)


@pytest.mark.parametrize(
    "with_tasks",
    [
        pytest.param(False, id="the worker alone"),
        pytest.param(True, id="and its tasks", marks=pytest.mark.long),
    ],
)
def test_a_leader_that_was_frozen_follows_the_other(scene: Scene, with_tasks: bool) -> None:
    leader, follower = scene.leader_and_follower()
    frozen = [leader.process, *(leader.descendants if with_tasks else [])]
    began = time.monotonic()
    signal_all(frozen, signal.SIGSTOP)
    try:
        scene.wait_until_runs_on(follower)
        seconds = scene.wait_until_moves(follower) - began
        time.sleep(max(0.0, began + FREEZE_SECONDS - time.monotonic()))
    finally:
        signal_all(frozen, signal.SIGCONT)
    leader.wait_for(leader.is_healthy, lambda: "it is healthy")
    scene.assert_one_leads(follower, leader, WAKING_SECONDS)
    scene.wait_until_runs_on(follower, leader, asked=leader)
    scene.wait_until_moves(follower)
    twice = scene.check_copies()
    _tell(f"SIGSTOP, {len(frozen)} processes", seconds, twice)
    assert seconds < scene.most_takeover_seconds
    if not with_tasks:  # they had the time to store their positions
        assert sum(twice.values()) == 0


def test_workers_that_are_restarted_one_by_one_copy_nothing_twice(scene: Scene) -> None:
    for _ in scene.pair:
        leader, follower = scene.leader_and_follower()
        began = time.monotonic()
        stopped = leader.stop()
        scene.wait_until_runs_on(follower)
        seconds = scene.wait_until_moves(follower) - began
        twice = scene.check_copies()
        _tell(f"SIGTERM, which took {stopped:.1f} s", seconds, twice)
        assert sum(twice.values()) == 0
        leader.start()
        scene.wait_until_runs_on(follower, leader, asked=leader)


def _tell(what: str, seconds: float, twice: dict[int, int]) -> None:
    print(f"{what}: all three work on after {seconds:.1f} s, records twice: {twice}")  # noqa: T201
