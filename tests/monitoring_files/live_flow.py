"""A running flow that Prometheus can scrape: on a worker, or in dedicated mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.types import TopicPartition
from tests.clusters import create_topic, end_offset, produce, unique_name, wait_for
from tests.group_offsets import commit_offsets
from tests.kafka.mirror_process import Mirror
from tests.worker_cluster.workers import Flow, Worker, Workers, connector_path

PARTITIONS = 2
RETENTION_MS = 6 * 3_600_000
COPY_SECONDS = 90.0
# In dedicated mode, where the target's alias is fixed.
_DEDICATED = {
    "SOURCE->target.emit.heartbeats.enabled": "true",
    "SOURCE->target.emit.heartbeats.interval.seconds": "1",
    "SOURCE->target.emit.checkpoints.enabled": "true",
    "SOURCE->target.emit.checkpoints.interval.seconds": "1",
    "SOURCE->target.refresh.groups.interval.seconds": "1",
    "SOURCE->target.sync.group.offsets.enabled": "true",
    "SOURCE->target.sync.group.offsets.interval.seconds": "1",
}


@dataclass(frozen=True, slots=True)
class LiveFlow:
    """One topic and one group on their way; `metrics` is host:port."""

    source: KafkaCluster
    target: KafkaCluster
    topic: str
    remote: str
    group: str
    metrics: str
    is_dedicated: bool

    def fill(self, count: int, size: int) -> None:
        """So many records to each partition."""
        for partition in range(PARTITIONS):
            produce(self.source, self.topic, [b"x" * size] * count, partition=partition)

    def commit(self, offset: int) -> None:
        """What consumers of the group do on the source."""
        places = {TopicPartition(self.topic, at): offset for at in range(PARTITIONS)}
        commit_offsets(self.source, self.group, places)

    def wait_copied(self) -> None:
        """Until the target has as many records as the source."""

        def ends(cluster: KafkaCluster, topic: str) -> list[int]:
            return [end_offset(cluster, topic, at) for at in range(PARTITIONS)]

        wait_for(
            lambda: ends(self.source, self.topic) == ends(self.target, self.remote),
            within=COPY_SECONDS,
            describe=lambda: f"{self.topic} is copied",
        )

    def scrape(self) -> str:
        """What Prometheus gets."""
        response = httpx.get(f"http://{self.metrics}/metrics", timeout=10)
        assert response.status_code == 200, response.text
        return response.text


def make_topic_and_group(source: KafkaCluster) -> tuple[str, str]:
    """A group that has read nothing yet: without any group there is no checkpoint task."""
    config = {"retention.ms": str(RETENTION_MS)}
    topic, group = create_topic(source, partitions=PARTITIONS, config=config), unique_name("group")
    commit_offsets(source, group, {TopicPartition(topic, at): 0 for at in range(PARTITIONS)})
    return topic, group


@contextmanager
def flow_on_worker(
    folder: Path,
    source: KafkaCluster,
    target: KafkaCluster,
    settings: Mapping[str, str] | None = None,
) -> Iterator[tuple[LiveFlow, Worker, Flow]]:
    """On a Connect worker, with the connectors' names that Strimzi gives them."""
    topic, group = make_topic_and_group(source)
    with ReservedPort() as port:
        listener = {"sparkmirror.metrics.listeners": f"http://{HOST}:{port.number}"}
        workers = Workers(folder, source, target)
        worker = workers.new_worker("worker", {**listener, **(settings or {})})
        try:
            worker.start()
            flow = Flow(workers, topic, group, tasks_max=1)
            for name, config in connector_settings(flow).items():
                created = worker.ask("PUT", connector_path(name, "config"), config)
                assert created.status_code == 201, created.text
            for name in flow.names:
                worker.wait_for_states(name, "RUNNING", tasks=1)
            metrics = f"{HOST}:{port.number}"
            yield (
                LiveFlow(source, target, topic, flow.remote, group, metrics, is_dedicated=False),
                worker,
                flow,
            )
            worker.stop()
        finally:
            worker.close()


def connector_settings(flow: Flow) -> dict[str, dict[str, str]]:
    """By name. Tests set limits of their own on remote topics."""
    configs = flow.configs()
    configs[flow.source_name]["sync.topic.configs.enabled"] = "false"
    return configs


@contextmanager
def flow_of_dedicated_mode(
    folder: Path, source: KafkaCluster, target: KafkaCluster
) -> Iterator[LiveFlow]:
    """In dedicated mode."""
    topic, group = make_topic_and_group(source)
    with ReservedPort() as port:
        listener = {"sparkmirror.metrics.listeners": f"http://{HOST}:{port.number}"}
        more = {**_DEDICATED, "SOURCE->target.groups": group, **listener}
        with Mirror(folder, source, target, topic, more) as mirror:
            yield LiveFlow(
                source,
                target,
                topic,
                mirror.remote(topic),
                group,
                f"{HOST}:{port.number}",
                is_dedicated=True,
            )
