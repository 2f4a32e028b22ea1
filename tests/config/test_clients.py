"""Which settings a client gets, and what is made of them."""

from __future__ import annotations

import pickle

import pytest

from sparkmirror.config.clients import (
    ProducerConfig,
    client_settings,
    compose_client_id,
    parse_client,
    parse_consumer,
    parse_producer,
    producer_settings,
)
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.types import FlowName

SERVERS = {"bootstrap.servers": "h:1"}


def settings(**props: str) -> Settings:
    return Settings({key.replace("__", "."): value for key, value in props.items()}, Findings())


@pytest.mark.parametrize(
    ("props", "expected"),
    [
        pytest.param({"source.cluster.ssl.protocol": "1"}, "1", id="cluster"),
        pytest.param(
            {"source.cluster.ssl.protocol": "1", "consumer.ssl.protocol": "2"}, "2", id="both-sides"
        ),
        pytest.param(
            {
                "source.cluster.ssl.protocol": "1",
                "consumer.ssl.protocol": "2",
                "source.consumer.ssl.protocol": "3",
            },
            "3",
            id="one-side",
        ),
        pytest.param({"target.cluster.ssl.protocol": "1"}, None, id="other-cluster"),
        pytest.param({"target.consumer.ssl.protocol": "1"}, None, id="other-side"),
        pytest.param({"admin.ssl.protocol": "1"}, None, id="other-client"),
        pytest.param({"ssl.protocol": "1"}, None, id="plain"),
    ],
)
def test_more_exact_setting_wins(props: dict[str, str], expected: str | None) -> None:
    found = client_settings(Settings(props, Findings()), "source", "consumer")
    assert found.values.get("ssl.protocol") == expected


def test_only_servers_and_security_survive_under_cluster() -> None:
    props = {
        "source.cluster.bootstrap.servers": "h:1",
        "source.cluster.security.protocol": "SSL",
        "source.cluster.sasl.mechanism": "PLAIN",
        "source.cluster.request.timeout.ms": "1",
    }
    found = client_settings(Settings(props, Findings()), "source", "admin")
    assert set(found.values) == {"bootstrap.servers", "security.protocol", "sasl.mechanism"}


@pytest.mark.parametrize(
    ("worker", "connector", "expected"),
    [
        pytest.param({"bootstrap.servers": "w:1"}, {}, "w:1", id="worker"),
        pytest.param(
            {"bootstrap.servers": "w:1", "producer.bootstrap.servers": "p:1"},
            {},
            "p:1",
            id="worker-producer",
        ),
        pytest.param(
            {"bootstrap.servers": "w:1", "producer.bootstrap.servers": "p:1"},
            {"producer.override.bootstrap.servers": "o:1"},
            "o:1",
            id="override",
        ),
        pytest.param(
            {"bootstrap.servers": "w:1"},
            {"producer.bootstrap.servers": "c:1", "target.producer.bootstrap.servers": "t:1"},
            "w:1",
            id="connectors-own-producers-are-others",
        ),
    ],
)
def test_records_are_written_by_the_workers_producer(
    worker: dict[str, str], connector: dict[str, str], expected: str
) -> None:
    found = producer_settings(Settings(worker, Findings()), Settings(connector, Findings()))
    assert parse_producer(found, "B").client.bootstrap_servers == (expected,)


def test_consumer_defaults() -> None:
    consumer = parse_consumer(Settings(SERVERS, Findings()), "A")
    assert consumer.client.bootstrap_servers == ("h:1",)
    assert consumer.fetch_max_bytes == 16 * 1024 * 1024
    assert consumer.max_partition_fetch_bytes == 1024 * 1024
    assert consumer.auto_offset_reset == "earliest"
    assert consumer.isolation_level == "read_uncommitted"


def producer(**props: str) -> tuple[ProducerConfig, Findings]:
    found = settings(bootstrap__servers="h:1", **props)
    return parse_producer(found, "B"), found.findings


def test_producer_defaults() -> None:
    config, findings = producer()
    assert config == ProducerConfig(client=config.client)
    assert (config.acks, config.max_in_flight) == (-1, 5)
    assert config.max_request_size is None
    assert config.compression_type is None
    assert findings.warnings == ()


@pytest.mark.parametrize(
    ("text", "acks", "warned"),
    [("all", -1, False), ("-1", -1, False), ("1", 1, False), ("0", 1, True)],
)
def test_acks(text: str, acks: int, warned: bool) -> None:
    config, findings = producer(acks=text)
    assert config.acks == acks
    assert any("0 is treated as 1" in warning for warning in findings.warnings) == warned


def test_compression_none_is_something_else_than_unset() -> None:
    assert producer(compression__type="none")[0].compression_type == "none"


def test_requests_in_flight_are_capped() -> None:
    config, findings = producer(max__in__flight__requests__per__connection="9")
    assert config.max_in_flight == 5
    assert findings.warnings == (
        (
            "max.in.flight.requests.per.connection: 9 is treated as 5, the most that preserves the "
            "order"
        ),
    )


def test_a_level_of_another_codec_is_explained() -> None:
    _, findings = producer(compression__type="zstd", compression__gzip__level="3")
    (warning,) = findings.warnings
    assert warning.startswith("compression.gzip.level: has no effect: compression.type is not gzip")
    assert producer(compression__type="gzip", compression__gzip__level="3")[1].warnings == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compression.gzip.level", "10"),
        ("compression.gzip.level", "0"),
        ("compression.lz4.level", "18"),
        ("compression.zstd.level", "23"),
        ("delivery.timeout.ms", "29999"),
    ],
)
def test_a_producer_setting_that_kafka_rejects_is_an_error(name: str, value: str) -> None:
    found = Settings({**SERVERS, name: value}, Findings())
    parse_producer(found, "B")
    assert [error.key for error in found.findings.errors] == [name]


def test_a_call_of_an_admin_client_has_the_time_of_one_request_at_least() -> None:
    found = Settings({**SERVERS, "request.timeout.ms": "90000"}, Findings())
    assert parse_client(found, "A").default_api_timeout_ms == 90000
    found = Settings({**SERVERS, "default.api.timeout.ms": "100"}, Findings())
    parse_client(found, "A")
    assert [error.key for error in found.findings.errors] == ["default.api.timeout.ms"]


@pytest.mark.parametrize(
    "name", ["batch.size", "linger.ms", "buffer.memory", "partitioner.class", "key.serializer"]
)
def test_producer_key_that_cannot_apply_is_explained(name: str) -> None:
    found = Settings({**SERVERS, name: "1"}, Findings())
    parse_producer(found, "B")
    assert found.findings.errors == ()
    assert [warning.partition(": ")[0] for warning in found.findings.warnings] == [name]


@pytest.mark.parametrize(
    "name", ["max.poll.records", "interceptor.classes", "group.id", "key.deserializer"]
)
def test_consumer_key_that_cannot_apply_is_explained(name: str) -> None:
    found = Settings({**SERVERS, name: "1"}, Findings())
    parse_consumer(found, "A")
    assert found.findings.errors == ()
    assert [warning.partition(": ")[0] for warning in found.findings.warnings] == [name]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("auto.offset.reset", "by_duration:1h", "'1h' is not an ISO 8601 duration"),
        ("auto.offset.reset", "by_duration:-PT1H", "'-PT1H' is negative"),
        ("auto.offset.reset", "by_duration", "not a starting point"),
        ("auto.offset.reset", "Latest", "not a starting point"),
        ("isolation.level", "dirty", "not one of the allowed values"),
        ("fetch.max.bytes", "-1", "out of range"),
        ("request.timeout.ms", "30s", "not a number of type INT"),
        ("security.protocol", "TLS", "not one of the allowed values"),
        ("bootstrap.servers", "h", "'h' is not host:port"),
        ("bootstrap.servers", "", "cluster 'A' has no broker address"),
    ],
)
def test_bad_client_setting_is_an_error(name: str, value: str, reason: str) -> None:
    found = Settings({**SERVERS, name: value}, Findings())
    parse_consumer(found, "A")
    assert [(error.key, error.reason) for error in found.findings.errors] == [(name, reason)]


def test_security_is_carried_with_secrets_masked() -> None:
    props = {**SERVERS, "ssl.key.password": "hunter2", "sasl.mechanism": "PLAIN"}
    client = parse_client(Settings(props, Findings()), "A")
    assert set(client.security) == {"security.protocol", "ssl.key.password", "sasl.mechanism"}
    assert client.security["security.protocol"] == "PLAINTEXT"
    assert "hunter2" not in repr(client)
    assert pickle.loads(pickle.dumps(client)) == client


@pytest.mark.parametrize(
    ("user", "task", "expected"),
    [
        ("", None, "source1->target2|ConnectorName|role"),
        ("", 0, "source1->target2|ConnectorName-0|role"),
        ("", "?", "source1->target2|ConnectorName-?|role"),
        ("mine", None, "mine|source1->target2|ConnectorName|role"),
    ],
)
def test_client_id_is_that_of_mirrormaker(user: str, task: int | str | None, expected: str) -> None:
    flow = FlowName("source1", "target2")
    assert compose_client_id(user, flow, "ConnectorName", "role", task) == expected
