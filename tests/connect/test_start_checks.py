"""Mistakes that no single value shows, found before a connector starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.connector_spec import ConnectorConfig, parse_connector
from sparkmirror.connect import start_checks
from sparkmirror.connect.start_checks import (
    Facts,
    Partners,
    check_on_worker,
    planned_topics,
    policy_problem,
    replica_problems,
)
from tests.connect.herder_fakes import CONFIG, FakeConfigs, worker_file

MIRROR = "org.apache.kafka.connect.mirror."
IDENTITY = f"{MIRROR}IdentityReplicationPolicy"
SETTINGS = {
    "Source": {"offset-syncs.topic.location": "target"},
    "Checkpoint": {},
    "Heartbeat": {},
}


def settings(kind: str, **more: str) -> dict[str, str | None]:
    given = {key.replace("__", "-").replace("_", "."): value for key, value in more.items()}
    own = {"name": kind.lower(), "connector.class": f"{MIRROR}Mirror{kind}Connector"}
    return {**CONFIG, **SETTINGS[kind], **own, **given}


def config_of(folder: Path, kind: str, **more: str) -> ConnectorConfig:
    return parse_connector(settings(kind, **more), worker_file(folder)).config


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (
            "Source",
            [
                "offset.storage.replication.factor",
                "offset-syncs.topic.replication.factor",
            ],
        ),
        (
            "Checkpoint",
            ["offset.storage.replication.factor", "checkpoints.topic.replication.factor"],
        ),
        ("Heartbeat", ["offset.storage.replication.factor", "heartbeats.topic.replication.factor"]),
    ],
)
def test_more_replicas_than_brokers_are_found(tmp_path: Path, kind: str, keys: list[str]) -> None:
    worker = worker_file(tmp_path).worker
    planned = planned_topics(config_of(tmp_path, kind), worker)
    found = replica_problems(planned, lambda _: Facts(1, frozenset()))
    assert {setting for (setting, _), _ in found} == set(keys)
    assert all("has 1 broker; set" in text for _, text in found)
    # All but positions are kept with fewer replicas then; heartbeats have none.
    strict = [topic for (_, topic), text in found if not text.startswith("warning: ")]
    assert strict == ([] if kind == "Heartbeat" else [worker.offset_storage_topic])
    assert [text for _, text in found if "gets 1 instead of 3 replicas" in text] != []
    assert replica_problems(planned, lambda _: Facts(3, frozenset())) == []
    # Of a cluster that says nothing, nothing is known.
    assert replica_problems(planned, lambda _: None) == []


def test_topics_that_are_there_are_not_created(tmp_path: Path) -> None:
    worker = worker_file(tmp_path).worker
    planned = planned_topics(config_of(tmp_path, "Heartbeat"), worker)
    there = frozenset({"heartbeats", worker.offset_storage_topic})
    assert replica_problems(planned, lambda _: Facts(1, there)) == []


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Source", {"enabled": "false"}),
        ("Checkpoint", {"emit_checkpoints_enabled": "false"}),
        ("Heartbeat", {"emit_heartbeats_enabled": "false"}),
    ],
)
def test_what_is_off_creates_nothing(tmp_path: Path, kind: str, more: dict[str, str]) -> None:
    config = config_of(tmp_path, kind, **more)
    assert planned_topics(config, worker_file(tmp_path).worker) == []


def test_partners_with_different_policies_are_found(tmp_path: Path) -> None:
    source = config_of(tmp_path, "Source")
    for more in ({"replication_policy_class": IDENTITY}, {"replication_policy_separator": "_"}):
        other = config_of(tmp_path, "Checkpoint", **more)
        problem = policy_problem(other, [source])
        assert (
            "connector source of the same flow: checkpoints would name topics that do not exist"
        ) in problem
        assert "connector checkpoint of the same flow" in policy_problem(source, [other])
    assert policy_problem(config_of(tmp_path, "Checkpoint"), [source]) == ""


def test_only_partners_of_the_same_flow_are_compared(tmp_path: Path) -> None:
    checkpoint = config_of(tmp_path, "Checkpoint", replication_policy_class=IDENTITY)
    elsewhere = config_of(tmp_path, "Source", source_cluster_alias="another")
    heartbeat = config_of(tmp_path, "Heartbeat")
    assert policy_problem(checkpoint, [elsewhere, heartbeat, checkpoint]) == ""
    assert policy_problem(heartbeat, [checkpoint]) == ""


def test_one_source_connector_with_the_same_policy_is_enough(tmp_path: Path) -> None:
    checkpoint = config_of(tmp_path, "Checkpoint")
    sources = [
        config_of(tmp_path, "Source", name="identity", replication_policy_class=IDENTITY),
        config_of(tmp_path, "Source", name="default"),
    ]
    assert policy_problem(checkpoint, sources[:1]) != ""
    assert policy_problem(checkpoint, sources) == ""


def test_a_partner_that_comes_or_changes_later_is_compared_too(tmp_path: Path) -> None:
    configs = FakeConfigs()
    partners = Partners(configs, worker_file(tmp_path))
    checkpoint = config_of(tmp_path, "Checkpoint")
    assert partners.problem_of(checkpoint) == ""
    other = settings("Source", replication_policy_class=IDENTITY)
    configs.put_connector("source", other)
    assert "'a.orders' on 'b', but 'orders' for connector source" in partners.problem_of(checkpoint)
    configs.put_connector("source", settings("Source"))
    assert partners.problem_of(checkpoint) == ""


def test_a_worker_is_asked_about_its_own_cluster_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ClientConfig] = []

    def look_at(client: ClientConfig) -> Facts:
        asked.append(client)
        return Facts(1, frozenset())

    monkeypatch.setattr(start_checks, "_look_at", look_at)
    worker = worker_file(tmp_path)
    elsewhere = {
        "offset__syncs_topic_location": "source",
        "source_cluster_bootstrap_servers": "h:8",
        "target_cluster_bootstrap_servers": "h:9",
    }
    found = check_on_worker(settings("Source", **elsewhere), worker, {})
    assert {client.bootstrap_servers for client in asked} == {
        worker.worker.client.bootstrap_servers
    }
    assert sorted(found) == ["offset.storage.replication.factor"]


def test_a_connector_is_not_compared_with_itself(tmp_path: Path) -> None:
    worker = worker_file(tmp_path)
    source = settings("Source")
    checkpoint = settings("Checkpoint", replication_policy_class=IDENTITY)
    broken: dict[str, str | None] = {"connector.class": "x"}
    running = {"source": source, "broken": broken}
    assert sorted(check_on_worker(checkpoint, worker, running)) == ["replication.policy.class"]
    assert check_on_worker(settings("Source", name="source"), worker, {"source": source}) == {}
