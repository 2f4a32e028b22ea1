"""Settings of connectors, as users send them to a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.config.keys.plugins import NoConnectorClass, UnknownConnectorClass
from sparkmirror.config.mirror_configs import CheckpointConfig, HeartbeatConfig, SourceConfig
from sparkmirror.errors import ConfigErrors
from sparkmirror.types import FlowName
from tests.config.worker_files import worker_file, worker_with

MIRROR = "org.apache.kafka.connect.mirror."
CLUSTERS: dict[str, str | None] = {
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "source-kafka:9092",
    "target.cluster.bootstrap.servers": "target-kafka:9092",
}
SOURCE = CLUSTERS | {"name": "msc", "connector.class": f"{MIRROR}MirrorSourceConnector"}
OVERRIDE = "producer.override.bootstrap.servers"


@pytest.mark.parametrize(
    ("connector_class", "kind", "config"),
    [
        (f"{MIRROR}MirrorSourceConnector", "source", SourceConfig),
        ("MirrorCheckpointConnector", "checkpoint", CheckpointConfig),
        ("MirrorHeartbeat", "heartbeat", HeartbeatConfig),
    ],
)
def test_connector_is_of_its_class(connector_class: str, kind: str, config: type) -> None:
    worker = worker_file()
    parsed = parse_connector(CLUSTERS | {"name": "n", "connector.class": connector_class}, worker)
    assert isinstance(parsed.config, config)
    assert (parsed.kind, parsed.name, parsed.flow) == (kind, "n", FlowName("a", "b"))
    assert parsed.worker is worker.worker
    assert parsed.worker_props == worker.props
    assert (parsed.warnings, parsed.elsewhere) == ((), "")


def test_source_of_a_central_cluster() -> None:
    props = SOURCE | {
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "topics": "test",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "replication.factor": "1",
        "replication.policy.class": f"{MIRROR}IdentityReplicationPolicy",
        "tasks.max": "2",
    }
    config = parse_connector(props, worker_file()).config
    assert isinstance(config, SourceConfig)
    assert (config.topics, config.tasks_max, config.replication_factor) == (("test",), 2, 1)
    assert not config.sync_topic_acls_enabled
    assert config.enabled


def smallest(**more: str) -> dict[str, str | None]:
    """The connector that is posted by hand to a worker on the source cluster."""
    return {
        "connector.class": f"{MIRROR}MirrorSourceConnector",
        "name": "test_mirror",
        "source.cluster.alias": "source",
        "topics": "to_replicate",
        "source.cluster.bootstrap.servers": "s:1",
        "target.cluster.bootstrap.servers": "t:1",
        "offset-syncs.topic.replication.factor": "1",
        **more,
    }


def test_records_go_where_the_override_says() -> None:
    worker = worker_with({"bootstrap.servers": "s:1"})
    parsed = parse_connector(smallest(**{OVERRIDE: "t:1"}), worker)
    assert parsed.flow == FlowName("source", "target")
    assert parsed.config.producer.client.bootstrap_servers == ("t:1",)
    assert parsed.worker.client.bootstrap_servers == ("s:1",)
    assert (parsed.elsewhere, parsed.warnings) == ("", ())


def test_records_go_to_the_workers_cluster_without_it_with_a_warning() -> None:
    parsed = parse_connector(smallest(), worker_with({"bootstrap.servers": "s:1"}))
    assert parsed.config.producer.client.bootstrap_servers == ("s:1",)
    assert parsed.elsewhere.startswith("records go to s:1, not to target.cluster.bootstrap.servers")
    assert parsed.elsewhere.endswith("set producer.override.bootstrap.servers=t:1")
    assert parsed.warnings == (f"connector test_mirror: {parsed.elsewhere}",)


def test_one_common_broker_is_the_same_cluster() -> None:
    worker = worker_with({"bootstrap.servers": "t:2,t:1"})
    assert parse_connector(smallest(), worker).elsewhere == ""


@pytest.mark.parametrize("policy", ["None", "Principal", "Allowlist"])
def test_override_that_the_policy_does_not_allow_is_an_error(policy: str) -> None:
    worker = worker_file(connector_client_config_override_policy=policy)
    with pytest.raises(ConfigErrors) as raised:
        parse_connector(smallest(**{OVERRIDE: "t:1"}), worker)
    (error,) = raised.value.errors
    assert error.key == OVERRIDE
    assert error.reason.startswith(f"The '{policy}' policy does not allow 'bootstrap.servers' to")


def test_all_errors_come_at_once() -> None:
    props = SOURCE | {
        "topics": "[",
        "tasks.max": "zero",
        "x": None,
        "source.cluster.bootstrap.servers": None,
    }
    with pytest.raises(ConfigErrors) as raised:
        parse_connector(props, worker_file())
    assert {error.key for error in raised.value.errors} == {
        "topics",
        "tasks.max",
        "x",
        "source.cluster.bootstrap.servers",
    }
    assert {error.where for error in raised.value.errors} == {"connector msc"}


def test_placeholders_are_resolved_and_not_shown(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("topics=hunter2\ntasks=hunter2\n", "ascii")
    worker = worker_with(
        {
            "config.providers": "file",
            "config.providers.file.class": (
                "org.apache.kafka.common.config.provider.FileConfigProvider"
            ),
        }
    )
    topics = {"topics": f"${{file:{secrets}:topics}}"}
    parsed = parse_connector(SOURCE | topics, worker)
    assert isinstance(parsed.config, SourceConfig)
    assert parsed.config.topics == ("hunter2",)
    assert "props" not in repr(parsed)
    with pytest.raises(ConfigErrors) as raised:
        parse_connector(SOURCE | {"tasks.max": f"${{file:{secrets}:tasks}}"}, worker)
    assert "hunter2" not in str(raised.value)


def test_warnings_of_the_worker_are_not_repeated() -> None:
    worker = worker_with({"producer.acks": "0", "producer.linger.ms": "5"})
    assert len(worker.warnings) == 2
    assert parse_connector(SOURCE, worker).warnings == ()
    (warning,) = parse_connector(SOURCE | {"producer.override.acks": "0"}, worker).warnings
    assert warning.startswith("connector msc: producer.override.acks: 0 is treated as 1")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("topcis", "unknown key, ignored; did you mean topics?"),
        ("replication.policy.seperator", "; did you mean replication.policy.separator?"),
        ("source.cluster.sasl.mechanismus", "; did you mean source.cluster.sasl.mechanism?"),
        ("source.consumer.fetch.max.byte", "; did you mean source.consumer.fetch.max.bytes?"),
        ("producer.override.ack", "unknown key, ignored; did you mean producer.override.acks?"),
        ("my.filter.setting", "unknown key, ignored"),
        ("topics.blacklist", "topics.exclude"),
    ],
)
def test_key_that_looks_like_another_is_reported(key: str, text: str) -> None:
    (warning,) = parse_connector(SOURCE | {key: "x"}, worker_file()).warnings
    assert warning.startswith(f"connector msc: {key}: ")
    assert text in warning


@pytest.mark.parametrize(
    "key",
    [
        "groups",
        "use.defaults.from",
        "source.admin.client.id",
    ],
)
def test_key_of_others_is_not_reported(key: str) -> None:
    assert parse_connector(SOURCE | {key: "x"}, worker_file()).warnings == ()


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("transforms.mine.field", "transforms does not name it"),
        ("predicates.mine.type", "there are no transformations to apply them to"),
        ("key.converter.schemas.enable", "records are forwarded byte for byte"),
        ("topic.creation.default.replication.factor", "remote topics are created like their"),
        ("consumer.override.fetch.max.bytes", "it applies to sink connectors, as in Kafka Connect"),
        ("admin.override.client.id", "it applies to sink connectors, as in Kafka Connect"),
        ("config.providers", "placeholders are resolved by the config providers of the worker"),
    ],
)
def test_family_without_effect_is_explained(key: str, reason: str) -> None:
    (warning,) = parse_connector(SOURCE | {key: "x"}, worker_file()).warnings
    assert warning.startswith(f"connector msc: {key}: has no effect: {reason}")


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("producer.acks", "producer.override.acks"),
        ("source.producer.compression.type", "producer.override.compression.type"),
        ("target.producer.delivery.timeout.ms", "producer.override.delivery.timeout.ms"),
        ("target.consumer.fetch.max.bytes", "source.consumer.fetch.max.bytes"),
    ],
)
def test_setting_of_a_client_that_has_no_records_names_the_one_that_has(
    key: str, instead: str
) -> None:
    value = {"producer.acks": "1", "source.producer.compression.type": "zstd"}.get(key, "90000")
    (warning,) = parse_connector(SOURCE | {key: value}, worker_file()).warnings
    assert warning.startswith(f"connector msc: {key}: ")
    assert warning.endswith(f"; write {instead}")


def test_key_that_a_users_class_may_read_is_not_reported() -> None:
    own = {"replication.policy.class": "sparkmirror.mirror.policy:IdentityReplicationPolicy"}
    worker = worker_file(sparkmirror_plugin_modules="sparkmirror.mirror")
    parsed = parse_connector(SOURCE | own | {"my.policy.setting": "x"}, worker)
    assert parsed.warnings == ()


def test_connector_without_a_known_class_is_rejected() -> None:
    with pytest.raises(NoConnectorClass):
        parse_connector(CLUSTERS, worker_file())
    with pytest.raises(UnknownConnectorClass):
        parse_connector(CLUSTERS | {"connector.class": "X"}, worker_file())


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("source.cluster.max.partition.fetch.bytes", "source.consumer.max.partition.fetch.bytes"),
        (
            "source.cluster.request.timeout.ms",
            "source.consumer.request.timeout.ms or source.admin.request.timeout.ms",
        ),
        ("source.cluster.consumer.fetch.max.bytes", "source.consumer.fetch.max.bytes"),
        ("source.consumer.override.fetch.max.bytes", "source.consumer.fetch.max.bytes"),
        ("target.cluster.acks", "producer.override.acks"),
        ("max.partition.fetch.bytes", "source.consumer.max.partition.fetch.bytes"),
        ("compression.type", "producer.override.compression.type"),
    ],
)
def test_a_dropped_key_is_reported_with_the_spelling_that_works(key: str, expected: str) -> None:
    (warning,) = parse_connector(SOURCE | {key: "1"}, worker_file()).warnings
    text = f"{key}: ignored here, as in MirrorMaker 2; write {expected}"
    assert warning == f"connector msc: {text}"


def test_a_setting_of_the_worker_in_a_connector_is_reported() -> None:
    (warning,) = parse_connector(
        SOURCE | {"offset.flush.interval.ms": "5000"}, worker_file()
    ).warnings
    assert "it is a setting of the worker's file" in warning


@pytest.mark.parametrize(
    "key",
    [
        "producer.enable.idempotence",
        "target.producer.enable.idempotence",
        "producer.override.enable.idempotence",
        "enable.idempotence",
        "target.cluster.producer.enable.idempotence",
    ],
)
def test_a_key_that_never_has_an_effect_gets_no_other_spelling(key: str) -> None:
    (warning,) = parse_connector(SOURCE | {key: "true"}, worker_file()).warnings
    assert warning.startswith(f"connector msc: {key}: has no effect: the copy task retries until")
