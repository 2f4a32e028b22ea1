"""Two workers share the tasks of one flow under load: lost, frozen, restarted, joined by others.

An independent client watches how long partitions stand still; the broker's disk shows who wrote
what (`copies`). SPARKMIRROR_ROUNDS: how many random changes the long test makes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.clusters import start_clusters, wait_for
from tests.kafka.records import Feeder
from tests.worker_cluster.changes import Changes, run_rounds
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

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(400)]

PER_SECOND = 800
HAND_OVER_SECONDS = 3.0
ROUNDS = int(os.environ.get("SPARKMIRROR_ROUNDS", "4"))


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


@pytest.mark.timeout(60 * ROUNDS + 300)
def test_no_partition_has_two_writers_whatever_happens(
    shared: Shared, pair: list[Worker], watch: Standstills
) -> None:
    changes = Changes(pair, lambda: shared.worker("another"), seed=17)
    run_rounds(shared, watch, changes, ROUNDS)
