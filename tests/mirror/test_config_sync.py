"""Settings of remote topics, with the cases of Kafka's MirrorSourceConnectorTest."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.config_sync import (
    AlterConfig,
    AlterOperation,
    changes_left,
    plan_config_sync,
    topics_to_sync,
)
from sparkmirror.mirror.filters import DefaultConfigPropertyFilter
from sparkmirror.mirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from sparkmirror.mirror.topics import ConfigEntry, ConfigSource

SET, DELETE = AlterOperation.SET, AlterOperation.DELETE
EXCLUDE = re.compile("exclude_param.*|min.insync.replicas")


@pytest.mark.parametrize(
    ("entry", "by_target", "by_source"),
    [
        pytest.param(ConfigEntry("a", "1"), (SET, "1"), (SET, "1"), id="set on the topic"),
        pytest.param(
            ConfigEntry("a", "1", ConfigSource.DEFAULT), (DELETE, None), (SET, "1"), id="default"
        ),
        pytest.param(
            ConfigEntry("a", "1", ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (SET, "1"),
            (SET, "1"),
            id="dynamic default of all brokers",
        ),
        pytest.param(
            ConfigEntry("a", "1", ConfigSource.DYNAMIC_BROKER),
            (SET, "1"),
            (SET, "1"),
            id="dynamic value of a broker",
        ),
        pytest.param(
            ConfigEntry("a", "1", ConfigSource.STATIC_BROKER), None, None, id="static broker value"
        ),
        pytest.param(ConfigEntry("a", "1", read_only=True), None, None, id="read only"),
        pytest.param(ConfigEntry("a", None, sensitive=True), None, None, id="sensitive"),
        pytest.param(ConfigEntry("a", None), None, None, id="without a value"),
        pytest.param(
            ConfigEntry("a", None, ConfigSource.DEFAULT),
            (DELETE, None),
            None,
            id="default without a value",
        ),
        pytest.param(ConfigEntry("a", ""), (SET, ""), (SET, ""), id="empty value"),
        pytest.param(ConfigEntry("exclude_param.1", "1"), None, None, id="excluded by pattern"),
        pytest.param(
            ConfigEntry("min.insync.replicas", "2", ConfigSource.DEFAULT),
            None,
            None,
            id="excluded defaults are not deleted either",
        ),
    ],
)
def test_setting_is_synced(
    entry: ConfigEntry,
    by_target: tuple[AlterOperation, str | None] | None,
    by_source: tuple[AlterOperation, str | None] | None,
) -> None:
    for replicate_source_default, expected in ((False, by_target), (True, by_source)):
        property_filter = DefaultConfigPropertyFilter(EXCLUDE, replicate_source_default)
        planned = plan_config_sync([entry], property_filter)
        assert planned == (() if expected is None else (AlterConfig(entry.name, *expected),))


def test_operations_have_the_codes_of_the_protocol() -> None:
    assert (SET.value, DELETE.value) == (0, 1)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (DefaultReplicationPolicy(), {"orders": "a.orders"}),
        (IdentityReplicationPolicy("a"), {"payments": "payments", "heartbeats": "a.heartbeats"}),
    ],
    ids=["default", "identity"],
)
def test_topics_whose_remote_exists_are_synced(
    policy: DefaultReplicationPolicy, expected: dict[str, str]
) -> None:
    source = ["orders", "payments"] + (["heartbeats"] if "heartbeats" in expected else [])
    target = ["a.orders", "payments", "a.heartbeats"]
    assert topics_to_sync(source, target, policy, "a") == expected


PLANNED = (AlterConfig("kept", SET, "1"), AlterConfig("gone", DELETE))


@pytest.mark.parametrize(
    ("remote", "left"),
    [
        pytest.param([], PLANNED[:1], id="nothing set there"),
        pytest.param([ConfigEntry("kept", "1")], (), id="all as planned"),
        pytest.param([ConfigEntry("kept", "2")], PLANNED[:1], id="another value"),
        pytest.param(
            [ConfigEntry("kept", "1", ConfigSource.DEFAULT)], PLANNED[:1], id="right by default"
        ),
        pytest.param([ConfigEntry("kept", "1"), ConfigEntry("gone", "x")], PLANNED[1:], id="more"),
        pytest.param(
            [ConfigEntry("kept", "1"), ConfigEntry("gone", "x", ConfigSource.STATIC_BROKER)],
            (),
            id="only the topic's own settings can be deleted",
        ),
    ],
)
def test_changes_that_are_made_already_are_left_out(
    remote: list[ConfigEntry], left: tuple[AlterConfig, ...]
) -> None:
    assert changes_left(PLANNED, remote) == left


names = st.sampled_from("abcd")
values = st.sampled_from("12")
entries = st.builds(ConfigEntry, names, values, st.sampled_from(ConfigSource))
topics = st.lists(entries, max_size=5, unique_by=lambda entry: entry.name)


@given(topics, topics, st.booleans())
def test_applied_changes_leave_nothing_to_do(
    source: list[ConfigEntry], remote: list[ConfigEntry], replicate_source_default: bool
) -> None:
    property_filter = DefaultConfigPropertyFilter(None, replicate_source_default)
    planned = plan_config_sync(source, property_filter)
    own = {e.name: e.value for e in remote if e.source is ConfigSource.DYNAMIC_TOPIC}
    for change in changes_left(planned, remote):
        if change.operation is SET:
            own[change.name] = change.value
        else:
            del own[change.name]
    assert changes_left(planned, [ConfigEntry(*item) for item in own.items()]) == ()
