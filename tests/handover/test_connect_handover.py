"""A genuine Connect worker -> `sparkmirror worker` -> a genuine one, while records keep coming.

All have the same file, but for the address of their REST API. Connectors are created once, by
request to the first worker: the others find them in the config topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sparkmirror.embedded import ConnectWorker, KafkaCluster
from sparkmirror.embedded.class_archive import class_archive_args
from sparkmirror.embedded.java import QUICK_JVM_ARGS
from sparkmirror.embedded.process import log_tail
from sparkmirror.types import TopicPartition
from tests.clusters import unique_name, wait_for
from tests.handover.seams import repeated_at_seams
from tests.handover.traffic import GroupMember, GroupWatch, numbers_of, steady_load
from tests.kafka.records import last_value
from tests.mm2_suite.topics import create_topics, ends
from tests.rest.requests import request
from tests.worker_cluster.workers import BYTES, Flow, Worker, Workers, connector_path

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

TURNS = ("genuine", "ours", "genuine again")
PARTITIONS = 2
PER_SECOND = 200
WAIT_SECONDS = 90.0
# How long each one goes on after it has caught up.
LIVE_SECONDS = 1.0
OK, CREATED = 200, 201


def worker_settings(servers: str, group_id: str) -> dict[str, str]:
    """Kafka's own minute between commits: positions are those that a worker left when stopped."""
    topics = {f"{kind}.storage.topic": f"{group_id}-{kind}" for kind in ("config", "status")}
    return {
        "bootstrap.servers": servers,
        "group.id": group_id,
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
        **topics,
        "offset.storage.topic": f"{group_id}-offset",
        "offset.storage.partitions": "3",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "plugin.discovery": "service_load",
        "scheduled.rebalance.max.delay.ms": "0",
    }


def remote_partitions(flow: Flow, topics: list[str]) -> list[TopicPartition]:
    remotes = [f"{flow.alias}.{topic}" for topic in topics]
    return [TopicPartition(remote, at) for remote in remotes for at in range(PARTITIONS)]


@dataclass(slots=True)
class HandOver:
    """The flow, the worker whose turn it is, and what each left: end offsets of the target."""

    flow: Flow
    topics: list[str]
    source: KafkaCluster
    target: KafkaCluster
    watch: GroupWatch
    worker: ConnectWorker | Worker
    seams: list[dict[TopicPartition, int]] = field(default_factory=list)
    # From a stop to the end, and from a start to the first record in every partition.
    stop_seconds: list[float] = field(default_factory=list)
    start_seconds: list[float] = field(default_factory=list)
    _started: float = 0.0

    @property
    def remotes(self) -> list[str]:
        return [f"{self.flow.alias}.{topic}" for topic in self.topics]

    def ends(self) -> dict[TopicPartition, int]:
        return ends(self.target, self.remotes)

    def wait_for(self, condition: Callable[[], object], describe: Callable[[], str]) -> None:
        """Wait for what the worker should do; the group may not go back meanwhile."""

        def holds() -> object:
            self.watch.look()
            return condition()

        wait_for(
            holds,
            within=WAIT_SECONDS,
            describe=lambda: f"{describe()}; {log_tail(self.worker.log_path)}",
        )

    def create_connectors(self) -> None:
        for name, config in self.flow.configs().items():
            body = {"name": name, "config": config}
            response = request(self.worker.url, "POST", "/connectors", body)
            assert response.status_code == CREATED, response.text

    def start(self, worker: ConnectWorker | Worker) -> None:
        """Start the next one and wait until it answers."""
        self.worker, self._started = worker, time.monotonic()
        worker.start()
        if isinstance(worker, ConnectWorker):
            worker.wait_ready()

    def wait_until_at_work(self) -> None:
        """Wait until it runs all three, copies what is written and moves the group on."""
        before, stood = self.seams[-1] if self.seams else {}, self.watch.look()
        partitions = remote_partitions(self.flow, self.topics)

        def has_begun() -> bool:
            now = self.ends()
            return all(now.get(tp, 0) > before.get(tp, 0) for tp in partitions)

        def group_has_moved() -> bool:
            now = self.watch.look()
            return all(now.get(tp, -1) > stood.get(tp, -1) for tp in partitions)

        self.wait_for(has_begun, lambda: f"more than {before} on the target: {self.ends()}")
        self.start_seconds.append(time.monotonic() - self._started)
        self.wait_for(self.all_run_here, lambda: f"all are RUNNING: {self.statuses()}")
        self.wait_for(group_has_moved, lambda: f"the group beyond {stood}: {self.watch.look()}")

    def all_run_here(self) -> bool:
        """Whether this worker says that it runs every connector, and at least one task of each."""
        here = "RUNNING", self.worker.url.removeprefix("http://")
        return all(len(rows) > 1 and set(rows) == {here} for rows in self.statuses().values())

    def statuses(self) -> dict[str, list[tuple[str, str]]]:
        return {name: self._status(name) for name in self.flow.names}

    def _status(self, name: str) -> list[tuple[str, str]]:
        response = request(self.worker.url, "GET", connector_path(name, "status"))
        if response.status_code != OK:
            return []
        found = response.json()
        return [(row["state"], row["worker_id"]) for row in (found["connector"], *found["tasks"])]

    def wait_complete(self) -> None:
        """Wait until the newest records of the source are the newest of the target."""
        wanted = self._last_values(self.source, self.topics)

        def found() -> list[bytes | None]:
            return self._last_values(self.target, self.remotes)

        self.wait_for(lambda: found() == wanted, lambda: f"{wanted}; {found()}")

    @staticmethod
    def _last_values(cluster: KafkaCluster, topics: list[str]) -> list[bytes | None]:
        return [last_value(cluster, topic, at) for topic in topics for at in range(PARTITIONS)]

    def stop(self) -> None:
        """SIGTERM; note where it has ended."""
        began = time.monotonic()
        self.worker.stop()
        self.stop_seconds.append(time.monotonic() - began)
        self.seams.append(self.ends())


@pytest.fixture
def workers(
    tmp_path: Path, target_cluster: KafkaCluster
) -> Iterator[dict[str, ConnectWorker | Worker]]:
    """By turn; none is started yet."""
    settings = worker_settings(target_cluster.bootstrap_servers, unique_name("handover"))
    jvm_args = (*QUICK_JVM_ARGS, *class_archive_args())
    genuine = ConnectWorker(settings, tmp_path, jvm_args=jvm_args)
    ours = Worker("ours", tmp_path, settings)
    try:
        yield {"genuine": genuine, "ours": ours, "genuine again": genuine}
    finally:
        genuine.stop(0.0)
        ours.close()


@pytest.fixture
def handover(
    tmp_path: Path,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    workers: dict[str, ConnectWorker | Worker],
) -> Iterator[HandOver]:
    topics = [unique_name("orders"), unique_name("payments")]
    create_topics(source_cluster, topics, partitions=PARTITIONS)
    names = Workers(tmp_path, source_cluster, target_cluster)
    flow = Flow(names, ",".join(topics), unique_name("billing"))
    remotes = remote_partitions(flow, topics)
    with closing(GroupWatch(target_cluster, flow.group, remotes)) as watch:
        first = workers[TURNS[0]]
        yield HandOver(flow, topics, source_cluster, target_cluster, watch, first)


@pytest.mark.long
def test_workers_take_over_connectors_and_ours_leaves_nothing_to_copy_twice(
    handover: HandOver, workers: dict[str, ConnectWorker | Worker]
) -> None:
    source, topics = handover.source, handover.topics
    with (
        GroupMember(source, handover.flow.group, topics) as member,
        steady_load(source, topics, PARTITIONS, per_second=PER_SECOND),
    ):
        for number, turn in enumerate(TURNS):
            if number:
                handover.stop()
            handover.start(workers[turn])
            if not number:
                handover.create_connectors()
            handover.wait_until_at_work()
            time.sleep(LIVE_SECONDS)
    handover.wait_complete()
    handover.stop()
    assert member.read > 0

    found = numbers_of(handover.target, handover.remotes)
    assert {tp: set(numbers) for tp, numbers in found.items()} == {
        TopicPartition(f"{handover.flow.alias}.{topic}", at): set(numbers)
        for (topic, at), numbers in numbers_of(source, topics).items()
    }
    repeated = {
        tp: repeated_at_seams(numbers, [seam[tp] for seam in handover.seams[:-1]])
        for tp, numbers in found.items()
    }
    for at, stopped in enumerate(TURNS[:-1]):
        print(describe_seam(handover, repeated, at))  # noqa: T201
        if stopped == "ours":
            assert {tp: counts[at] for tp, counts in repeated.items() if counts[at]} == {}


def describe_seam(handover: HandOver, repeated: dict[TopicPartition, list[int]], at: int) -> str:
    twice = sum(counts[at] for counts in repeated.values())
    return (
        f"{TURNS[at]} -> {TURNS[at + 1]}: {twice} of {sum(handover.seams[at].values())} records "
        f"twice, stopped in {handover.stop_seconds[at]:.1f} s, "
        f"first records after {handover.start_seconds[at + 1]:.1f} s"
    )
