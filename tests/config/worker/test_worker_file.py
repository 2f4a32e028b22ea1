"""Files of workers: those that users have, and those with mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.keys.group_keys import GroupConfig
from sparkmirror.config.worker.rest_keys import Listener
from sparkmirror.config.worker.worker_file import WorkerFile, load_worker
from sparkmirror.errors import ConfigErrors
from tests.config.worker_files import SMALLEST, worker_file, worker_with

CENTRAL = """\
bootstrap.servers=target-1:9092,target-2:9092
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
internal.key.converter=org.apache.kafka.connect.json.JsonConverter
internal.value.converter=org.apache.kafka.connect.json.JsonConverter
internal.key.converter.schemas.enable=false
internal.value.converter.schemas.enable=false
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
offset.flush.interval.ms=10000
rest.port=8083
"""


def load(folder: Path, text: str) -> WorkerFile:
    path = folder / "connect-distributed.properties"
    path.write_text(text, "ascii")
    return load_worker(path)


def test_file_of_a_central_cluster(tmp_path: Path) -> None:
    file = load(tmp_path, CENTRAL)
    assert file.worker.bootstrap_servers == ("target-1:9092", "target-2:9092")
    assert file.worker.offset_storage_topic == "connect-offsets"
    assert file.worker.status_storage_replication_factor == 1
    assert file.worker.offset_flush_interval_ms == 10000
    assert file.rest.listeners == (Listener("http", "", 8083),)
    assert file.group == GroupConfig("connect-cluster", 10000, 3000, 60000)
    assert file.override.name == "All"
    assert (file.topic_tracking, file.topic_tracking_reset) == (True, True)
    messages = [warning.split(": ")[1] for warning in file.warnings]
    assert messages == [
        "key.converter",
        "value.converter",
        "internal.key.converter",
        "internal.key.converter.schemas.enable",
        "internal.value.converter",
        "internal.value.converter.schemas.enable",
        "key.converter.schemas.enable",
        "value.converter.schemas.enable",
        "rest.port",
    ]


def test_quotes_are_part_of_a_value_as_in_java(tmp_path: Path) -> None:
    file = load(tmp_path, CENTRAL.replace("=connect-cluster", '="quickstart"'))
    assert file.group.group_id == file.worker.group_id == '"quickstart"'
    assert any(
        'group.id: the quotes are part of the value, as in Java: "quickstart"' in text
        for text in file.warnings
    )


def test_keys_that_an_mm2_file_ignores_have_an_effect_here() -> None:
    file = worker_file(
        session_timeout_ms="20000",
        heartbeat_interval_ms="2000",
        rebalance_timeout_ms="30000",
        listeners="http://h:1",
        topic_tracking_enable="false",
        topic_tracking_allow_reset="false",
    )
    assert file.group == GroupConfig("connect-cluster", 20000, 2000, 30000)
    assert file.rest.listeners == (Listener("http", "h", 1),)
    assert (file.topic_tracking, file.topic_tracking_reset) == (False, False)
    assert file.warnings == ()


def test_producer_has_its_own_security_and_the_workers_servers() -> None:
    file = worker_with({"producer.acks": "1", "client.id": "w"})
    assert file.worker.producer.acks == 1
    assert file.worker.producer.client.bootstrap_servers == ("target-kafka:9092",)
    assert file.worker.client_id == "w"


def test_spark_settings_are_handed_on() -> None:
    assert worker_with({"spark.master": "local[2]"}).spark == {"spark.master": "local[2]"}


def test_placeholders_are_resolved(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("servers=h:1\n", "ascii")
    file = worker_with(
        {
            "config.providers": "file",
            "config.providers.file.class": (
                "org.apache.kafka.common.config.provider.FileConfigProvider"
            ),
            "bootstrap.servers": f"${{file:{secrets}:servers}}",
        }
    )
    assert file.worker.bootstrap_servers == ("h:1",)
    assert file.props["bootstrap.servers"] == "h:1"
    assert file.raw_props["bootstrap.servers"].startswith("${file:")
    assert list(file.providers) == ["file"]


def test_all_errors_come_at_once(tmp_path: Path) -> None:
    text = "listeners=ftp://:1\nsession.timeout.ms=x\nheartbeat.interval.ms=20000\ngroup.id=\n"
    with pytest.raises(ConfigErrors) as raised:
        load(tmp_path, text)
    assert [error.key for error in raised.value.errors] == [
        "group.id",
        "offset.storage.topic",
        "config.storage.topic",
        "status.storage.topic",
        "session.timeout.ms",
        "listeners",
        "bootstrap.servers",
        "heartbeat.interval.ms",
    ]
    assert all(
        error.where.endswith("connect-distributed.properties") for error in raised.value.errors
    )


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("exactly.once.source.support", "enabled", "exactly once is not in this version yet"),
        ("security.protocol", "TLS", "not one of the allowed values"),
        ("producer.security.protocol", "tls", "not one of the allowed values"),
        ("heartbeat.interval.ms", "10000", "not less than session.timeout.ms (10000)"),
        ("topic.tracking.enable", "maybe", "neither true nor false"),
    ],
)
def test_bad_setting_is_an_error(key: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigErrors) as raised:
        worker_with({key: value})
    assert [error.key for error in raised.value.errors] == [key]
    assert raised.value.errors[0].reason.startswith(reason)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("plugin.path", "has no effect: there are no Java plugins to load"),
        (
            "scheduled.rebalance.max.delay.ms",
            "has no effect: workers share tasks by their own protocol",
        ),
        ("config.storage.topics", "is used as a setting of that topic; did you mean config.st"),
        ("consumer.fetch.min.bytes", "has no effect, like every consumer.* here: it is for sink"),
        ("admin.retries", "has no effect, like every admin.* here: it is for sink connectors"),
        (
            "metrics.context.x",
            "has no effect: there is no JMX here; /metrics has the metrics (docs/metrics.md)",
        ),
        ("topic.creation.default.partitions", "has no effect: remote topics are created like"),
        ("group.idd", "unknown key, ignored; did you mean group.id?"),
        ("frobnicate", "unknown key, ignored"),
    ],
)
def test_key_without_effect_is_reported(key: str, text: str) -> None:
    (warning,) = worker_with({key: "1"}).warnings
    assert f": {key}: {text}" in warning


@pytest.mark.parametrize(
    "key",
    [
        "ssl.truststore.password",
        "config.storage.min.insync.replicas",
    ],
)
def test_known_families_are_not_reported(key: str) -> None:
    assert worker_with({key: "1"}).warnings == ()


def test_secrets_are_not_shown() -> None:
    file = worker_with({"sasl.jaas.config": '"hunter2"', "producer.sasl.jaas.config": "hunter2"})
    assert "hunter2" not in repr(file)
    assert "hunter2" not in "".join(file.warnings)
    assert file.props.keys() > SMALLEST.keys()
