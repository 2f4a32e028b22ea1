"""The recorded exchanges of a genuine worker, replayed on a worker of ours."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import store_properties
from sparkmirror.embedded.ports import ReservedPort
from sparkmirror.embedded.process import log_tail, start_child
from tests.clusters import create_topic, produce, read_partition, start_clusters, wait_for
from tests.golden_rest.exchange import load_exchanges
from tests.golden_rest.odd_requests import load_odd_requests, send
from tests.golden_rest.replay import Masks, replay
from tests.kafka.test_checkpoints import commit

pytestmark = pytest.mark.kafka

KINDS = ("Source", "Checkpoint", "Heartbeat")
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
_PARTITIONS = 5
SOURCE, CHECKPOINT, HEARTBEAT = (f"a->b.Mirror{kind}Connector" for kind in KINDS)
OFFSETS = {
    json.dumps(row, sort_keys=True)
    for row in (
        [SOURCE, {"cluster": "a", "partition": 0, "topic": "ho-t1"}, 99],
        [SOURCE, {"cluster": "a", "partition": 1, "topic": "ho-t1"}, 99],
        [SOURCE, {"cluster": "a", "partition": 0, "topic": "heartbeats"}, 0],
        [CHECKPOINT, {"group": "ho-g1", "partition": 0, "topic": "a.ho-t1"}, 0],
        [CHECKPOINT, {"group": "ho-g1", "partition": 1, "topic": "a.ho-t1"}, 0],
        [HEARTBEAT, {"sourceClusterAlias": "a", "targetClusterAlias": "b"}, 0],
    )
}
TOPICS = {
    f"status-topic-{topic}:connector-{name}"
    for topic, name in (
        ("a.ho-t1", SOURCE),
        ("a.heartbeats", SOURCE),
        ("a.checkpoints.internal", CHECKPOINT),
        ("heartbeats", HEARTBEAT),
    )
}
_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"


def test_worker_answers_as_a_genuine_one(tmp_path: Path) -> None:
    with start_clusters("golden-source", "golden-target") as (source, target):
        _fill(source)
        with _worker(tmp_path, target) as address:
            masks = Masks(
                {
                    "source-kafka:9092": source.bootstrap_servers,
                    "target-kafka:9092": target.bootstrap_servers,
                },
                worker=address,
            )
            odd = _odd_differences(f"http://{address}")
            exchanges = load_exchanges()
            differences = replay(f"http://{address}", exchanges, masks, lambda: _unsettled(target))
    assert odd == []
    assert len(exchanges) == 113
    assert [str(difference) for difference in differences] == []


def _unsettled(target: KafkaCluster) -> list[str]:
    """What Connect's topics lack, or have too much, when three connectors have copied `_fill`."""
    offsets = {
        json.dumps([*json.loads(key), json.loads(value)["offset"]], sort_keys=True)
        for key, value in _newest(target, "connect-offset").items()
    }
    topics = {key for key in _newest(target, "connect-status") if key.startswith("status-topic-")}
    return sorted((offsets ^ OFFSETS) | (topics ^ TOPICS))


def _newest(target: KafkaCluster, topic: str) -> dict[str, bytes]:
    records = [record for at in range(_PARTITIONS) for record in read_partition(target, topic, at)]
    return {(record.key or b"").decode(): record.value or b"" for record in records}


def _odd_differences(base_url: str) -> list[str]:
    """Bad requests, while the worker has no connectors."""
    responses = [(odd, send(base_url, odd.data)) for odd in load_odd_requests()]
    return [
        f"{odd.name}: expected {odd.answer}, found {found}"
        for odd, found in responses
        if found != odd.answer
    ]


def _fill(source: KafkaCluster) -> None:
    """What the genuine worker's source cluster held; see README.md."""
    create_topic(source, "ho-t1", partitions=2)
    create_topic(source, "heartbeats")
    for partition in (0, 1):
        produce(source, "ho-t1", [b"value"] * 100, partition=partition)
    produce(source, "heartbeats", [b"beat"])
    commit(source, "ho-g1", "ho-t1", {0: 50, 1: 50})


@contextmanager
def _worker(folder: Path, target: KafkaCluster) -> Iterator[str]:
    """A worker process; its address, host and port."""
    file, log_path = folder / "connect-distributed.properties", folder / "worker.log"
    with ReservedPort() as port:
        address = f"127.0.0.1:{port.number}"
        store_properties(file, _properties(address, target))
        child = start_child(
            [sys.executable, "-m", "sparkmirror.cli.main", "worker", file], log_path
        )
        try:
            wait_for(
                lambda: _is_healthy(address),
                within=_START_SECONDS,
                describe=lambda: f"the worker; its log ends:\n{log_tail(log_path, 40)}",
            )
            yield address
        finally:
            child.stop(_STOP_SECONDS)


def _properties(address: str, target: KafkaCluster) -> dict[str, str]:
    topics = {f"{kind}.storage.topic": f"connect-{kind}" for kind in _STORES}
    copies = {f"{kind}.storage.replication.factor": "1" for kind in _STORES}
    return {
        "bootstrap.servers": target.bootstrap_servers,
        "group.id": "golden",
        "listeners": f"http://{address}",
        "key.converter": _CONVERTER,
        "value.converter": _CONVERTER,
        "offset.flush.interval.ms": "1000",
        "offset.storage.partitions": str(_PARTITIONS),
        "status.storage.partitions": str(_PARTITIONS),
        **topics,
        **copies,
    }


_STORES = ("config", "offset", "status")


def _is_healthy(address: str) -> bool:
    try:
        return httpx.get(f"http://{address}/health", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
