"""Keys that do nothing where they stand, and the spelling that works."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.checks.advice import advise
from sparkmirror.config.findings import Findings
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.types import FlowName

FLOWS = [FlowName("A", "B")]
TOP = "ignored at the top level, as in MirrorMaker 2; write "
HERE = "ignored here, as in MirrorMaker 2; write "
WORKER = "ignored here, as in MirrorMaker 2 (worker settings belong to the target cluster); write "
OTHER_PRODUCER = "does not affect the records' producer, as in MirrorMaker 2; write "
OTHER_CONSUMER = "records are read from the source; to set their consumer, write "
NOT_GATHERED = "has no effect: record batches are forwarded as in the source, not collected again"
SINKS = "ignored here, as in MirrorMaker 2 (it is for sink connectors); write "


def advice(key: str, flows: list[FlowName] | None = None) -> list[str]:
    findings = Findings()
    advise({key: "1"}, ("A", "B"), FLOWS if flows is None else flows, findings)
    assert findings.errors == ()
    return [warning.removeprefix(f"{key}: ") for warning in findings.warnings]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("consumer.fetch.max.bytes", f"{TOP}A.consumer.fetch.max.bytes"),
        ("producer.acks", f"{TOP}B.producer.acks"),
        (
            "admin.request.timeout.ms",
            f"{TOP}A.admin.request.timeout.ms or B.admin.request.timeout.ms",
        ),
        ("source.consumer.fetch.max.bytes", f"{TOP}A.consumer.fetch.max.bytes"),
        ("target.producer.acks", f"{TOP}B.producer.acks"),
        ("producer.override.acks", f"{TOP}A->B.producer.override.acks"),
        ("use.defaults.from", f"{TOP}A->B.use.defaults.from"),
        ("exactly.once.support", f"{TOP}A->B.exactly.once.support"),
        ("transforms.route.type", f"{TOP}A->B.transforms.route.type"),
        ("topic.creation.default.partitions", f"{TOP}A->B.topic.creation.default.partitions"),
        ("offset.flush.interval.ms", f"{TOP}B.offset.flush.interval.ms"),
        ("exactly.once.source.support", f"{TOP}B.exactly.once.source.support"),
        ("group.id", f"{TOP}B.group.id"),
        (
            "source.cluster.request.timeout.ms",
            f"{TOP}A.consumer.request.timeout.ms or A.admin.request.timeout.ms",
        ),
        ("source.cluster.bootstrap.servers", f"{TOP}A.bootstrap.servers"),
        ("target.cluster.ssl.key.password", f"{TOP}B.ssl.key.password"),
        ("fetch.max.bytes", f"{TOP}A.consumer.fetch.max.bytes"),
        ("batch.size", NOT_GATHERED),
        ("A->B.producer.linger.ms", NOT_GATHERED),
        ("B.linger.ms", NOT_GATHERED),
        ("topics.blacklist", "ignored: removed in Kafka 4.0; write topics.exclude"),
        ("add.source.alias.to.metrics", "ignored: removed in Kafka 4.0"),
        ("topcs", "unknown key, ignored; did you mean topics?"),
        ("A.bootstrap.server", "unknown key, ignored; did you mean A.bootstrap.servers?"),
        ("C.bootstrap.servers", "ignored: clusters does not name 'C'"),
        (
            "offset.storage.topik",
            "is used as a setting of that topic; did you mean offset.storage.topic?",
        ),
        (
            "B.status.storage.partition",
            "is used as a setting of that topic; did you mean status.storage.partitions?",
        ),
        ("whatever.this.is", "unknown key, ignored"),
        ("A->B.offset.flush.interval.ms", f"{WORKER}B.offset.flush.interval.ms"),
        (
            "A->B.source.cluster.request.timeout.ms",
            f"{HERE}A.consumer.request.timeout.ms or A.admin.request.timeout.ms",
        ),
        ("A->B.security.protocol", f"{HERE}A.security.protocol or B.security.protocol"),
        ("A->B.bootstrap.servers", f"{HERE}A.bootstrap.servers or B.bootstrap.servers"),
        ("A->B.fetch.max.bytes", f"{HERE}A.consumer.fetch.max.bytes"),
        (
            "A->B.producer.acks",
            f"{OTHER_PRODUCER}B.producer.acks or A->B.producer.override.acks",
        ),
        (
            "A->B.target.producer.acks",
            f"{OTHER_PRODUCER}B.producer.acks or A->B.producer.override.acks",
        ),
        (
            "A->B.consumer.override.fetch.max.bytes",
            f"{SINKS}A->B.consumer.fetch.max.bytes",
        ),
        ("A->B.topcs", "unknown key, ignored; did you mean A->B.topics?"),
        (
            "A->B.consumer.fetch.max.byte",
            "unknown key, ignored; did you mean consumer.fetch.max.bytes?",
        ),
        ("A->B.topics.blacklist", "ignored: removed in Kafka 4.0; write topics.exclude"),
        ("A->A.topics", "ignored: a cluster is not mirrored to itself"),
        ("A.offset.flush.interval.ms", f"{WORKER}B.offset.flush.interval.ms"),
        (
            "A.request.timeout.ms",
            f"{HERE}A.consumer.request.timeout.ms or A.admin.request.timeout.ms",
        ),
        ("A.fetch.max.bytes", f"{HERE}A.consumer.fetch.max.bytes"),
        ("A.acks", f"{HERE}A.producer.acks"),
        ("B.topics", f"{HERE}A->B.topics"),
        ("A.topics.blacklist", "ignored: removed in Kafka 4.0; write topics.exclude"),
        (
            "B.offset.flush.intervall.ms",
            "unknown key, ignored; did you mean B.offset.flush.interval.ms?",
        ),
        (
            "A.consumer.fetch.max.byte",
            "unknown key, ignored; did you mean A.consumer.fetch.max.bytes?",
        ),
        (
            "B.consumer.fetch.max.bytes",
            f"{OTHER_CONSUMER}A.consumer.fetch.max.bytes",
        ),
        (
            "A.producer.acks",
            "records are written to the target; to set their producer, write B.producer.acks",
        ),
    ],
)
def test_key_without_effect_is_reported_with_the_spelling_that_works(
    key: str, expected: str
) -> None:
    assert advice(key) == [expected]


@pytest.mark.parametrize(
    "key",
    [
        "clusters",
        "topics",
        "tasks.max",
        "security.protocol",
        "bootstrap.servers",
        "spark.master",
        "config.providers.file.class",
        "replication.policy.separator",
        "offset.storage.topic",
        "value.converter.schemas.enable",
        "task.shutdown.graceful.timeout.ms",
        "listeners",
        "A.bootstrap.servers",
        "A.consumer.fetch.max.bytes",
        "A.admin.request.timeout.ms",
        "B.producer.acks",
        "B.producer.batch.size",
        "B.offset.flush.interval.ms",
        "B.request.timeout.ms",
        "B.key.converter",
        "A->B.topics",
        "A->B.use.defaults.from",
        "A->B.producer.override.acks",
        "A->B.consumer.fetch.max.bytes",
        "A->B.source.consumer.fetch.max.bytes",
        "A->B.target.cluster.bootstrap.servers",
        "A->B.transforms.x.type",
        "A->B.value.converter.schemas.enable",
        "B->A.topics",
    ],
)
def test_key_that_works_is_not_reported(key: str) -> None:
    assert advice(key) == []


def test_both_ends_of_two_flows_have_workers_and_readers() -> None:
    both = [FlowName("A", "B"), FlowName("B", "A")]
    for key in ("A.offset.flush.interval.ms", "A.producer.acks", "B.consumer.fetch.max.bytes"):
        assert advice(key, both) == []


@pytest.mark.parametrize("key", ["offset.flush.interval.ms", "offset.storage.topic"])
def test_a_worker_that_only_writes_heartbeats_differs_from_none(key: str) -> None:
    findings = Findings()
    beating = [FlowName("A", "B"), FlowName("B", "A")]
    advise({f"A.{key}": "1", f"B.{key}": "1"}, ("A", "B"), FLOWS, findings, beating)
    text = f"A.{key}: only the heartbeats of B->A use it; for A->B write B.{key}"
    assert findings.warnings == (text,)


def test_a_whole_file_knows_its_heartbeats(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    lines = ["clusters=A,B", "A.bootstrap.servers=a:1", "B.bootstrap.servers=b:1"]
    lines += ["A->B.enabled=true", "A.offset.flush.interval.ms=1000"]
    path.write_text("\n".join(lines))
    config = load_mm2(path)
    (warning,) = config.warnings
    assert "only the heartbeats of B->A use it" in warning
    beats = {str(each.flow): each.worker for each in config.heartbeats}
    assert beats["B->A"].offset_flush_interval_ms == 1000
    assert beats["A->B"].offset_flush_interval_ms == 60_000


def test_longer_of_two_aliases_owns_the_key() -> None:
    findings = Findings()
    advise({"us.west.bootstrap.servers": "x:1"}, ("us", "us.west"), [], findings)
    assert findings.warnings == ()


def test_secret_of_an_unknown_flow_is_not_shown() -> None:
    findings = Findings()
    advise({"A->X.sasl.jaas.config": "hunter2"}, ("A", "B"), FLOWS, findings)
    assert str(findings.errors[0]).startswith("A->X.sasl.jaas.config=[hidden]: ")


@pytest.mark.parametrize(
    ("own_class", "key", "is_warned_of"),
    [
        pytest.param("own:Filter", "A->B.longest.name", False, id="read by the class"),
        pytest.param("own:Filter", "A->B.topcs", True, id="looks like a slip"),
        pytest.param("own:Filter", "longest.name", True, id="does not reach the flow"),
        pytest.param("DefaultTopicFilter", "A->B.longest.name", True, id="no class to read it"),
    ],
)
def test_settings_of_a_users_own_class(own_class: str, key: str, is_warned_of: bool) -> None:
    findings = Findings()
    advise({"A->B.topic.filter.class": own_class, key: "1"}, ("A", "B"), FLOWS, findings)
    assert bool(findings.warnings) is is_warned_of
