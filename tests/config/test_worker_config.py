"""The settings of a worker."""

from __future__ import annotations

import pytest

from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.keys.group_keys import GroupConfig
from sparkmirror.config.worker_config import parse_worker

PROPS = {
    "bootstrap.servers": "h:1,i:2",
    "client.id": "A->B",
    "group.id": "A-mm2",
    "offset.storage.topic": "o",
    "config.storage.topic": "c",
    "status.storage.topic": "s",
}


def test_worker_has_connects_defaults() -> None:
    worker = parse_worker(Settings(PROPS, Findings()), "B")
    assert worker.bootstrap_servers == worker.client.bootstrap_servers == ("h:1", "i:2")
    assert worker.producer.client.bootstrap_servers == ("h:1", "i:2")
    assert (worker.client_id, worker.group_id) == ("A->B", "A-mm2")
    assert worker.offset_storage_topic == "o"
    assert (worker.offset_storage_partitions, worker.offset_storage_replication_factor) == (25, 3)
    assert (worker.offset_flush_interval_ms, worker.offset_flush_timeout_ms) == (60000, 5000)
    assert worker.task_shutdown_graceful_timeout_ms == 5000
    assert worker.exactly_once_source_support == "disabled"


def test_group_has_the_times_that_were_set() -> None:
    times = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
    worker = parse_worker(Settings(PROPS | times, Findings()), "B")
    assert worker.group == GroupConfig("A-mm2", 6000, 500, 60000)


def test_heartbeat_must_be_shorter_than_a_session() -> None:
    settings = Settings(PROPS | {"session.timeout.ms": "3000"}, Findings())
    parse_worker(settings, "B")
    assert [error.key for error in settings.findings.errors] == ["heartbeat.interval.ms"]


def test_workers_producer_takes_its_prefix() -> None:
    props = PROPS | {"producer.acks": "1", "acks": "0"}
    assert parse_worker(Settings(props, Findings()), "B").producer.acks == 1


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("exactly.once.source.support", "enabled", "exactly once is not in this version yet"),
        ("exactly.once.source.support", "ENABLED", "exactly once is not in this version yet"),
        ("exactly.once.source.support", "on", "not one of the allowed values"),
        ("offset.storage.partitions", "many", "not a number of type INT"),
        ("offset.storage.replication.factor", "40000", "not a number of type SHORT"),
        ("offset.flush.interval.ms", "-1", "out of range"),
        ("offset.storage.topic", " ", "is empty"),
        ("bootstrap.servers", "h:1,h", "'h' is not host:port"),
    ],
)
def test_bad_worker_setting_is_an_error(name: str, value: str, reason: str) -> None:
    settings = Settings(PROPS | {name: value}, Findings())
    parse_worker(settings, "B")
    assert [error.key for error in settings.findings.errors] == [name]
    assert settings.findings.errors[0].reason.startswith(reason)


def test_missing_worker_settings_are_errors() -> None:
    settings = Settings({}, Findings())
    parse_worker(settings, "B")
    assert [error.key for error in settings.findings.errors] == [
        "group.id",
        "offset.storage.topic",
        "config.storage.topic",
        "status.storage.topic",
        "bootstrap.servers",
    ]


@pytest.mark.parametrize("name", ["rest.port", "connect.protocol", "plugin.path"])
def test_worker_key_without_effect_is_accepted(name: str) -> None:
    settings = Settings(PROPS | {name: "1"}, Findings())
    parse_worker(settings, "B")
    assert settings.findings.errors == ()
    assert settings.findings.warnings[0].startswith(f"{name}: has no effect: ")


def test_other_storage_keys_are_settings_of_that_topic() -> None:
    props = PROPS | {
        "offset.storage.min.insync.replicas": "2",
        "offset.storage.partitions": "7",
        "status.storage.replication.factor": "1",
        "status.storage.segment.bytes": "1000",
    }
    settings = Settings(props, Findings())
    worker = parse_worker(settings, "B")
    assert worker.storage_settings == {
        "offset": {"min.insync.replicas": "2"},
        "config": {},
        "status": {"segment.bytes": "1000"},
    }
    assert settings.findings.warnings == ()


@pytest.mark.parametrize("name", ["offset.storage.cleanup.policy", "config.storage.partitions"])
def test_storage_key_that_would_break_the_topic_is_explained(name: str) -> None:
    settings = Settings(PROPS | {name: "3"}, Findings())
    worker = parse_worker(settings, "B")
    assert settings.findings.warnings[0].startswith(f"{name}: has no effect: ")
    assert not any(worker.storage_settings.values())
