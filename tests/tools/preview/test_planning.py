"""Which topics a plan has, over several clusters and for every kind of file; no brokers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import ConfigError, KafkaError, TransportError
from sparkmirror.tools.preview import planning
from sparkmirror.tools.preview.planned_file import load_planned
from sparkmirror.tools.preview.planning import plan_file
from tests.tools.preview.test_rehearsed_cluster import ValidatingAdmin, own

CHAIN = """\
clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->B.enabled = true
B->C.enabled = true
emit.heartbeats.enabled = false
A->B.emit.heartbeats.enabled = true
"""
WORKER = """\
bootstrap.servers = b:1
group.id = g
offset.storage.topic = offsets
config.storage.topic = configs
status.storage.topic = statuses
offset.storage.partitions = 7
"""
CONNECTOR = {
    "name": "n",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}


class Clusters:
    """Fakes by address; one that is `down` cannot be reached."""

    def __init__(self) -> None:
        self.fakes: dict[str, ValidatingAdmin] = {}
        self.down: set[str] = set()

    def connect(self, client: ClientConfig, timeout_ms: int) -> ValidatingAdmin:
        assert timeout_ms > 0
        (address,) = client.bootstrap_servers
        if address in self.down:
            raise TransportError(f"{address} is down")
        return self.at(address)

    def at(self, address: str) -> ValidatingAdmin:
        return self.fakes.setdefault(address, ValidatingAdmin())


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    found = Clusters()
    monkeypatch.setattr(planning, "GroupAdmin", found.connect)
    monkeypatch.setattr(planning, "preview_groups", lambda *_: {})
    return found


def write(tmp_path: Path, text: str, name: str = "file.properties") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def created(plan: Mapping[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in plan["changes"]:
        assert (row["action"], row["kind"]) == ("create", "topic")
        found.setdefault(row["cluster"], set()).add(row["name"])
    return found


def test_what_one_flow_creates_the_next_flow_copies(clusters: Clusters, tmp_path: Path) -> None:
    source = clusters.at("a:1")
    source.add("orders", 3)
    source.settings["orders"] = [own("cleanup.policy", "compact")]
    plan = plan_file(load_planned(write(tmp_path, CHAIN))).as_json()
    found = created(plan)
    assert "mm2-offset-syncs.B.internal" in found["A"]
    assert {"A.orders", "heartbeats", "A.checkpoints.internal"} <= found["B"]
    assert {"B.A.orders", "B.heartbeats", "B.checkpoints.internal"} <= found["C"]
    (last,) = [row for row in plan["changes"] if row["name"] == "B.A.orders"]
    assert (last["partitions"], last["configs"]) == (3, {"cleanup.policy": "compact"})
    assert {name for fake in clusters.fakes.values() for name in fake.topics} == {"orders"}
    assert all(fake.closed for fake in clusters.fakes.values())


def test_flows_into_one_cluster_only(clusters: Clusters, tmp_path: Path) -> None:
    clusters.at("a:1").add("orders")
    plan = plan_file(load_planned(write(tmp_path, CHAIN), clusters=("B",)))
    assert plan.flows == ("A->B",)
    assert "c:1" not in clusters.fakes


def test_all_clusters_that_cannot_be_reached_are_named(clusters: Clusters, tmp_path: Path) -> None:
    clusters.down |= {"a:1", "c:1"}
    with pytest.raises(KafkaError, match="a:1 is down\nc:1 is down"):
        plan_file(load_planned(write(tmp_path, CHAIN)))
    assert clusters.at("b:1").closed


def test_a_workers_file_has_its_three_topics(clusters: Clusters, tmp_path: Path) -> None:
    plan = plan_file(load_planned(write(tmp_path, WORKER))).as_json()
    shapes = {row["name"]: row["partitions"] for row in plan["changes"]}
    assert shapes == {"configs": 1, "offsets": 7, "statuses": 5}
    assert clusters.at("b:1").topics == {}


@pytest.mark.parametrize("has_worker", [True, False])
def test_a_connectors_settings(has_worker: bool, clusters: Clusters, tmp_path: Path) -> None:
    clusters.at("a:1").add("orders")
    path = write(tmp_path, json.dumps(CONNECTOR), "n.json")
    worker = write(tmp_path, WORKER) if has_worker else None
    plan = plan_file(load_planned(path, worker)).as_json()
    names = {row["name"] for row in plan["changes"]}
    assert "A.orders" in names
    assert {"configs", "statuses", "offsets"} & names == (
        {"configs", "statuses", "offsets"} if has_worker else set()
    )
    assert any("no worker's file was given" in text for text in plan["warnings"]) is not has_worker


def test_only_a_connector_has_another_worker(tmp_path: Path) -> None:
    worker = write(tmp_path, WORKER, "w.properties")
    with pytest.raises(ConfigError, match="only a connector's settings"):
        load_planned(write(tmp_path, CHAIN), worker)


def test_what_a_run_would_warn_of_is_in_the_plan(clusters: Clusters, tmp_path: Path) -> None:
    clusters.at("a:1").add("x" * 249)
    plan = plan_file(load_planned(write(tmp_path, CHAIN)))
    assert any("its remote name" in text for text in plan.warnings)


def test_a_topic_that_cannot_be_used_is_a_problem(clusters: Clusters, tmp_path: Path) -> None:
    target = clusters.at("b:1")
    target.add("configs", 3)
    plan = plan_file(load_planned(write(tmp_path, WORKER)))
    assert any("the topic has 3 partitions" in text for text in plan.problems)


def test_a_class_of_ones_own_is_not_called(clusters: Clusters, tmp_path: Path) -> None:
    clusters.at("a:1").add("orders")
    own_class = "A->B.forwarding.admin.class = no_such_module:Admin\n"
    plan = plan_file(load_planned(write(tmp_path, CHAIN + own_class)))
    assert any("forwarding.admin.class=no_such_module:Admin" in text for text in plan.warnings)
