"""Real brokers: they start, keep their data, and die when they should."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.process import pid_is_alive
from sparkmirror.errors import ConfigError
from tests.clusters import (
    Record,
    create_topic,
    end_offset,
    produce,
    read_partition,
    start_cluster,
    wait_for,
)

pytestmark = pytest.mark.kafka


def test_records_come_back_as_they_were_written(source_cluster: KafkaCluster) -> None:
    topic = create_topic(source_cluster, partitions=2)
    written = Record(b"value", b"key", (("a", b"1"), ("a", None)), timestamp_ms=1234)
    produce(source_cluster, topic, [written, Record(None, b"key", timestamp_ms=5)], partition=1)
    assert end_offset(source_cluster, topic, 0) == 0
    assert read_partition(source_cluster, topic, 1) == [
        written._replace(offset=0),
        Record(None, b"key", timestamp_ms=5, offset=1),
    ]


def test_killed_broker_has_its_address_and_data_when_started_again(tmp_path: Path) -> None:
    with start_cluster("killed", folder=tmp_path / "killed") as cluster:
        (broker,) = cluster.brokers
        topic = create_topic(cluster)
        produce(cluster, topic, [b"kept"])
        before = broker.pid
        broker.kill()
        assert not pid_is_alive(before)
        assert broker.ask() is None
        broker.start()
        broker.wait_ready()
        assert broker.pid != before
        assert [record.value for record in read_partition(cluster, topic)] == [b"kept"]
    assert not (tmp_path / "killed").exists()


def _known_nodes(cluster: KafkaCluster) -> list[tuple[int, ...]]:
    responses = [broker.ask() for broker in cluster.brokers]
    return [response.node_ids if response else () for response in responses]


def test_three_brokers_form_one_cluster_and_outlive_the_loss_of_one() -> None:
    with start_cluster("three", brokers=3) as cluster:
        wait_for(
            lambda: _known_nodes(cluster) == [(1, 2, 3)] * 3,
            within=30,
            describe=lambda: f"three that know each other: {_known_nodes(cluster)}",
        )
        topic = create_topic(cluster, replication_factor=3)
        cluster.brokers[0].kill()
        produce(cluster, topic, [b"still accepted"])
        assert end_offset(cluster, topic) == 1


def test_paused_broker_does_not_respond_until_it_is_resumed(target_cluster: KafkaCluster) -> None:
    (broker,) = target_cluster.brokers
    broker.pause()
    try:
        assert broker.ask() is None
    finally:
        broker.resume()
    broker.wait_ready(within=20)


def test_brokers_die_when_their_parent_is_killed(tmp_path: Path) -> None:
    program = """
        import sys, time
        from pathlib import Path
        from tests.clusters import start_cluster
        cluster = start_cluster("orphan", folder=Path(sys.argv[1])).start()
        print(*cluster.pids, flush=True)
        time.sleep(600)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 1
        assert all(pid_is_alive(pid) for pid in pids)
        parent.send_signal(signal.SIGKILL)
    wait_for(
        lambda: not any(pid_is_alive(pid) for pid in pids),
        within=10,
        describe=f"end of brokers {pids}",
    )


@pytest.mark.parametrize("brokers", [0, 4])
def test_cluster_rejects_an_unsupported_size(brokers: int) -> None:
    with pytest.raises(ConfigError, match="1 to 3"):
        KafkaCluster("size", brokers=brokers)
