"""The settings of a source connector."""

from __future__ import annotations

import pickle

import pytest

from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.mirror_configs import SourceConfig, check_connector, parse_source
from sparkmirror.types import FlowName

PROPS = {
    "name": "mm2",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
WORKER = {"bootstrap.servers": "w:1"}


def parse(**props: str) -> tuple[SourceConfig, Findings]:
    named = {key.replace("__", "."): value for key, value in props.items()}
    return parse_props(named)


def parse_props(props: dict[str, str]) -> tuple[SourceConfig, Findings]:
    findings = Findings()
    worker = Settings(WORKER, findings)
    return parse_source(Settings(PROPS | props, findings), worker), findings


def test_source_has_mirrormakers_defaults() -> None:
    source, findings = parse()
    assert findings.errors == ()
    assert source.flow == FlowName("a", "b")
    assert source.topics == (".*",)
    assert source.topics_exclude == (r"mm2.*\.internal", r".*\.replica", "__.*")
    assert source.replication_factor == 2
    assert source.separator is None
    assert (source.offset_lag_max, source.offset_syncs_location) == (100, "source")
    assert source.refresh_topics_interval_seconds == 600
    assert source.source_client.bootstrap_servers == ("a:1",)
    assert source.consumer.client.bootstrap_servers == ("a:1",)
    assert source.target_client.bootstrap_servers == ("b:1",)
    assert source.producer.client.bootstrap_servers == ("w:1",)


def test_separator_is_known_to_be_set_also_when_it_is_the_default() -> None:
    assert parse(replication__policy__separator=".")[0].separator == "."
    assert parse(replication__policy__separator="__")[0].separator == "__"


def test_empty_topics_are_legal() -> None:
    source, findings = parse(topics="")
    assert source.topics == ()
    assert findings.errors == ()


def test_source_config_crosses_process_borders() -> None:
    source, _ = parse()
    assert pickle.loads(pickle.dumps(source)) == source


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("tasks.max", "0", "out of range"),
        ("tasks.max", "zero", "not a number of type INT"),
        ("replication.factor", "x", "not a number of type INT"),
        ("sync.topic.acls.enabled", "maybe", "neither true nor false"),
        ("offset-syncs.topic.location", "moon", "not one of the allowed values"),
        ("offset-syncs.topic.location", "Source", "not one of the allowed values"),
        ("topics", "a,,b", "empty list element"),
        ("topics", "[", "a [ is not closed"),
        ("topics.exclude", "*", "not a regular expression"),
        ("config.properties.exclude", "(", "a ( is not closed"),
        ("replication.policy.class", "com.x.Policy", "unknown class"),
        ("topic.filter.class", "com.x.Filter", "unknown class"),
        ("config.property.filter.class", "com.x.Filter", "unknown class"),
        ("forwarding.admin.class", "com.x.Admin", "unknown class"),
        ("errors.tolerance", "some", "not one of the allowed values"),
        ("exactly.once.support", "required", "exactly once is not in this version yet"),
        ("transforms", "route", "transformations are not in this version yet"),
        ("offsets.storage.topic", "", "is empty"),
        ("source.cluster.alias", "", "is empty"),
    ],
)
def test_bad_setting_is_an_error(name: str, value: str, reason: str) -> None:
    _, findings = parse_props({name: value})
    assert [error.key for error in findings.errors] == [name]
    assert findings.errors[0].reason.startswith(reason)
    assert findings.errors[0].remedy


def test_offset_syncs_that_are_off_may_not_be_configured() -> None:
    props = {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"}
    _, findings = parse_props(props)
    [error] = findings.errors
    assert (error.key, error.value) == ("emit.offset-syncs.enabled", "false")
    assert error.reason == "offset syncs are disabled, but offset-syncs.topic.location is set"
    assert error.remedy == "remove one of the two"
    assert parse_props({"emit.offset-syncs.enabled": "false"})[1].errors == ()


def test_plain_security_protocol_does_not_reach_clients() -> None:
    source, findings = parse(security__protocol="SSL")
    assert findings.errors == ()
    assert source.consumer.client.security == {"security.protocol": "PLAINTEXT"}


def test_override_error_is_reported_under_its_own_name() -> None:
    _, findings = parse_props({"producer.override.acks": "2"})
    assert [error.key for error in findings.errors] == ["producer.override.acks"]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("MirrorCheckpointConnector", "groups", "["),
        ("MirrorCheckpointConnector", "groups.exclude", "*"),
        ("MirrorCheckpointConnector", "group.filter.class", "com.x.Filter"),
        ("MirrorCheckpointConnector", "offset-syncs.topic.location", "moon"),
        ("MirrorHeartbeatConnector", "emit.heartbeats.interval.seconds", "1s"),
    ],
)
def test_other_connectors_are_checked_too(kind: str, name: str, value: str) -> None:
    findings = Findings()
    check_connector(kind, Settings(PROPS | {name: value}, findings))
    assert [error.key for error in findings.errors] == [name]
