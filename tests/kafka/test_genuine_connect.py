"""A genuine Connect worker and our stores on the same topics: each reads what the other wrote."""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.group.session_keys import SessionKey
from sparkmirror.connect.storage.backing_stores import StoredStatus
from sparkmirror.connect.storage.config_backing_store import KafkaConfigBackingStore
from sparkmirror.connect.storage.config_records import session_key_record
from sparkmirror.connect.storage.status_backing_store import KafkaStatusBackingStore
from sparkmirror.connect.storage.storage_topics import StorageTopic
from sparkmirror.connect.storage.stored_offsets import ConnectorOffsets
from sparkmirror.embedded import KAFKA_VERSION, ConnectWorker, KafkaCluster
from sparkmirror.embedded.java import QUICK_JVM_ARGS
from sparkmirror.embedded.process import log_tail
from tests.clusters import create_topic, read_partition, unique_name, wait_for

pytestmark = pytest.mark.kafka

OURS, THEIRS = 'ours->b "\u00e4" \U0001f600', "theirs-1"
PARTITION = {"cluster": "a", "partition": 3, "topic": "t"}
OFFSET_PARTITIONS = 3


class World:
    """The three topics, our stores on them, and what a connector is told."""

    def __init__(self, cluster: KafkaCluster) -> None:
        client = ClientConfig("b", tuple(cluster.bootstrap_servers.split(",")))
        self.group = unique_name("group")
        self.config_topic, self.status_topic = unique_name("config"), unique_name("status")
        compacted = {"cleanup.policy": "compact"}
        self.offset_topic = create_topic(cluster, partitions=OFFSET_PARTITIONS, config=compacted)
        self.configs = KafkaConfigBackingStore(
            client, StorageTopic("config", self.config_topic, 1, 1), group_id=self.group
        )
        self.statuses = KafkaStatusBackingStore(
            client, StorageTopic("status", self.status_topic, 2, 1)
        )
        self.offsets = ConnectorOffsets(client, self.offset_topic, OFFSET_PARTITIONS)
        self.common = {
            "source.cluster.alias": "a",
            "target.cluster.alias": "b",
            "source.cluster.bootstrap.servers": cluster.bootstrap_servers,
            "target.cluster.bootstrap.servers": cluster.bootstrap_servers,
            "heartbeats.topic.replication.factor": "1",
            "replication.factor": "1",
        }

    def worker_properties(self, servers: str) -> dict[str, str]:
        return {
            "bootstrap.servers": servers,
            "group.id": self.group,
            "config.storage.topic": self.config_topic,
            "status.storage.topic": self.status_topic,
            "offset.storage.topic": self.offset_topic,
            "offset.flush.interval.ms": "500",
        }


@pytest.fixture
def world(target_cluster: KafkaCluster) -> Iterator[World]:
    found = World(target_cluster)
    with ExitStack() as stack:
        stack.callback(found.configs.stop)
        stack.callback(found.statuses.stop)
        found.configs.start()
        found.statuses.start()
        yield found


def test_each_reads_what_the_other_wrote(
    world: World, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    source = {
        **world.common,
        "name": OURS,
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "odd": '"\u00e4"\\ \U0001f600\n',
    }
    world.configs.put_connector(OURS, source, "STOPPED")
    world.configs.put_tasks(OURS, [])
    world.statuses.put_connector(OURS, StoredStatus("STOPPED", "w:1", 1, None, "4.3.1"))
    world.offsets.write(OURS, [(PARTITION, {"offset": 41})])
    key = SessionKey(b"k" * 32, "HmacSHA256", int(time.time() * 1000))
    world.configs.put_session_key(key)
    properties = world.worker_properties(target_cluster.bootstrap_servers)
    with ConnectWorker(properties, tmp_path, jvm_args=QUICK_JVM_ARGS) as genuine:
        path = f"/connectors/{quote(OURS, safe='')}"
        assert genuine.request("GET", "/connectors") == (200, [OURS])
        assert genuine.request("GET", f"{path}/config") == (200, source)
        status, body = genuine.request("GET", f"{path}/status")
        assert (status, body["connector"]["state"], body["tasks"]) == (200, "STOPPED", [])
        rows = [{"partition": PARTITION, "offset": {"offset": 41}}]
        assert genuine.request("GET", f"{path}/offsets") == (200, {"offsets": rows})
        _let_it_write(genuine, path, world)
        _check_that_we_read_it(genuine, world)
        _check_session_keys(genuine, world, key, target_cluster)
    keys = {
        record.key
        for at in range(OFFSET_PARTITIONS)
        for record in read_partition(target_cluster, world.offset_topic, at)
        if (record.key or b"").startswith(b'["ours')
    }
    assert len(keys) == 1, "its key has other bytes than ours"


def _let_it_write(genuine: ConnectWorker, path: str, world: World) -> None:
    changed: dict[str, Any] = {"partition": dict(reversed(PARTITION.items()))}
    body = {"offsets": [{**changed, "offset": {"offset": 99}}]}
    status, response = genuine.request("PATCH", f"{path}/offsets", body)
    assert status == 200, response
    heartbeat = {**world.common, "connector.class": "MirrorHeartbeat"}
    created = {"name": THEIRS, "config": heartbeat}
    assert genuine.request("POST", "/connectors", created)[0] == 201
    wait_for(
        lambda: _states(genuine) == ["RUNNING", "RUNNING"],
        within=60,
        describe=lambda: log_tail(genuine.log_path),
    )


def _check_session_keys(
    genuine: ConnectWorker, world: World, key: SessionKey, cluster: KafkaCluster
) -> None:
    """It accepts signatures with our key, and the key that it writes has the bytes of ours."""
    assert list(world.configs.session_keys()) == [key], "it has replaced our key"
    assert _signed_status(genuine, key) not in (400, 403)
    assert _signed_status(genuine, replace(key, key=b"other" * 8)) == 403
    world.configs.put_session_key(replace(key, key=b"small" * 2))

    def is_replaced() -> bool:
        # It looks at the key when it has something to do.
        genuine.request("PUT", f"/connectors/{quote(OURS, safe='')}/stop")
        return len(world.configs.session_keys()[0].key) == 32

    wait_for(is_replaced, within=20)
    rows = [(row.key, row.value) for row in read_partition(cluster, world.config_topic, 0)]
    assert session_key_record(world.configs.session_keys()[0]) in rows


def _signed_status(genuine: ConnectWorker, key: SessionKey) -> int:
    """Of a request as genuine workers send them: its body is signed."""
    signature = base64.b64encode(hmac.digest(key.key, b"[]", "sha256")).decode()
    headers = {
        "Content-Type": "application/json",
        "X-Connect-Authorization": signature,
        "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
    }
    url = f"{genuine.url}/connectors/{THEIRS}/fence?forward=false"
    return httpx.put(url, content=b"[]", headers=headers, timeout=30, trust_env=False).status_code


def _states(genuine: ConnectWorker) -> list[str]:
    status, body = genuine.request("GET", f"/connectors/{THEIRS}/status")
    if status != 200:
        return []
    return [body["connector"]["state"], *(task["state"] for task in body["tasks"])]


def _check_that_we_read_it(genuine: ConnectWorker, world: World) -> None:
    configs, statuses, offsets = world.configs, world.statuses, world.offsets
    restarts: list[tuple[str, bool, bool]] = []
    configs.on_restart(lambda *restart: restarts.append(restart))
    configs.refresh()
    _, info = genuine.request("GET", f"/connectors/{THEIRS}")
    _, tasks = genuine.request("GET", f"/connectors/{THEIRS}/tasks")
    found = configs.snapshot()
    assert found.connectors[THEIRS] == info["config"]
    assert list(found.tasks[THEIRS]) == [task["config"] for task in tasks]
    assert found.target_states == {OURS: "STOPPED", THEIRS: "STARTED"}
    worker_id = genuine.url.removeprefix("http://")
    wait_for(lambda: statuses.topics(THEIRS) == {"heartbeats"}, within=20)
    for stored in (statuses.connector(THEIRS), statuses.tasks(THEIRS)[0]):
        assert stored is not None
        assert (stored.state, stored.worker_id, stored.trace) == ("RUNNING", worker_id, None)
        assert stored.version == KAFKA_VERSION
    assert offsets.list(OURS) == [(PARTITION, {"offset": 99})]
    aliases = {"sourceClusterAlias": "a", "targetClusterAlias": "b"}
    wait_for(lambda: offsets.list(THEIRS) == [(aliases, {"offset": 0})], within=20)
    genuine.request("POST", f"/connectors/{THEIRS}/restart?includeTasks=true")
    wait_for(lambda: restarts == [(THEIRS, True, False)], within=20)
    genuine.request("PUT", "/admin/loggers/org.x?scope=cluster", {"level": "DEBUG"})
    wait_for(lambda: configs.snapshot().loggers == {"org.x": "DEBUG"}, within=20)
    assert genuine.request("DELETE", f"/connectors/{THEIRS}")[0] == 204
    wait_for(lambda: list(configs.snapshot().connectors) == [OURS], within=20)
    wait_for(lambda: statuses.connector(THEIRS) is None, within=20)
