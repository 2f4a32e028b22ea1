"""Workers that share the eight tasks of one source connector, and what they have copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, unique_name, wait_for
from tests.worker_cluster.copies import assert_positions_only_grow, positions, repeated
from tests.worker_cluster.standstills import Standstills
from tests.worker_cluster.workers import Flow, Worker, Workers

PARTITIONS = TASKS = 8
# The least that brokers accept.
SESSION_SECONDS = 6.0
TAKE_OVER_SECONDS = 2.0
# How late a pause is noticed, and what a busy machine adds to it.
SLACK_SECONDS = 0.5
SETTLE_SECONDS = 60.0
RUNNING = "RUNNING"


class Shared:
    """Workers, and one source connector with a task for each partition."""

    def __init__(self, folder: Path, source: KafkaCluster, target: KafkaCluster) -> None:
        self.target = target
        self._workers = Workers(folder, source, target)
        self.topic = create_topic(source, partitions=PARTITIONS)
        self.flow = Flow(self._workers, self.topic, unique_name("group"), tasks_max=TASKS)
        self._stack = ExitStack()
        self._seams_seen = dict.fromkeys(range(PARTITIONS), 0)

    def worker(self, name: str, **settings: str) -> Worker:
        session = {"session.timeout.ms": str(int(SESSION_SECONDS * 1000))}
        worker = self._workers.new_worker(name, session | settings)
        self._stack.callback(worker.close)
        return worker

    def close(self) -> None:
        self._stack.close()

    def create(self, worker: Worker) -> None:
        name = self.flow.source_name
        config = self.flow.configs()[name]
        answer = worker.ask("POST", "/connectors", {"name": name, "config": config})
        assert answer.status_code == 201, answer.text

    def shares(self, witness: Worker) -> Counter[str]:
        """How many tasks run on each worker, as statuses say."""
        _, *tasks = witness.states(self.flow.source_name) or [("", "")]
        return Counter(worker for state, worker in tasks if state == RUNNING)

    def settle(self, workers: Sequence[Worker]) -> None:
        """Wait until they run equal shares, and no other worker runs anything."""
        least, more = divmod(TASKS, len(workers))
        wanted = sorted(least + (at < more) for at in range(len(workers)))
        ids = {worker.worker_id for worker in workers}

        def is_shared() -> bool:
            found = self.shares(workers[0])
            return sorted(found.values()) == wanted and found.keys() <= ids

        workers[0].wait_for(is_shared, lambda: f"{wanted} tasks: {self.shares(workers[0])}")

    def wait_for_shares(self, witness: Worker, wanted: dict[str, int]) -> None:
        """Wait until so many tasks run on each worker."""
        witness.wait_for(
            lambda: self.shares(witness) == wanted,
            lambda: f"{wanted} tasks: {self.shares(witness)}",
        )

    def leader_first(self, workers: Sequence[Worker]) -> list[Worker]:
        return sorted(workers, key=lambda worker: not worker.leads(self.flow.source_name))

    def twice(self) -> int:
        """How many records were copied once more since the last call.

        Fails if records are missing or out of order, if positions go back, or if two wrote at once.
        """
        history = positions(self.target, self._workers.offsets_topic, self.flow.source_name)
        assert sorted(history) == [(self.topic, at) for at in range(PARTITIONS)]
        assert_positions_only_grow(history)
        found = {at: repeated(self.target, self.flow.remote, at) for at in range(PARTITIONS)}
        again = sum(sum(counts[self._seams_seen[at] :]) for at, counts in found.items())
        self._seams_seen = {at: len(counts) for at, counts in found.items()}
        return again

    def wait_for_growth(self, watch: Standstills) -> None:
        """Wait until every partition has more records than now."""
        before = watch.counts()
        wait_for(
            lambda: all(now > before[at] for at, now in watch.counts().items()),
            within=SETTLE_SECONDS,
            describe=lambda: f"more than {before} in each partition: {watch.counts()}",
        )


def report(what: str, pauses: dict[int, float], twice: int) -> None:
    longest = ", ".join(f"{seconds:.1f}" for _, seconds in sorted(pauses.items()))
    print(f"{what}: longest pauses {longest} s, {twice} records twice")  # noqa: T201
