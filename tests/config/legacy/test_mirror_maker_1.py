"""MirrorMaker 1's options and files become one flow; all errors are reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.config.legacy.as_mm2_file import shown_settings
from sparkmirror.config.legacy.mirror_maker_1 import (
    LegacyConfig,
    LegacyOptions,
    include_pattern,
    load_legacy,
)
from sparkmirror.config.mm2 import FlowConfig
from sparkmirror.errors import ConfigErrors

CONSUMER = {"bootstrap.servers": "a:9092", "group.id": "mm1"}
PRODUCER = {"bootstrap.servers": "b:9092"}
ENV = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


def write(folder: Path, name: str, settings: Mapping[str, str]) -> str:
    path = folder / name
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    return str(path)


def options(
    folder: Path,
    consumer: Mapping[str, str] = CONSUMER,
    producer: Mapping[str, str] = PRODUCER,
    **others: str,
) -> LegacyOptions:
    given = LegacyOptions(
        consumer_config=write(folder, "consumer.properties", consumer),
        producer_config=write(folder, "producer.properties", producer),
        include="orders",
    )
    return replace(given, **others)  # type: ignore[arg-type]


def load(
    folder: Path,
    consumer: Mapping[str, str] = CONSUMER,
    producer: Mapping[str, str] = PRODUCER,
    **others: str,
) -> LegacyConfig:
    return load_legacy(options(folder, consumer, producer, **others))


def flow_of(config: LegacyConfig) -> FlowConfig:
    (flow,) = config.mirror.flows
    return flow


def errors_of(given: LegacyOptions) -> list[str]:
    with pytest.raises(ConfigErrors) as raised:
        load_legacy(given)
    return [str(error) for error in raised.value.errors]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("orders", "orders"),
        ("orders,payments", "orders|payments"),
        (" a.* , b ", "a.*|b"),
        ('"a,b"', "a|b"),
        ("'a b'", "ab"),
        ("''a'", "a"),
        ("a'b", "a'b"),
    ],
)
def test_an_include_is_read_as_mirror_maker_1_reads_it(text: str, pattern: str) -> None:
    assert include_pattern(text) == pattern


def test_defaults_are_those_of_mirror_maker_1(tmp_path: Path) -> None:
    config = load(tmp_path)
    source = flow_of(config).source
    assert (config.group_id, config.commit_interval_ms) == ("mm1", 60000)
    assert source.consumer.auto_offset_reset == "latest"
    assert source.consumer.client.client_id == "mm1"
    assert (source.producer.acks, source.producer.compression_type) == (-1, None)
    assert (source.tasks_max, source.errors_tolerance, source.topics) == (1, "none", ("orders",))
    assert source.topics_exclude == ()
    assert source.refresh_topics_interval_seconds == 300
    assert not config.mirror.heartbeats
    assert not source.emit_offset_syncs_enabled
    assert not source.sync_topic_configs_enabled
    assert not source.sync_topic_acls_enabled
    assert config.warnings == ()


def test_options_and_keys_reach_the_flow(tmp_path: Path) -> None:
    consumer = {
        **CONSUMER,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "fetch.min.bytes": "7",
        "metadata.max.age.ms": "5000",
        "enable.auto.commit": "false",
        "security.protocol": "SSL",
    }
    producer = {**PRODUCER, "acks": "1", "compression.type": "lz4", "client.id": "p"}
    config = load(
        tmp_path,
        consumer,
        producer,
        num_streams="4",
        abort_on_send_failure="FALSE",
        offset_commit_interval_ms="2000",
    )
    flow = flow_of(config)
    source = flow.source
    assert (source.tasks_max, source.errors_tolerance) == (4, "all")
    assert source.consumer.auto_offset_reset == "earliest"
    assert source.consumer.isolation_level == "read_committed"
    assert source.consumer.fetch_min_bytes == 7
    assert source.refresh_topics_interval_seconds == 5
    assert source.source_client.security["security.protocol"] == "SSL"
    assert source.target_client.security["security.protocol"] == "PLAINTEXT"
    assert (source.producer.acks, source.producer.compression_type) == (1, "lz4")
    assert flow.worker.offset_flush_interval_ms == 2000
    assert config.warnings == ()


@pytest.mark.parametrize(("commit_ms", "flush_ms"), [("0", 500), ("2000", 2000), ("60000", 5000)])
def test_tasks_store_often_and_not_all_the_time(
    tmp_path: Path, commit_ms: str, flush_ms: int
) -> None:
    config = load(tmp_path, offset_commit_interval_ms=commit_ms)
    assert config.commit_interval_ms == int(commit_ms)
    assert flow_of(config).worker.offset_flush_interval_ms == flush_ms


def test_an_include_is_stronger_than_a_whitelist(tmp_path: Path) -> None:
    assert flow_of(load(tmp_path, include="a", whitelist="b")).source.topics == ("a",)
    given = replace(options(tmp_path), include=None, whitelist="b,c")
    assert flow_of(load_legacy(given)).source.topics == ("b|c",)


def test_the_flow_is_named_after_group_and_cluster(tmp_path: Path) -> None:
    (flow,) = load(tmp_path).with_identity("mm1.abc", 2).flows
    assert flow.worker.offset_storage_topic == "mm2-offsets.mm1.abc.internal"
    assert flow.worker.group_id == "sparkmirror-legacy.mm1.abc"
    assert flow.worker.offset_storage_replication_factor == 2
    assert flow.source.replication_factor == -1
    (old,) = load(tmp_path).with_identity("mm1.abc", 2, has_default=False).flows
    assert old.source.replication_factor == 2


def test_all_errors_come_at_once_with_file_key_and_value(tmp_path: Path) -> None:
    consumer = {
        "zookeeper.connect": "z:2181",
        "fetch.min.bytes": "x",
        "auto.offset.reset": "smallest",
    }
    producer = {
        "metadata.broker.list": "b:9092",
        "acks": "2",
        "security.protocol": "SSL",
        "ssl.keystore.password": "pw-1",
    }
    given = replace(
        options(tmp_path, consumer, producer),
        include="a{1,2}",
        num_streams="0",
        abort_on_send_failure="maybe",
        offset_commit_interval_ms="soon",
        others={"--message.handler": "a.B", "--rebalance.listener.args": "x"},
    )
    text = "\n".join(errors_of(given))
    for wanted in (
        "consumer.properties: zookeeper.connect=z:2181: belongs to the old consumer",
        "consumer.properties: group.id: is missing",
        "consumer.properties: fetch.min.bytes=x: ",
        "consumer.properties: auto.offset.reset=smallest: ",
        "consumer.properties: bootstrap.servers: ",
        "producer.properties: metadata.broker.list=b:9092: belongs to the old producer",
        "producer.properties: acks=2: ",
        "producer.properties: ssl.keystore.password=[hidden]: ",
        "--include=a{1,2}: a{1|2}: ",
        "--num.streams=0: ",
        "--abort.on.send.failure=maybe: ",
        "--offset.commit.interval.ms=soon: ",
        "--message.handler=a.B: runs Java code on every record",
        "--rebalance.listener.args=x: is called when MirrorMaker 1's consumers rebalance",
    ):
        assert wanted in text
    assert "pw-1" not in text


def test_missing_options_and_files_are_named(tmp_path: Path) -> None:
    found = errors_of(LegacyOptions(producer_config=str(tmp_path / "no.properties")))
    assert found == [
        "the command line: --consumer.config: is missing; name MirrorMaker 1's file",
        f"{tmp_path / 'no.properties'}: no such file; check the path",
        "the command line: --include: is missing; name the topics to copy",
    ]


@pytest.mark.parametrize(("include", "is_refused"), [(".*", True), ("orders", False)])
def test_internal_topics_are_never_copied(tmp_path: Path, include: str, is_refused: bool) -> None:
    given = options(tmp_path, {**CONSUMER, "exclude.internal.topics": "false"}, include=include)
    if is_refused:
        (error,) = errors_of(given)
        assert "exclude.internal.topics=false: --include has __consumer_offsets" in error
    else:
        assert load_legacy(given).warnings == ()


@pytest.mark.parametrize(
    ("consumer", "producer", "warning"),
    [
        ({"client.id": "c"}, {}, "consumer.properties: client.id: has no effect"),
        ({"enable.auto.commit": "true"}, {}, "consumer.properties: enable.auto.commit: has no"),
        (
            {"partition.assignment.strategy": "x.Y"},
            {},
            "consumer.properties: partition.assignment.strategy: has no effect",
        ),
        ({"no.such.key": "1"}, {}, "consumer.properties: no.such.key: unknown key"),
        ({}, {"producer.type": "sync"}, "producer.properties: producer.type: has no effect"),
        ({}, {"retries": "3"}, "producer.properties: retries: has no effect"),
        ({}, {"partitioner.class": "x.Y"}, "producer.properties: partitioner.class: has no"),
    ],
)
def test_a_key_without_effect_is_reported(
    tmp_path: Path, consumer: Mapping[str, str], producer: Mapping[str, str], warning: str
) -> None:
    (found,) = load(tmp_path, {**CONSUMER, **consumer}, {**PRODUCER, **producer}).warnings
    assert warning in found


def test_two_config_providers_of_one_name_are_rejected(tmp_path: Path) -> None:
    name = "config.providers.file.class"
    java = "org.apache.kafka.common.config.provider."
    consumer = {**CONSUMER, "config.providers": "file", name: f"{java}FileConfigProvider"}
    producer = {**PRODUCER, "config.providers": "file", name: f"{java}EnvVarConfigProvider"}
    (error,) = errors_of(options(tmp_path, consumer, producer))
    assert f"producer.properties: {name}=" in error


@pytest.mark.parametrize("blanks", [" ", "\\t", " \\u0000 "])
def test_values_are_trimmed_as_in_kafka(tmp_path: Path, blanks: str) -> None:
    """Java's properties keep blanks at the end; Kafka's consumer takes them away."""
    consumer = {
        "bootstrap.servers": f"a:9092{blanks}",
        "group.id": f"mm1{blanks}",
        "auto.offset.reset": f"earliest{blanks}",
        "metadata.max.age.ms": f"7000{blanks}",
    }
    config = load(tmp_path, consumer)
    source = flow_of(config).source
    assert config.group_id == "mm1"
    assert source.consumer.client.client_id == "mm1"
    assert source.source_client.bootstrap_servers == ("a:9092",)
    assert source.consumer.auto_offset_reset == "earliest"
    assert source.refresh_topics_interval_seconds == 7


def test_a_group_of_blanks_is_missing(tmp_path: Path) -> None:
    (error,) = errors_of(options(tmp_path, {**CONSUMER, "group.id": "\\t "}))
    assert "consumer.properties: group.id: is missing" in error


def test_config_providers_give_group_and_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MM1_GROUP", "from-env ")
    monkeypatch.setenv("MM1_AGE", "9000")
    monkeypatch.setenv("MM1_INTERNAL", "false")
    consumer = {
        **CONSUMER,
        **ENV,
        "group.id": "x-${env:MM1_GROUP}",
        "metadata.max.age.ms": "${env:MM1_AGE}",
    }
    config = load(tmp_path, consumer)
    assert config.group_id == "x-from-env"
    assert flow_of(config).source.consumer.client.client_id == "x-from-env"
    assert flow_of(config).source.refresh_topics_interval_seconds == 9
    assert shown_settings(config)["source.consumer.client.id"] == "x-${env:MM1_GROUP}"
    consumer |= {"exclude.internal.topics": "${env:MM1_INTERNAL}"}
    (error,) = errors_of(options(tmp_path, consumer, include=".*"))
    assert "exclude.internal.topics=${env:MM1_INTERNAL}: --include has __consumer" in error


def test_an_unresolved_placeholder_is_reported_once(tmp_path: Path) -> None:
    consumer = {**CONSUMER, **ENV, "group.id": "${env:NO_SUCH_VARIABLE}"}
    (error,) = errors_of(options(tmp_path, consumer))
    assert "consumer.properties: group.id=${env:NO_SUCH_VARIABLE}: " in error


@pytest.mark.parametrize(
    ("age_ms", "seconds"), [("+5000", 5), ("0", 1), ("9223372036854775807", 2**31 - 1)]
)
def test_every_age_of_metadata_that_kafka_accepts_is_accepted(
    tmp_path: Path, age_ms: str, seconds: int
) -> None:
    config = load(tmp_path, {**CONSUMER, "metadata.max.age.ms": age_ms})
    assert flow_of(config).source.refresh_topics_interval_seconds == seconds


@pytest.mark.parametrize("age_ms", ["soon", "\u00b2", ""])
def test_a_bad_age_of_metadata_is_reported_under_its_own_name(tmp_path: Path, age_ms: str) -> None:
    (error,) = errors_of(options(tmp_path, {**CONSUMER, "metadata.max.age.ms": age_ms}))
    assert "consumer.properties: metadata.max.age.ms=" in error
