"""Two workers share the tasks of one flow under load: lost, frozen, restarted, joined by others.

An independent client watches how long partitions stand still; the broker's disk shows who wrote
what (`copies`). SPARKMIRROR_ROUNDS: how many random changes the long test makes.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator

import pytest

from tests.clusters import start_clusters, wait_for
from tests.kafka.records import Feeder
from tests.worker_cluster.scene import signal_all
from tests.worker_cluster.shared import (
    PARTITIONS,
    SESSION_SECONDS,
    SETTLE_SECONDS,
    SLACK_SECONDS,
    TAKE_OVER_SECONDS,
    Shared,
    report,
)
from tests.worker_cluster.standstills import Standstills
from tests.worker_cluster.workers import Worker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

PER_SECOND = 800
HAND_OVER_SECONDS = 3.0
ROUNDS = int(os.environ.get("SPARKMIRROR_ROUNDS", "4"))
MOST_WORKERS = 4
# How often all that was copied is read: it becomes more and more.
CHECK_ROUNDS = 10


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with start_clusters("source", "target") as (source, target):
        made = Shared(tmp_path_factory.mktemp("shared"), source, target)
        try:
            with Feeder(source, made.topic, PARTITIONS, per_second=PER_SECOND):
                yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def pair(shared: Shared) -> list[Worker]:
    """Each test leaves both running with four tasks each."""
    workers = [shared.worker("one"), shared.worker("two")]
    for worker in workers:
        worker.start()
    shared.create(workers[0])
    shared.settle(workers)
    return workers


@pytest.fixture(scope="module")
def watch(shared: Shared, pair: list[Worker]) -> Iterator[Standstills]:
    del pair  # the topic is there, and records are copied
    with Standstills(shared.target, shared.flow.remote, PARTITIONS) as made:
        yield made


def test_two_workers_run_four_of_eight_tasks_each_and_all_copy(
    shared: Shared, pair: list[Worker], watch: Standstills
) -> None:
    assert shared.shares(pair[0]) == {worker.worker_id: 4 for worker in pair}
    shared.wait_for_growth(watch)
    # Copying takes CPU in the processes of both.
    before = [_task_seconds(worker) for worker in pair]
    shared.wait_for_growth(watch)
    wait_for(
        lambda: all(now > was for now, was in zip(map(_task_seconds, pair), before, strict=True)),
        within=SETTLE_SECONDS,
        describe=lambda: f"more CPU time than {before}: {[_task_seconds(each) for each in pair]}",
    )


def _task_seconds(worker: Worker) -> float:
    """CPU time of the Python processes that Spark has started for it."""
    times = [child.cpu_times() for child in worker.descendants if child.name() != "java"]
    return sum(each.user + each.system for each in times)


@pytest.mark.parametrize(
    ("number", "with_spark"),
    [(0, False), (1, False), (1, True)],
    ids=["leader", "follower", "follower and its Spark"],
)
def test_tasks_of_a_killed_worker_resume_soon_after_its_session(
    shared: Shared, pair: list[Worker], watch: Standstills, number: int, with_spark: bool
) -> None:
    # The tasks are processes of their own: they store their positions before they end.
    workers = shared.leader_first(pair)
    lost = workers.pop(number)
    shared.wait_for_growth(watch)
    watch.take_longest()
    if with_spark:
        next(each for each in lost.descendants if each.name() == "java").kill()
    lost.kill()
    shared.settle(workers)
    shared.wait_for_growth(watch)
    pauses, twice = watch.take_longest(), shared.twice()
    report(f"kill -9 of worker {number}", pauses, twice)
    assert max(pauses.values()) < SESSION_SECONDS + TAKE_OVER_SECONDS + SLACK_SECONDS
    assert twice == 0
    lost.start()
    shared.settle(pair)


@pytest.mark.parametrize("with_tasks", [False, True], ids=["the worker alone", "and its tasks"])
@pytest.mark.parametrize("number", [0, 1], ids=["leader", "follower"])
def test_tasks_of_a_frozen_worker_resume_soon_after_its_session(
    shared: Shared, pair: list[Worker], watch: Standstills, number: int, with_tasks: bool
) -> None:
    workers = shared.leader_first(pair)
    lost = workers.pop(number)
    frozen = [lost.process, *(lost.descendants if with_tasks else [])]
    shared.wait_for_growth(watch)
    watch.take_longest()
    signal_all(frozen, signal.SIGSTOP)
    try:
        shared.settle(workers)
        shared.wait_for_growth(watch)
        pauses = watch.take_longest()
    finally:
        signal_all(frozen, signal.SIGCONT)
    shared.settle(pair)
    shared.wait_for_growth(watch)
    twice = shared.twice()
    report(f"SIGSTOP of worker {number}, {len(frozen)} processes", pauses, twice)
    assert max(pauses.values()) < SESSION_SECONDS + TAKE_OVER_SECONDS + SLACK_SECONDS
    if not with_tasks:  # those had no time to store their positions
        assert twice == 0


def test_no_partition_stands_still_for_long_in_a_rolling_restart(
    shared: Shared, pair: list[Worker], watch: Standstills
) -> None:
    shared.wait_for_growth(watch)
    watch.take_longest()
    for worker in pair:
        worker.stop()
        worker.start()
        shared.settle(pair)
    shared.wait_for_growth(watch)
    pauses, twice = watch.take_longest(), shared.twice()
    report("rolling restart", pauses, twice)
    assert twice == 0
    assert max(pauses.values()) < HAND_OVER_SECONDS + SLACK_SECONDS


class Changes:
    """Random changes of a group of workers; the same seed gives the same ones."""

    def __init__(self, shared: Shared, workers: list[Worker], seed: int) -> None:
        self.running = list(workers)
        self._shared = shared
        self._dice = random.Random(seed)
        self._stopped: list[Worker] = []

    def step(self) -> str:
        """One change; says which."""
        changes = []
        if len(self.running) < MOST_WORKERS:
            changes += [self.join] * 2
        if len(self.running) > 1:
            changes += [self.drain, self.kill, self.freeze]
        change = self._dice.choice(changes)
        change()
        return change.__name__

    def join(self) -> None:
        worker = self._stopped.pop() if self._stopped else self._shared.worker("another")
        worker.start()
        self.running.append(worker)

    def drain(self) -> None:
        self._take().stop()

    def kill(self) -> None:
        self._take().kill()

    def freeze(self) -> None:
        """With or without its tasks, for a moment or beyond the end of its session."""
        worker = self._dice.choice(self.running)
        frozen = [worker.process, *(worker.descendants if self._dice.random() < 0.5 else [])]
        signal_all(frozen, signal.SIGSTOP)
        time.sleep(self._dice.choice([0.5, SESSION_SECONDS - 1, SESSION_SECONDS + 3]))
        signal_all(frozen, signal.SIGCONT)

    def _take(self) -> Worker:
        worker = self._dice.choice(self.running)
        self.running.remove(worker)
        self._stopped.append(worker)
        return worker


@pytest.mark.long
@pytest.mark.timeout(60 * ROUNDS + 300)
def test_no_partition_has_two_writers_whatever_happens(
    shared: Shared, pair: list[Worker], watch: Standstills
) -> None:
    changes = Changes(shared, pair, seed=17)
    twice = 0
    for number in range(1, ROUNDS + 1):
        done = [changes.step() for _ in range(2)]
        shared.settle(changes.running)
        shared.wait_for_growth(watch)
        if number % CHECK_ROUNDS == 0 or number == ROUNDS:
            twice += shared.twice()
        print(f"round {number}: {', '.join(done)}; {len(changes.running)} workers")  # noqa: T201
    report(f"{ROUNDS} rounds", watch.take_longest(), twice)
