"""Whole workers on a real broker, without Spark: heartbeats and checkpoints by request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from sparkmirror.config.worker.worker_file import parse_worker_file
from sparkmirror.connect.entities import NotLeader, RequestError, State, TargetState
from sparkmirror.connect.runtime.connect_distributed import ConnectDistributed
from sparkmirror.connect.runtime.herder import DistributedHerder
from sparkmirror.embedded import KafkaCluster
from sparkmirror.mirror.records import OffsetSync
from tests.clusters import Record, create_topic, produce, read_partition, unique_name, wait_for
from tests.kafka.test_checkpoints import commit

pytestmark = pytest.mark.kafka

SECONDS = 30.0
MIRROR = "org.apache.kafka.connect.mirror."
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Cluster:
    """Workers that share their topics; each has a number, which is the port of its URL."""

    def __init__(self, folder: Path, source: KafkaCluster, target: KafkaCluster) -> None:
        self.source, self.target = source, target
        self.alias, self.target_alias = unique_name("s"), unique_name("t")
        self._folder = folder

    def settings(self) -> dict[str, str]:
        topics = {
            f"{kind}.storage.{key}": value
            for kind in ("config", "offset", "status")
            for key, value in (("topic", f"{self.alias}-{kind}"), ("replication.factor", "1"))
        }
        return {
            "bootstrap.servers": self.target.bootstrap_servers,
            "group.id": self.alias,
            "key.converter": BYTES,
            "value.converter": BYTES,
            "offset.storage.partitions": "3",
            "offset.flush.interval.ms": "500",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            **topics,
        }

    @contextmanager
    def worker(self, number: int) -> Iterator[ConnectDistributed]:
        file = parse_worker_file(self.settings(), self._folder / "worker.properties")
        worker = ConnectDistributed(file, f"http://localhost:{number}/")
        worker.start()
        try:
            wait_for(lambda: worker.herder.health()[0] == "healthy", within=SECONDS)
            yield worker
        finally:
            assert worker.stop()

    def config(self, kind: str, **settings: str) -> dict[str, str | None]:
        return {
            "name": f"{self.alias}.{kind}",
            "connector.class": f"{MIRROR}{kind}",
            "source.cluster.alias": self.alias,
            "target.cluster.alias": self.target_alias,
            "source.cluster.bootstrap.servers": self.source.bootstrap_servers,
            "target.cluster.bootstrap.servers": self.target.bootstrap_servers,
            "tasks.max": "2",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }

    def heartbeat(self) -> dict[str, str | None]:
        return self.config(
            "MirrorHeartbeatConnector",
            heartbeats_topic_replication_factor="1",
            emit_heartbeats_interval_seconds="1",
        )


@pytest.fixture
def cluster(tmp_path: Path, source_cluster: KafkaCluster, target_cluster: KafkaCluster) -> Cluster:
    return Cluster(tmp_path, source_cluster, target_cluster)


def states(herder: DistributedHerder, name: str) -> list[str]:
    try:
        status = herder.connector_status(name)
    except RequestError:
        return []
    return [status.state, *(task.state for task in status.tasks)]


def wait_for_states(herder: DistributedHerder, name: str, *wanted: State) -> None:
    wait_for(
        lambda: states(herder, name) == list(wanted),
        within=SECONDS,
        describe=lambda: f"{name} is {states(herder, name)}, not {list(wanted)}",
    )


def becomes(value: Callable[[], object], wanted: object) -> None:
    wait_for(lambda: value() == wanted, within=SECONDS, describe=lambda: f"{value()}")


def test_the_life_of_a_heartbeat_connector(cluster: Cluster) -> None:
    config = cluster.heartbeat()
    name = str(config["name"])
    pair = {"sourceClusterAlias": cluster.alias, "targetClusterAlias": cluster.target_alias}
    with cluster.worker(1) as worker:
        herder = worker.herder
        assert len(str(herder.root()["kafka_cluster_id"])) == 22
        herder.create(name, config, TargetState.STOPPED)
        wait_for_states(herder, name, State.STOPPED)
        herder.set_target_state(name, TargetState.STARTED)
        wait_for_states(herder, name, State.RUNNING, State.RUNNING)
        assert herder.connector_status(name).worker_id == "localhost:1"
        (task,) = herder.task_configs(name)
        assert task == {**config, "task.class": f"{MIRROR}MirrorHeartbeatTask"}
        becomes(lambda: list(herder.active_topics(name)), ["heartbeats"])
        becomes(lambda: list(herder.offsets(name)), [(pair, {"offset": 0})])
        herder.set_target_state(name, TargetState.PAUSED)
        wait_for_states(herder, name, State.PAUSED, State.PAUSED)
        count = len(read_partition(cluster.target, "heartbeats"))
        herder.set_target_state(name, TargetState.STARTED)
        wait_for_states(herder, name, State.RUNNING, State.RUNNING)
        wait_for(lambda: len(read_partition(cluster.target, "heartbeats")) > count, within=SECONDS)
        herder.restart_connector(name, include_tasks=True, only_failed=False)
        wait_for_states(herder, name, State.RUNNING, State.RUNNING)
        herder.set_target_state(name, TargetState.STOPPED)
        assert herder.reset_offsets(name).endswith("reset successfully")
        assert list(herder.offsets(name)) == []
        wait_for_states(herder, name, State.STOPPED)
        herder.delete(name)
        wait_for_states(herder, name)
        assert herder.connectors() == []


def test_a_checkpoint_connector_reports_a_task_per_share_of_its_groups(cluster: Cluster) -> None:
    topic = create_topic(cluster.source)
    create_topic(cluster.target, f"{cluster.alias}.{topic}")
    syncs = create_topic(cluster.source, f"mm2-offset-syncs.{cluster.target_alias}.internal")
    sync = OffsetSync(topic, 0, 0, 0)
    produce(cluster.source, syncs, [Record(sync.encode_value(), sync.encode_key())])
    produce(cluster.source, topic, [Record(b"1")])
    groups = sorted(unique_name(cluster.alias) for _ in range(3))
    for group in groups:
        commit(cluster.source, group, topic, {0: 0})
    config = cluster.config(
        "MirrorCheckpointConnector",
        groups=f"{cluster.alias}.*",
        topics=topic,
        checkpoints_topic_replication_factor="1",
        refresh_groups_interval_seconds="1",
        emit_checkpoints_interval_seconds="1",
    )
    name = str(config["name"])
    with cluster.worker(1) as worker:
        herder = worker.herder
        herder.put_config(name, config)
        wait_for_states(herder, name, *[State.RUNNING] * 3)
        assert [task["task.assigned.groups"] for task in herder.task_configs(name)] == [
            ",".join(groups[:2]),
            groups[2],
        ]


def test_another_worker_takes_over(cluster: Cluster) -> None:
    config = cluster.heartbeat()
    name = str(config["name"])
    with ExitStack() as first:
        one = first.enter_context(cluster.worker(1))
        with cluster.worker(2) as two:
            one.herder.create(name, config, None)
            wait_for_states(two.herder, name, State.RUNNING, State.RUNNING)
            assert two.herder.connector_status(name).worker_id == "localhost:1"
            with pytest.raises(NotLeader) as error:
                two.herder.delete(name)
            assert error.value.leader_url == "http://localhost:1/"
            first.close()
            becomes(lambda: two.herder.connector_status(name).worker_id, "localhost:2")
            wait_for_states(two.herder, name, State.RUNNING, State.RUNNING)
            two.herder.delete(name)
            wait_for_states(two.herder, name)
