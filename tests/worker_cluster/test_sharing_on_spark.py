"""Two workers share tasks that run on the executors of a standalone Spark cluster.

Like test_sharing, with what only a cluster has: the network between a worker and its executors,
here a line for each port of its driver, is cut or silenced. Executors keep running then, and only
their lease keeps them from writing beside the tasks that replace them.

SPARKMIRROR_ROUNDS: how many rounds of random changes there are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sparkmirror.embedded import SparkCluster
from sparkmirror.embedded.long_lines.long_line import LongLine
from sparkmirror.embedded.ports import HOST
from tests.clusters import start_clusters
from tests.kafka.records import Feeder
from tests.worker_cluster.changes import MOST_WORKERS, Changes, run_rounds
from tests.worker_cluster.shared import (
    PARTITIONS,
    SESSION_SECONDS,
    SLACK_SECONDS,
    TAKE_OVER_SECONDS,
    TASKS,
    Shared,
    report,
)
from tests.worker_cluster.standstills import Standstills
from tests.worker_cluster.workers import Worker

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

PER_SECOND = 400
ROUNDS = int(os.environ.get("SPARKMIRROR_ROUNDS", "2"))
# Where the driver listens whose executors reach it over lines.
BEHIND_LINES = "127.0.0.2"
DRIVER_PORTS = (
    "spark.driver.port",
    "spark.driver.blockManager.port",
    "spark.sparkmirror.link.port",
)


class Lines:
    """All that executors need to reach one worker."""

    def __init__(self, stack: ExitStack) -> None:
        self._lines = [
            stack.enter_context(LongLine(server_host=BEHIND_LINES)) for _ in DRIVER_PORTS
        ]
        for line in self._lines:
            line.connect_port(line.port)

    @property
    def settings(self) -> dict[str, str]:
        """Of the worker: the ports are the same on both sides."""
        ports = {key: str(line.port) for key, line in zip(DRIVER_PORTS, self._lines, strict=True)}
        return {"spark.driver.host": HOST, "spark.driver.bindAddress": BEHIND_LINES, **ports}

    def cut(self) -> None:
        for line in self._lines:
            line.cut()

    def mend(self) -> None:
        for line in self._lines:
            line.mend()

    def stall(self) -> None:
        for line in self._lines:
            line.stall()

    def resume(self) -> None:
        for line in self._lines:
            line.resume()

    def cut_line(self, seconds: float) -> None:
        self.cut()
        time.sleep(seconds)
        self.mend()

    def silent_line(self, seconds: float) -> None:
        self.stall()
        time.sleep(seconds)
        self.resume()


@pytest.fixture(scope="module")
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture(scope="module")
def shared(stack: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    source, target = stack.enter_context(start_clusters("source", "target"))
    made = Shared(tmp_path_factory.mktemp("shared"), source, target)
    stack.callback(made.close)
    stack.enter_context(Feeder(source, made.topic, PARTITIONS, per_second=PER_SECOND))
    return made


@pytest.fixture(scope="module")
def lines(stack: ExitStack) -> Lines:
    return Lines(stack)


@pytest.fixture(scope="module")
def settings(stack: ExitStack) -> dict[str, str]:
    """Of workers: each has an executor with room for all tasks."""
    cores, memory = MOST_WORKERS * TASKS // 2, f"{MOST_WORKERS // 2}g"
    cluster = stack.enter_context(SparkCluster(workers=2, cores=cores, memory=memory))
    return {
        "spark.master": cluster.master_url,
        **cluster.driver_settings,
        "spark.executor.cores": str(TASKS),
        "spark.cores.max": str(TASKS),
        "spark.executor.memory": "512m",
        "spark.python.daemon.module": "sparkmirror.spark.task_daemon",
    }


@pytest.fixture(scope="module")
def pair(shared: Shared, lines: Lines, settings: dict[str, str]) -> list[Worker]:
    """One whose executors are behind lines, and one whose are not."""
    workers = [
        shared.worker("behind-lines", **settings, **lines.settings),
        shared.worker("near", **settings),
    ]
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


@pytest.mark.parametrize("number", [0, 1], ids=["leader", "follower"])
def test_tasks_of_a_killed_worker_resume_soon_after_its_session(
    shared: Shared, pair: list[Worker], watch: Standstills, number: int
) -> None:
    workers = shared.leader_first(pair)
    lost = workers.pop(number)
    shared.wait_for_growth(watch)
    watch.take_longest()
    lost.kill()
    shared.settle(workers)
    shared.wait_for_growth(watch)
    pauses, twice = watch.take_longest(), shared.twice()
    report(f"kill -9 of worker {number}", pauses, twice)
    assert max(pauses.values()) < SESSION_SECONDS + TAKE_OVER_SECONDS + SLACK_SECONDS
    assert twice == 0
    lost.start()
    shared.settle(pair)


@pytest.mark.parametrize("is_silent", [False, True], ids=["reset", "silent"])
def test_tasks_behind_a_cut_link_end_and_none_writes_beside_its_successor(
    shared: Shared, pair: list[Worker], watch: Standstills, lines: Lines, is_silent: bool
) -> None:
    near = pair[1]
    shared.wait_for_growth(watch)
    watch.take_longest()
    (lines.stall if is_silent else lines.cut)()
    # Its executors are lost, so it has no room for tasks and hands all of them over.
    shared.wait_for_shares(near, {near.worker_id: TASKS})
    shared.wait_for_growth(watch)
    pauses = watch.take_longest()
    (lines.resume if is_silent else lines.mend)()
    shared.settle(pair)
    shared.wait_for_growth(watch)
    twice = shared.twice()
    report("link " + ("silent" if is_silent else "cut"), pauses, twice)
    assert twice == 0
    assert max(pauses.values()) < SESSION_SECONDS + TAKE_OVER_SECONDS + SLACK_SECONDS


@pytest.mark.timeout(60 * ROUNDS + 600)
def test_no_partition_has_two_writers_whatever_happens(
    shared: Shared,
    pair: list[Worker],
    watch: Standstills,
    lines: Lines,
    settings: dict[str, str],
) -> None:
    more = [lines.cut_line, lines.silent_line]
    changes = Changes(pair, lambda: shared.worker("another", **settings), seed=18, more=more)
    run_rounds(shared, watch, changes, ROUNDS)
