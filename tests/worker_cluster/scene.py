"""Two workers, three connectors, and records that keep coming."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import create_topic, unique_name
from tests.kafka.records import last_value
from tests.mm2_suite.topics import ends
from tests.worker_cluster.copies import assert_positions_only_grow, positions, repeated
from tests.worker_cluster.workers import Flow, Worker, Workers

PARTITIONS = 3
# A worker that says nothing for so long is lost: Connect's own default.
SESSION_SECONDS = 10
RUNNING = "RUNNING"
# How often a condition that must go on holding is looked at.
_LOOK_SECONDS = 0.25
_MOST_STARTS = 4


class Scene:
    """The tests of a module play in it one after the other; each leaves both workers running."""

    def __init__(self, folder: Path, source: KafkaCluster, target: KafkaCluster) -> None:
        self.source, self.target = source, target
        self.workers = Workers(folder, source, target)
        topic = create_topic(source, partitions=PARTITIONS)
        self.flow = Flow(self.workers, topic, unique_name("group"))
        settings = {"session.timeout.ms": str(SESSION_SECONDS * 1000)}
        self.pair = (
            self.workers.new_worker("first", settings),
            self.workers.new_worker("second", settings),
        )
        # How many changes of writer each partition had at the last check.
        self._seams_seen = dict.fromkeys(range(PARTITIONS), 0)
        self._start_seconds = 0.0

    def close(self) -> None:
        for worker in self.pair:
            worker.close()

    def start_connectors(self) -> None:
        """By request to a worker that does not lead; all that they do has begun."""
        leader, follower = self.pair
        began = time.monotonic()
        for name, config in self.flow.configs().items():
            answer = follower.ask("POST", "/connectors", {"name": name, "config": config})
            assert answer.status_code == 201, answer.text
        self.wait_until_runs_on(*self.pair)
        self._start_seconds = self.wait_until_moves(leader) - began

    @property
    def most_takeover_seconds(self) -> float:
        """Until a session is over, and then a start: on the same machine, if under more load."""
        return SESSION_SECONDS + _MOST_STARTS * self._start_seconds

    def leader_and_follower(self) -> tuple[Worker, Worker]:
        first, second = sorted(self.pair, key=self.leads, reverse=True)
        assert self.leads(first)
        assert not self.leads(second)
        return first, second

    def leads(self, worker: Worker) -> bool:
        return worker.leads(self.flow.heartbeat_name)

    def wait_until_runs_on(self, *workers: Worker, asked: Worker | None = None) -> None:
        """Wait until statuses say that connectors and tasks run on these, and on each of them."""
        witness = asked or workers[0]
        wanted = {(RUNNING, worker.worker_id) for worker in workers}

        def states() -> list[list[tuple[str, str]]]:
            return [witness.states(name) for name in self.flow.names]

        def holds() -> bool:
            found = states()
            return all(len(each) > 1 for each in found) and set(chain(*found)) == wanted

        witness.wait_for(holds, lambda: f"all run on {sorted(wanted)}: {states()}")

    def wait_until_moves(self, worker: Worker) -> float:
        """Wait until all that connectors write to grows; when it did, by the monotonic clock.

        By then, or soon after, the target has all that the source has.
        """
        flow = self.flow
        topics = [flow.remote, f"{flow.alias}.checkpoints.internal", "heartbeats"]
        before = ends(self.target, topics)
        assert len(before) == PARTITIONS + 2
        worker.wait_for(
            lambda: all(now > before[tp] for tp, now in ends(self.target, topics).items()),
            lambda: f"more than {before}: {ends(self.target, topics)}",
        )
        moved_at = time.monotonic()
        self._wait_caught_up(worker)
        return moved_at

    def _wait_caught_up(self, worker: Worker) -> None:
        """Wait until the target has every record that the source has now."""
        wanted = ends(self.source, [self.flow.topic])
        worker.wait_for(
            lambda: all(self._last(tp) >= end - 1 for tp, end in wanted.items()),
            lambda: f"copied to {wanted}: {[self._last(tp) for tp in wanted]}",
        )

    def _last(self, tp: TopicPartition) -> int:
        value = last_value(self.target, self.flow.remote, tp.partition)
        return int((value or b"-1")[:10])

    def check_copies(self) -> dict[int, int]:
        """By partition, the records that are there twice since the last check.

        Fails if records are missing or out of order, if positions were stored twice or go back,
        or if anybody has written after a successor.
        """
        history = positions(self.target, self.workers.offsets_topic, self.flow.source_name)
        assert sorted(history) == [(self.flow.topic, at) for at in range(PARTITIONS)]
        assert_positions_only_grow(history)
        found = {at: repeated(self.target, self.flow.remote, at) for at in range(PARTITIONS)}
        twice = {at: sum(counts[self._seams_seen[at] :]) for at, counts in found.items()}
        self._seams_seen = {at: len(counts) for at, counts in found.items()}
        return twice

    def assert_one_leads(self, leader: Worker, follower: Worker, seconds: float) -> None:
        """For a while nobody thinks otherwise."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert self.leads(leader)
            assert not self.leads(follower)
            time.sleep(_LOOK_SECONDS)


def signal_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        process.send_signal(number)


def connector_answers(worker: Worker, flow: Flow) -> Mapping[str, object]:
    """What a worker says of the connectors, without what grows all the time."""
    paths = ["", "/status", "/config", "/tasks", "/tasks-config", "/tasks/0/status", "/topics"]
    names = [f"/connectors/{name.replace('>', '%3E')}" for name in flow.names]
    asked = ["/", "/connectors?expand=info&expand=status", *(n + p for n in names for p in paths)]
    answers = {path: worker.ask("GET", path) for path in asked}
    return {path: (each.status_code, _content(each.text)) for path, each in answers.items()}


def _content(text: str) -> object:
    """What a body says; lists of names have no order."""
    return unordered(json.loads(text))


def unordered(value: Any) -> object:
    """The same value, with every list in one order."""
    if isinstance(value, dict):
        return {key: unordered(inner) for key, inner in value.items()}
    if isinstance(value, list):
        inner = [unordered(each) for each in value]
        return sorted(inner, key=lambda each: json.dumps(each, sort_keys=True))
    return value
