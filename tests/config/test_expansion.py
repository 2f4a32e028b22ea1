"""From one file to workers and connectors: the rules of MirrorMakerConfig and its tests."""

from __future__ import annotations

import pytest

from sparkmirror.config.expansion import (
    CONNECTORS,
    cluster_settings,
    connector_settings,
    copies,
    emits_heartbeats,
    pairs,
    plain,
    worker_settings,
)
from sparkmirror.types import FlowName

FLOW = FlowName("a", "b")
CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"


def connector(props: dict[str, str], kind: str = "MirrorSourceConnector") -> dict[str, str]:
    return plain(connector_settings(props, FLOW, kind))


def worker(props: dict[str, str]) -> dict[str, str]:
    return plain(worker_settings(props, FLOW))


@pytest.mark.parametrize(
    ("props", "key", "expected"),
    [
        pytest.param(
            {"a.bootstrap.servers": "one"},
            "source.cluster.bootstrap.servers",
            "one",
            id="source-cluster",
        ),
        pytest.param(
            {"b.bootstrap.servers": "two"},
            "target.cluster.bootstrap.servers",
            "two",
            id="target-cluster",
        ),
        pytest.param(
            {"a.bootstrap.servers": "one"},
            "source.consumer.bootstrap.servers",
            "one",
            id="servers-for-each-client",
        ),
        pytest.param(
            {"a.bootstrap.servers": "one", "a.consumer.bootstrap.servers": "two"},
            "source.consumer.bootstrap.servers",
            "two",
            id="client-over-cluster",
        ),
        pytest.param({"security.protocol": "SSL"}, "security.protocol", "SSL", id="top-level"),
        pytest.param(
            {"security.protocol": "SSL"},
            "target.cluster.security.protocol",
            "SSL",
            id="top-level-security-for-clusters",
        ),
        pytest.param(
            {"security.protocol": "SSL", "a.security.protocol": "PLAINTEXT"},
            "source.admin.security.protocol",
            "PLAINTEXT",
            id="cluster-over-top-level",
        ),
        pytest.param(
            {"security.protocol": "SSL", "a.producer.security.protocol": "SASL_SSL"},
            "source.producer.security.protocol",
            "SASL_SSL",
            id="client-over-top-level",
        ),
        pytest.param({"a->b.tasks.max": "123"}, "tasks.max", "123", id="flow"),
        pytest.param(
            {"tasks.max": "1", "a->b.tasks.max": "2"}, "tasks.max", "2", id="flow-over-top-level"
        ),
        pytest.param({"tasks.max": "100"}, "tasks.max", "100", id="top-level-connector-key"),
        pytest.param({"topics": "t"}, "topics", "t", id="top-level-topics"),
        pytest.param({"groups": "g"}, "groups", "g", id="top-level-groups"),
        pytest.param({"metric.reporters": "R"}, "metric.reporters", "R", id="top-level-reporters"),
        pytest.param({"xxx": "yyy"}, "xxx", None, id="unknown-top-level-dropped"),
        pytest.param({"a->b.xxx": "yyy"}, "xxx", "yyy", id="unknown-of-flow-kept"),
        pytest.param({"b->a.topics": "t"}, "topics", None, id="other-flow"),
        pytest.param({"use.defaults.from": "source"}, "use.defaults.from", None, id="dropped"),
        pytest.param({"exactly.once.support": "x"}, "exactly.once.support", None, id="dropped-eos"),
        pytest.param(
            {"producer.override.acks": "1"}, "producer.override.acks", None, id="dropped-override"
        ),
        pytest.param(
            {"consumer.fetch.max.bytes": "1"}, "consumer.fetch.max.bytes", None, id="dropped-client"
        ),
        pytest.param(
            {"a.consumer.fetch.max.bytes": "1"},
            "source.consumer.fetch.max.bytes",
            "1",
            id="cluster-client",
        ),
        pytest.param(
            {"a.request.timeout.ms": "1"},
            "source.cluster.request.timeout.ms",
            "1",
            id="cluster-key-kept-though-no-client-reads-it",
        ),
        pytest.param(
            {"replication.policy.mine": "x"}, "replication.policy.mine", "x", id="policy-family"
        ),
        pytest.param(
            {"config.providers.file.class": "F"},
            "config.providers.file.class",
            "F",
            id="provider-family",
        ),
        pytest.param({"config.providers": "file"}, "config.providers", "file", id="providers"),
        pytest.param({"topics": "${file:x:y}"}, "topics", "${file:x:y}", id="unresolved"),
        pytest.param({}, "enabled", "false", id="disabled-unless-told"),
        pytest.param({"enabled": "true"}, "enabled", "true", id="enabled-top-level"),
        pytest.param({"a->b.enabled": "true"}, "enabled", "true", id="enabled-flow"),
        pytest.param({}, "name", "MirrorSourceConnector", id="name"),
        pytest.param({"a->b.name": "mine"}, "name", "mine", id="own-name"),
        pytest.param({}, "source.cluster.alias", "a", id="source-alias"),
        pytest.param({}, "target.cluster.alias", "b", id="target-alias"),
        pytest.param(
            {},
            "connector.class",
            "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            id="class",
        ),
    ],
)
def test_connector_setting(props: dict[str, str], key: str, expected: str | None) -> None:
    assert connector(props).get(key) == expected


def test_flow_keys_reach_all_three_connectors() -> None:
    found = {kind: connector({"a->b.x": "1"}, kind) for kind in CONNECTORS}
    assert {kind: props["name"] for kind, props in found.items()} == {k: k for k in CONNECTORS}
    assert {props["x"] for props in found.values()} == {"1"}


@pytest.mark.parametrize(
    ("props", "key", "expected"),
    [
        pytest.param({}, "client.id", "a->b", id="client-id"),
        pytest.param({}, "group.id", "a-mm2", id="group"),
        pytest.param({}, "offset.storage.topic", "mm2-offsets.a.internal", id="offsets"),
        pytest.param({}, "status.storage.topic", "mm2-status.a.internal", id="status"),
        pytest.param({}, "config.storage.topic", "mm2-configs.a.internal", id="configs"),
        pytest.param({}, "key.converter", CONVERTER, id="key-converter"),
        pytest.param({}, "value.converter", CONVERTER, id="value-converter"),
        pytest.param({}, "header.converter", CONVERTER, id="header-converter"),
        pytest.param(
            {"replication.policy.separator": "__"},
            "offset.storage.topic",
            "mm2-offsets.a.internal",
            id="separator-never-in-worker-topics",
        ),
        pytest.param(
            {"replication.policy.separator": "__"},
            "replication.policy.separator",
            "__",
            id="policy",
        ),
        pytest.param(
            {"offset.storage.replication.factor": "123"},
            "offset.storage.replication.factor",
            "123",
            id="top-level-storage",
        ),
        pytest.param(
            {"b.status.storage.replication.factor": "456"},
            "status.storage.replication.factor",
            "456",
            id="target-storage",
        ),
        pytest.param(
            {"b.offset.storage.topic": "x", "offset.storage.topic": "y"},
            "offset.storage.topic",
            "y",
            id="top-level-storage-over-target",
        ),
        pytest.param({"b.producer.client.id": "one"}, "producer.client.id", "one", id="producer"),
        pytest.param(
            {"b.security.protocol": "PLAINTEXT", "b.producer.security.protocol": "SASL"},
            "producer.security.protocol",
            "SASL",
            id="producer-security",
        ),
        pytest.param(
            {"b.security.protocol": "PLAINTEXT", "b.producer.security.protocol": "SASL"},
            "consumer.security.protocol",
            "PLAINTEXT",
            id="consumer-security",
        ),
        pytest.param(
            {"ssl.truststore.password": "s1"}, "ssl.truststore.password", "s1", id="security"
        ),
        pytest.param(
            {"ssl.truststore.password": "s1"},
            "producer.ssl.truststore.password",
            "s1",
            id="security-of-producer",
        ),
        pytest.param(
            {"b.offset.flush.interval.ms": "5"}, "offset.flush.interval.ms", "5", id="of-target"
        ),
        pytest.param(
            {"offset.flush.interval.ms": "5"}, "offset.flush.interval.ms", None, id="top-level-lost"
        ),
        pytest.param(
            {"a->b.offset.flush.interval.ms": "5"}, "offset.flush.interval.ms", None, id="flow-lost"
        ),
        pytest.param(
            {"a.offset.flush.interval.ms": "5"}, "offset.flush.interval.ms", None, id="source-lost"
        ),
        pytest.param(
            {"task.shutdown.graceful.timeout.ms": "5"},
            "task.shutdown.graceful.timeout.ms",
            "5",
            id="task-family",
        ),
        pytest.param(
            {"worker.sync.timeout.ms": "5"}, "worker.sync.timeout.ms", "5", id="worker-family"
        ),
        pytest.param({"config.providers": "file"}, "config.providers", "file", id="providers"),
        pytest.param({"b.xxx": "yyy"}, "xxx", "yyy", id="unknown-of-target-kept"),
        pytest.param({"b.client.id": "mine"}, "client.id", "mine", id="own-client-id"),
    ],
)
def test_worker_setting(props: dict[str, str], key: str, expected: str | None) -> None:
    assert worker(props).get(key) == expected


def test_settings_remember_the_key_of_the_file() -> None:
    props = {"security.protocol": "SSL", "a.bootstrap.servers": "x", "a->b.topics": "t"}
    found = connector_settings(props, FLOW, "MirrorSourceConnector")
    assert found["source.admin.security.protocol"].origin == "security.protocol"
    assert found["source.consumer.bootstrap.servers"].origin == "a.bootstrap.servers"
    assert found["topics"].origin == "a->b.topics"
    assert found["name"].origin == ""


def test_alias_may_have_dots_and_signs() -> None:
    found = plain(cluster_settings({"us.east+1/.bootstrap.servers": "x"}, "us.east+1/"))
    assert found["bootstrap.servers"] == "x"


@pytest.mark.parametrize(
    ("props", "clusters", "count"),
    [
        pytest.param({}, "abc", 6, id="defaults-give-all-pairs"),
        pytest.param({"emit.heartbeats.enabled": "false"}, "abc", 0, id="heartbeats-off"),
        pytest.param(
            {"a->b.emit.heartbeats.enabled": "false", "a->c.emit.heartbeats.enabled": "false"},
            "abc",
            4,
            id="two-pairs-off",
        ),
        pytest.param(
            {
                "emit.heartbeats.enabled": "false",
                "a->b.enabled": "true",
                "a->c.enabled": "true",
                "a->d.enabled": "true",
                "a->e.enabled": "false",
                "a->f.enabled": "false",
            },
            "abcdef",
            3,
            id="three-flows",
        ),
        pytest.param(
            {
                "emit.heartbeats.enabled": "false",
                "a->b.enabled": "true",
                "a->c.enabled": "true",
                "d->a.emit.heartbeats.enabled": "true",
            },
            "abcd",
            3,
            id="central-and-an-emitter",
        ),
    ],
)
def test_pairs_that_have_a_worker(props: dict[str, str], clusters: str, count: int) -> None:
    found = [p for p in pairs(tuple(clusters)) if copies(props, p) or emits_heartbeats(props, p)]
    assert len(found) == count


@pytest.mark.parametrize(
    ("props", "expected"),
    [
        pytest.param({}, False, id="default"),
        pytest.param({"a->b.enabled": "true"}, True, id="true"),
        pytest.param({"a->b.enabled": "TRUE "}, True, id="any-case-and-blanks"),
        pytest.param({"a->b.enabled": "yes"}, False, id="anything-else"),
        pytest.param({"enabled": "true"}, True, id="top-level"),
        pytest.param({"enabled": "true", "a->b.enabled": "false"}, False, id="flow-wins"),
        pytest.param(
            {"enabled": "true", "emit.heartbeats.enabled": "false"}, False, id="pair-has-no-worker"
        ),
        pytest.param({"b->a.enabled": "true"}, False, id="other-way"),
    ],
)
def test_flow_copies(props: dict[str, str], expected: bool) -> None:
    assert copies(props, FLOW) == expected
