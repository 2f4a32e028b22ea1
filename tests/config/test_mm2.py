"""Whole mm2 files: what they become, and all that can be wrong with them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sparkmirror.config.keys.classes import IDENTITY_POLICY
from sparkmirror.config.mm2 import MirrorMakerConfig, load_mm2
from sparkmirror.errors import ConfigErrors
from sparkmirror.types import FlowName

GOOD = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a1:9092,a2:9092",
    "B.bootstrap.servers": "b1:9092",
    "A->B.enabled": "true",
}
PACKAGE = "org.apache.kafka.common.config.provider."
FILE_PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
}


def write(tmp_path: Path, props: dict[str, str]) -> Path:
    path = tmp_path / "mm2.properties"
    text = "".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in props.items())
    path.write_text(text, "latin-1")
    return path


def load(tmp_path: Path, props: dict[str, str], *clusters: str) -> MirrorMakerConfig:
    return load_mm2(write(tmp_path, props), clusters)


def errors(tmp_path: Path, props: dict[str, str], *clusters: str) -> list[str]:
    with pytest.raises(ConfigErrors) as caught:
        load(tmp_path, props, *clusters)
    prefix = f"{tmp_path / 'mm2.properties'}: "
    lines = str(caught.value).splitlines()
    assert all(line.startswith(prefix) for line in lines)
    return [line.removeprefix(prefix) for line in lines]


def test_smallest_file(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD)
    assert config.path == tmp_path / "mm2.properties"
    assert config.clusters == ("A", "B")
    names = [each.flow for each in config.heartbeats]
    assert names == [FlowName("A", "B"), FlowName("B", "A")]
    [flow] = config.flows
    assert flow.name == FlowName("A", "B")
    assert flow.source.enabled
    assert flow.source.consumer.client.bootstrap_servers == ("a1:9092", "a2:9092")
    assert flow.source.producer.client.bootstrap_servers == ("b1:9092",)
    assert flow.worker.offset_storage_topic == "mm2-offsets.A.internal"
    assert set(flow.connector_props) == {
        "MirrorSourceConnector",
        "MirrorHeartbeatConnector",
        "MirrorCheckpointConnector",
    }
    assert pickle.loads(pickle.dumps(config)) == config


def test_dedicated_file_of_a_user(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters=source, target\n"
        "source.bootstrap.servers=kafka.example.com:443\n"
        "target.bootstrap.servers=kafka1:9092,kafka2:9093,kafka3:9094\n"
        "source->target.enabled=true\n"
        "source->target.topics=orders\n",
        "ascii",
    )
    [flow] = load_mm2(path).flows
    assert flow.name == FlowName("source", "target")
    assert flow.source.topics == ("orders",)
    assert flow.worker_props["config.storage.topic"] == "mm2-configs.source.internal"


def test_settings_of_all_places_arrive(tmp_path: Path) -> None:
    props = GOOD | {
        "replication.policy.class": "IdentityReplicationPolicy",
        "A->B.topics": r"orders\..*",
        "A.consumer.fetch.max.bytes": "5",
        "B.producer.compression.type": "zstd",
        "A->B.producer.override.max.request.size": "7",
        "B.offset.flush.interval.ms": "10",
        "offset.storage.replication.factor": "1",
        "spark.master": "local[2]",
        "spark.app.name": "x",
    }
    config = load(tmp_path, props)
    [flow] = config.flows
    assert flow.source.policy_class == IDENTITY_POLICY
    assert flow.source.topics == (r"orders\..*",)
    assert flow.source.consumer.fetch_max_bytes == 5
    assert flow.source.producer.compression_type == "zstd"
    assert flow.source.producer.max_request_size == 7
    assert flow.worker.producer.max_request_size is None
    assert flow.worker.offset_flush_interval_ms == 10
    assert flow.worker.offset_storage_replication_factor == 1
    assert config.spark == {"spark.master": "local[2]", "spark.app.name": "x"}


def test_producer_of_a_flow_is_not_that_of_its_records(tmp_path: Path) -> None:
    [flow] = load(tmp_path, GOOD | {"A->B.target.producer.acks": "1"}).flows
    assert flow.source.producer.acks == -1


def test_clusters_keep_flows_into_them(tmp_path: Path) -> None:
    props = GOOD | {"B->A.enabled": "true"}
    assert [flow.name.target for flow in load(tmp_path, props).flows] == ["B", "A"]
    config = load(tmp_path, props, "A")
    assert [flow.name for flow in config.flows] == [FlowName("B", "A")]
    assert [each.flow for each in config.heartbeats] == [FlowName("B", "A")]


def test_flow_that_is_not_chosen_may_lack_its_secrets(tmp_path: Path) -> None:
    props = GOOD | FILE_PROVIDER | {"C.bootstrap.servers": "${file:/none:x}", "clusters": "A,B,C"}
    props["C->A.enabled"] = "true"
    assert len(load(tmp_path, props, "B").flows) == 1
    assert "cannot be read" in errors(tmp_path, props)[0]


def test_secrets_are_resolved_for_use_and_kept_out_of_connectors(tmp_path: Path) -> None:
    (tmp_path / "s.properties").write_text("servers=a:1\npw=hunter2\nmaster=local[3]\n", "utf-8")
    secret = "${file:" + str(tmp_path / "s.properties") + ":"
    props = GOOD | FILE_PROVIDER
    props |= {
        "A.bootstrap.servers": f"{secret}servers}}",
        "B.sasl.jaas.config": f"{secret}pw}}",
        "spark.master": f"{secret}master}}",
    }
    config = load(tmp_path, props)
    [flow] = config.flows
    assert flow.source.consumer.client.bootstrap_servers == ("a:1",)
    assert flow.worker_props["sasl.jaas.config"] == "hunter2"
    assert flow.connector_props["MirrorSourceConnector"]["target.cluster.sasl.jaas.config"] == (
        f"{secret}pw}}"
    )
    assert config.spark["spark.master"] == "local[3]"
    assert "hunter2" not in repr(config)


def test_error_shows_the_placeholder_and_not_the_value(tmp_path: Path) -> None:
    (tmp_path / "s.properties").write_text("n=hunter2", "utf-8")
    placeholder = "${file:" + str(tmp_path / "s.properties") + ":n}"
    [line] = errors(tmp_path, GOOD | FILE_PROVIDER | {"A->B.tasks.max": placeholder})
    assert line == (
        f"A->B.tasks.max={placeholder}: not a number of type INT; use a whole number of at least 1"
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            {"clusters": ""},
            "clusters=: is empty; give a comma-separated list",
            id="empty-clusters",
        ),
        pytest.param(
            {"A.bootstrap.servers": None},
            "A.bootstrap.servers: cluster 'A' has no broker address; set it to host:port,host:port",
            id="no-servers",
        ),
        pytest.param(
            {"B.bootstrap.servers": "b1"},
            "B.bootstrap.servers=b1: 'b1' is not host:port; write b1:9092, with the port of the "
            "broker",
            id="no-port",
        ),
        pytest.param(
            {"A->B.enabled": "false"},
            "No source->target replication flows.; enable one, for example A->B.enabled=true",
            id="no-flows",
        ),
        pytest.param(
            {"A->B.enabled": None},
            "No source->target replication flows.; enable one, for example A->B.enabled=true",
            id="no-flag",
        ),
        pytest.param(
            {"A->C.topics": "x"},
            "A->C.topics=x: clusters does not name 'C'; add it to clusters",
            id="unknown-target",
        ),
        pytest.param(
            {"clusters": "prod-a, B", "prod-a.bootstrap.servers": "a:1", "prod_a->B.topics": "x"},
            "prod_a->B.topics=x: clusters does not name 'prod_a'; did you mean prod-a? Else add it "
            "to clusters",
            id="misspelt-source",
        ),
        pytest.param(
            {"A->B": "x"},
            "A->B=x: not a key of a flow; write A->B.topics=...",
            id="flow-without-key",
        ),
        pytest.param(
            {"->B.topics": "x"},
            "->B.topics=x: not a key of a flow; write A->B.topics=...",
            id="flow-without-source",
        ),
        pytest.param(
            {"A->B.name": ""}, "A->B.name=: is empty; give a text", id="connector-without-name"
        ),
        pytest.param(
            {"clusters": "A,B,spark"},
            "clusters=A,B,spark: 'spark' cannot be an alias: keys that begin with it are Spark's "
            "settings; use another alias",
            id="alias-spark",
        ),
        pytest.param(
            {"tasks.max": "0"},
            "tasks.max=0: out of range; use a whole number of at least 1",
            id="range",
        ),
        pytest.param(
            {"A->B.enabled": "yes"},
            "A->B.enabled=yes: neither true nor false; use true or false",
            id="bad-flag",
        ),
        pytest.param(
            {"A->B.topics": "orders,*"},
            "A->B.topics=orders,*: not a regular expression: nothing to repeat (in '*'); these are "
            "regular expressions, not file globs: write .*",
            id="glob",
        ),
        pytest.param(
            {"B.exactly.once.source.support": "enabled"},
            "B.exactly.once.source.support=enabled: exactly once is not in this version yet; "
            "records are copied at least once; set it to disabled",
            id="exactly-once",
        ),
        pytest.param(
            {"A.security.protocol": "SSL", "A.ssl.protocol": "TLSv1.1"},
            "A.ssl.protocol=TLSv1.1: no TLS version that can be used; use one of TLSv1.2, TLSv1.3",
            id="tls",
        ),
        pytest.param(
            {"security.protocol": "abc"},
            "security.protocol=abc: not one of the allowed values; use one of PLAINTEXT, SSL, "
            "SASL_PLAINTEXT, SASL_SSL",
            id="bad-protocol",
        ),
        pytest.param(
            {"config.providers": "vault"},
            "config.providers.vault.class: is required and not set; use one of "
            f"{PACKAGE}FileConfigProvider, {PACKAGE}DirectoryConfigProvider, "
            f"{PACKAGE}EnvVarConfigProvider",
            id="provider-without-class",
        ),
        pytest.param(
            {"A.consumer.auto.offset.reset": "by_duration:P1X"},
            "A.consumer.auto.offset.reset=by_duration:P1X: 'P1X' is not an ISO 8601 duration; use "
            "one such as PT6H, P7D or P1DT12H30M",
            id="consumer-key",
        ),
        pytest.param(
            {"A->B.producer.override.acks": "5"},
            "A->B.producer.override.acks=5: not a number of acknowledgements; use all, -1, 1 or 0",
            id="producer-override",
        ),
    ],
)
def test_bad_file_is_rejected(tmp_path: Path, change: dict[str, str | None], expected: str) -> None:
    props = {key: value for key, value in (GOOD | change).items() if value is not None}
    assert expected in errors(tmp_path, props)


def test_file_without_clusters_is_rejected(tmp_path: Path) -> None:
    lines = errors(tmp_path, {"a": "1"})
    assert lines == ["clusters: is required and not set; set it to a comma-separated list"]


def test_unknown_cluster_on_the_command_line_is_rejected(tmp_path: Path) -> None:
    assert errors(tmp_path, GOOD, "C") == [
        "--clusters=C: no cluster 'C' in the file; use one of A, B",
        "No source->target replication flows into C.; enable one, for example A->B.enabled=true",
    ]


def test_all_errors_come_at_once_and_each_once(tmp_path: Path) -> None:
    props = GOOD | {
        "B->A.enabled": "true",
        "tasks.max": "zero",
        "A.bootstrap.servers": "a",
        "A->B.topics": "[",
        "B.offset.flush.interval.ms": "soon",
        "X->B.topics": "x",
        "A.ssl.truststore.password": "hunter2",
        "A.security.protocol": "SSL",
    }
    lines = errors(tmp_path, props)
    assert sorted(line.partition("=")[0] for line in lines) == [
        "A->B.topics",
        "A.bootstrap.servers",
        "A.ssl.truststore.password",
        "B.offset.flush.interval.ms",
        "X->B.topics",
        "tasks.max",
    ]
    assert not any("hunter2" in line for line in lines)


def test_a_flow_that_is_neither_on_nor_off_hides_no_other_error(tmp_path: Path) -> None:
    text = (
        "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=yes\n"
        "A->B.topics=[\nA->B.tasks.max=many\nB.offset.storage.replication.factor=0\n"
    )
    (tmp_path / "mm2.properties").write_text(text)
    with pytest.raises(ConfigErrors) as caught:
        load_mm2(tmp_path / "mm2.properties")
    assert {error.key for error in caught.value.errors} == {
        "A->B.enabled",
        "A->B.topics",
        "A->B.tasks.max",
        "B.offset.storage.replication.factor",
    }


REPLICAS = [
    "A->B.replication.factor",
    "A->B.offset-syncs.topic.replication.factor",
    "A->B.checkpoints.topic.replication.factor",
    "A->B.heartbeats.topic.replication.factor",
    *(f"B.{kind}.storage.replication.factor" for kind in ("offset", "config", "status")),
    *(f"B.{kind}.storage.partitions" for kind in ("offset", "status")),
]


@pytest.mark.parametrize("key", REPLICAS)
@pytest.mark.parametrize(("value", "is_right"), [("0", False), ("-2", False), ("-1", True)])
def test_no_topic_has_no_replicas_or_partitions(
    tmp_path: Path, key: str, value: str, is_right: bool
) -> None:
    text = (
        "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n"
        f"{key}={value}\n"
    )
    path = tmp_path / "mm2.properties"
    path.write_text(text)
    if is_right:
        assert load_mm2(path).flows
        return
    remedy = "use a whole number of at least 1, or -1 for the broker default"
    with pytest.raises(ConfigErrors, match=f"{key}={value}: out of range; {remedy}"):
        load_mm2(path)


def test_case_of_the_security_protocol_does_not_matter(tmp_path: Path) -> None:
    [flow] = load(tmp_path, GOOD | {"security.protocol": "plaintext"}).flows
    assert flow.source.consumer.client.security["security.protocol"] == "PLAINTEXT"


def test_features_of_later_versions_are_reported_once_for_all_flows(tmp_path: Path) -> None:
    key = "B.exactly.once.source.support"
    warnings = load(tmp_path, GOOD | {"A.emit.heartbeats.enabled": "false", key: "preparing"})
    prefix = f"{tmp_path / 'mm2.properties'}: {key}: exactly once is not in this version"
    found = [warning for warning in warnings.warnings if warning.startswith(prefix)]
    assert len(found) == 1


def test_a_plain_file_gives_no_warning(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD).warnings == ()
