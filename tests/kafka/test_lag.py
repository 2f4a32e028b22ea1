"""Lag and latency on real brokers, against what an independent client measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from sparkmirror import types
from sparkmirror.connect.entities import TargetState
from sparkmirror.connect.runtime.connect_distributed import ConnectDistributed
from sparkmirror.embedded import KafkaCluster
from sparkmirror.monitoring.lag.lag_model import LagModel
from sparkmirror.monitoring.lag.partition_lag import PartitionLag, PartitionState
from sparkmirror.monitoring.lag.source_flows import NO_TASK
from sparkmirror.monitoring.monitored import MonitoredGroup
from sparkmirror.spark.figures import LATENCY_BOUNDS_MS
from tests.clusters import create_topic, unique_name, wait_for
from tests.kafka.test_herder import Cluster

pytestmark = pytest.mark.kafka

SECONDS = 60.0
DAY = 86_400.0


class Scene:
    """One topic of two partitions, its mirror, and a client that has nothing to do with it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topic = create_topic(cluster.source, partitions=2, config={"retention.ms": "86400000"})
        self.remote = f"{cluster.alias}.{self.topic}"
        config = cluster.config(
            "MirrorSourceConnector",
            topics=self.topic,
            replication_factor="1",
            sync_topic_configs_enabled="false",
            sync_topic_acls_enabled="false",
            **{"emit.offset-syncs.enabled": "false"},
            refresh_topics_interval_seconds="5",
        )
        self.config = config | {"name": f"{cluster.alias}.MirrorSourceConnector"}
        self.name = str(self.config["name"])
        self._producer = Producer({"bootstrap.servers": cluster.source.bootstrap_servers})

    def produce(self, *ages: float, partition: int = 0, value: bytes = b"v") -> None:
        """One record of each age, in seconds."""
        for age in ages:
            at = int((time.time() - age) * 1000)
            self._producer.produce(self.topic, value, partition=partition, timestamp=at)
            assert self._producer.flush(30) == 0

    def end(self, partition: int = 0) -> int:
        return end_of(self.cluster.source, self.topic, partition)

    def copied(self, partition: int = 0) -> int:
        """Records that the target has: as many offsets as were copied."""
        return end_of(self.cluster.target, self.remote, partition)

    def age_at(self, offset: int, partition: int = 0) -> float:
        """Of the record at this offset of the source, in seconds."""
        with consumer(self.cluster.source) as reader:
            reader.assign([TopicPartition(self.topic, partition, offset)])
            message = reader.poll(30)
            assert message is not None
            assert message.offset() == offset
            at: int = message.timestamp()[1]
            return time.time() - at / 1000


@contextmanager
def consumer(cluster: KafkaCluster) -> Iterator[Consumer]:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": unique_name("g")}
    with closing(Consumer({**settings, "auto.offset.reset": "earliest"})) as made:
        yield made


def end_of(cluster: KafkaCluster, topic: str, partition: int) -> int:
    with consumer(cluster) as reader:
        found: int = reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
        return found


@pytest.fixture
def scene(tmp_path: Path, source_cluster: KafkaCluster, target_cluster: KafkaCluster) -> Scene:
    return Scene(Cluster(tmp_path, source_cluster, target_cluster))


@contextmanager
def model_of(worker: ConnectDistributed) -> Iterator[LagModel]:
    model = LagModel(lambda: [MonitoredGroup("", worker.cluster, worker.herder)])
    model.start()
    try:
        yield model
    finally:
        model.stop()


class Looks:
    """What the model says of partitions."""

    def __init__(self, model: LagModel, scene: Scene) -> None:
        self.model = model
        self._scene = scene

    def at(self, partition: int = 0) -> PartitionLag | None:
        tp = types.TopicPartition(self._scene.topic, partition)
        found = [lag for lag in self.model.partitions() if lag.source == tp]
        assert len(found) <= 1
        return found[0] if found else None

    def until(
        self, is_so: Callable[[PartitionLag], bool], partition: int = 0, within: float = SECONDS
    ) -> PartitionLag:
        """The lag, once that is true of it."""

        def holds() -> bool:
            lag = self.at(partition)
            return lag is not None and is_so(lag)

        wait_for(holds, within=within, describe=lambda: str(self.at(partition)))
        lag = self.at(partition)
        assert lag is not None
        return lag


def about(ours: float | None, theirs: float) -> bool:
    """Within a second or a per cent."""
    return ours is not None and abs(ours - theirs) <= max(1.0, theirs / 100)


def test_lag_is_what_an_independent_client_measures(scene: Scene) -> None:
    config = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": "1000"}
    create_topic(scene.cluster.target, scene.remote, partitions=2, config=config)
    scene.produce(*range(3600, 3500, -1))
    with scene.cluster.worker(1) as worker, model_of(worker) as model:
        looks = Looks(model, scene)
        worker.herder.create(scene.name, scene.config, None)
        lag = looks.until(lambda lag: lag.records == 100)
        # All is copied: nothing is behind, and the latency was that of old records.
        assert (lag.records_behind, lag.seconds_behind, lag.bytes_behind) == (0, 0.0, 0)
        assert lag.state is PartitionState.LIVE
        assert (lag.position, lag.end_offset) == (scene.end(), scene.copied()) == (100, 100)
        idle = looks.until(lambda lag: lag.end_offset == 0, partition=1)
        assert idle.state is PartitionState.IDLE
        lag = looks.until(lambda lag: lag.seconds_until_loss is not None)
        assert about(lag.seconds_until_loss, DAY)
        assert_latency(model, looks, scene)

        # Paused: the lag grows as the source does.
        worker.herder.set_target_state(scene.name, TargetState.PAUSED)
        looks.until(lambda lag: lag.state is PartitionState.PAUSED)
        scene.produce(1200, 600, 0)
        lag = looks.until(lambda lag: (lag.records_behind or 0) >= 3)
        behind, copied = scene.end() - scene.copied(), scene.copied()
        assert (lag.records_behind, lag.position) == (behind, copied)
        assert about(lag.seconds_behind, scene.age_at(copied))
        assert lag.state is PartitionState.PAUSED
        assert lag.seconds_until_loss is not None
        assert about(DAY - lag.seconds_until_loss, scene.age_at(copied))
        (flow,) = model.flows()
        assert (flow.records_behind, flow.state) == (behind, PartitionState.PAUSED)

        # A record that the target rejects: the task fails, and what comes after it waits.
        worker.herder.set_target_state(scene.name, TargetState.STARTED)
        lag = looks.until(lambda lag: lag.is_running and lag.records_behind == 0)
        scene.produce(300, value=b"x" * 2000)
        scene.produce(200, 100)
        lag = looks.until(
            lambda lag: lag.state is PartitionState.FAILED and lag.records_behind == 3
        )
        assert scene.end() - scene.copied() == 3
        assert about(lag.seconds_behind, scene.age_at(scene.copied()))
        assert "FAILED" in lag.problem

        # Stopped: it has no tasks any more, and the partitions of its positions.
        worker.herder.set_target_state(scene.name, TargetState.STOPPED)
        wait_for(lambda: worker.cluster.loop.is_idle(scene.name), within=SECONDS)
        lag = looks.until(lambda lag: lag.task == NO_TASK and lag.records_behind == 3)
        assert lag.state is PartitionState.PAUSED
        assert about(lag.seconds_behind, scene.age_at(scene.copied()))


def assert_latency(model: LagModel, looks: Looks, scene: Scene) -> None:
    """Records of three ages go through; the target's log says when each of them arrived."""
    before = looks.at()
    (flow,) = model.flows()
    buckets = list(flow.latency_buckets)
    copied = scene.copied()
    made = []
    for age in (20.0, 40.0, 7.0):
        made.append(int((time.time() - age) * 1000))
        scene.produce(age)
        time.sleep(0.2)
    lag = looks.until(lambda lag: lag.position == copied + 3)
    with consumer(scene.cluster.target) as reader:
        reader.assign([TopicPartition(scene.remote, 0, copied)])
        messages = [reader.poll(30) for _ in made]
    late = [
        message.timestamp()[1] - at for message, at in zip(messages, made, strict=True) if message
    ]
    assert len(late) == 3
    assert about(lag.latency.last / 1000, late[-1] / 1000)
    assert about(lag.latency.least / 1000, min(late) / 1000)
    assert before is not None
    assert lag.latency.count == before.latency.count + 3
    total = lag.latency.total - before.latency.total
    assert about(total / 1000, sum(late) / 1000)
    (flow,) = model.flows()
    grown = [now - then for now, then in zip(flow.latency_buckets, buckets, strict=True)]
    bounds = [*LATENCY_BOUNDS_MS, float("inf")]
    assert {bound: count for bound, count in zip(bounds, grown, strict=True) if count} == {
        10_000: 1,
        30_000: 1,
        60_000: 1,
    }
