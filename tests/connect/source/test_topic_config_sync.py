"""Rounds of topic config sync over fake clusters."""

from __future__ import annotations

import re
from typing import cast

import pytest

from sparkmirror.connect.source.accepted_settings import AcceptedSettings
from sparkmirror.connect.source.topic_config_sync import ConfigSync
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.filters import DefaultConfigPropertyFilter
from sparkmirror.mirror.topics import ConfigSource
from sparkmirror.types import FlowName
from sparkmirror.wire.admin.admin import Admin, ConfigChange, TopicSetting
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.connect.fakes import FakeAdmin

REMOTES = {"t": "a.t", "u": "a.u"}
OWN, DEFAULT = ConfigSource.DYNAMIC_TOPIC, ConfigSource.DEFAULT
DENIED = broker_error("describe configs of topic 't' on 'a'", 29)


def setting(name: str, value: str, source: ConfigSource = OWN) -> TopicSetting:
    return TopicSetting(name, value, source, read_only=False, sensitive=False)


class Clusters:
    """Both clusters, and the sync between them."""

    def __init__(self, exclude: str = "min.*", replicate_source_default: bool = False) -> None:
        self.source, self.target = FakeAdmin(), FakeAdmin()
        self._sync = ConfigSync(
            FlowName("a", "b"),
            DefaultConfigPropertyFilter(re.compile(exclude), replicate_source_default),
            cast("Admin", self.source),
            cast("Admin", self.target),
            AcceptedSettings(FlowName("a", "b"), "b"),
        )

    def sync(self) -> list[tuple[str, ConfigChange]]:
        """One round; what it changed."""
        self.target.config_changes.clear()
        self._sync.sync(REMOTES)
        return list(self.target.config_changes)


@pytest.fixture
def clusters() -> Clusters:
    return Clusters()


def test_values_are_set_and_defaults_deleted(clusters: Clusters) -> None:
    clusters.source.settings["t"] = [
        setting("retention.ms", "5"),
        setting("cleanup.policy", "delete", DEFAULT),
        setting("min.insync.replicas", "2"),
    ]
    clusters.target.settings["a.t"] = [
        setting("cleanup.policy", "compact"),
        setting("min.insync.replicas", "1"),
    ]
    assert clusters.sync() == [
        ("a.t", ConfigChange("retention.ms", 0, "5")),
        ("a.t", ConfigChange("cleanup.policy", 1, None)),
    ]


def test_nothing_is_sent_when_nothing_has_changed(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    clusters.source.settings["t"] = [setting("retention.ms", "5")]
    assert len(clusters.sync()) == 1
    assert caplog.messages == ["[a->b] 'a.t': retention.ms=5"]
    assert clusters.sync() == []
    clusters.source.settings["t"] = [setting("retention.ms", "6")]
    assert clusters.sync() == [("a.t", ConfigChange("retention.ms", 0, "6"))]
    clusters.source.settings["t"] = [setting("retention.ms", "7", DEFAULT)]
    assert clusters.sync() == [("a.t", ConfigChange("retention.ms", 1, None))]
    assert caplog.messages[-1] == "[a->b] 'a.t': retention.ms is the target's default"


def test_defaults_of_the_source_are_set_if_the_filter_wants_them() -> None:
    clusters = Clusters(replicate_source_default=True)
    clusters.source.settings["t"] = [setting("retention.ms", "7", DEFAULT)]
    assert clusters.sync() == [("a.t", ConfigChange("retention.ms", 0, "7"))]


def test_a_topic_that_may_not_be_described_is_named_and_the_others_are_synced(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    for topic in REMOTES:
        clusters.source.settings[topic] = [setting("retention.ms", "5")]
    clusters.source.hidden["t"] = DENIED
    assert clusters.sync() == [("a.u", ConfigChange("retention.ms", 0, "5"))]
    assert clusters.sync() == []
    (warning,) = caplog.messages
    assert warning == (
        "[a->b] describe configs of topic 't' on 'a': TOPIC_AUTHORIZATION_FAILED; the settings of "
        "its remote topic stay as they are; it is copied"
    )
    clusters.source.hidden.clear()
    assert clusters.sync() == [("a.t", ConfigChange("retention.ms", 0, "5"))]


def test_a_remote_that_may_not_be_described_gets_all_changes(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    clusters.source.settings["t"] = [setting("retention.ms", "5")]
    clusters.target.hidden["a.t"] = DENIED
    for _ in range(2):
        assert clusters.sync() == [("a.t", ConfigChange("retention.ms", 0, "5"))]
    assert caplog.messages == []


@pytest.mark.parametrize(("side", "topic"), [("source", "t"), ("target", "a.t")])
def test_a_topic_that_is_not_there_is_left_out(
    clusters: Clusters, side: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    for each in REMOTES:
        clusters.source.settings[each] = [setting("retention.ms", "5")]
    getattr(clusters, side).hidden[topic] = broker_error(f"describe configs of '{topic}'", 3)
    assert clusters.sync() == [("a.u", ConfigChange("retention.ms", 0, "5"))]
    assert caplog.messages == []


def test_a_change_that_the_target_refuses_is_said_once_and_tried_again(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    for topic in REMOTES:
        clusters.source.settings[topic] = [setting("retention.ms", "5")]
    clusters.target.refuses["a.t"] = broker_error("alter configs of topic 'a.t' on 'b'", 44)
    assert clusters.sync() == [("a.u", ConfigChange("retention.ms", 0, "5"))]
    assert clusters.sync() == []
    (warning,) = caplog.messages
    assert warning == (
        "[a->b] alter configs of topic 'a.t' on 'b': POLICY_VIOLATION; its settings stay as they "
        "are; it is copied"
    )
    clusters.target.refuses.clear()
    assert clusters.sync() == [("a.t", ConfigChange("retention.ms", 0, "5"))]


def test_a_cluster_that_cannot_be_asked_fails_the_round(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise KafkaError("describe topic configs on 'a': time-out")

    monkeypatch.setattr(clusters.source, "describe_topic_configs", fail)
    with pytest.raises(KafkaError, match="time-out"):
        clusters.sync()


def test_a_setting_that_the_target_does_not_know_is_left_out_and_the_others_are_synced(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    for topic in REMOTES:
        clusters.source.settings[topic] = [
            setting("retention.ms", "5"),
            setting("message.downconversion.enable", "false"),
        ]
    clusters.target.unknown_settings.add("message.downconversion.enable")
    changed = [(f"a.{topic}", ConfigChange("retention.ms", 0, "5")) for topic in REMOTES]
    assert sorted(clusters.sync()) == changed
    assert clusters.sync() == []
    (warning,) = caplog.messages
    assert "'b' does not accept message.downconversion.enable=false" in warning
    assert "we leave it out" in warning


def test_a_setting_below_the_targets_least_is_clamped_once(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    clusters.source.settings["t"] = [setting("segment.bytes", "1000")]
    clusters.target.least_settings["segment.bytes"] = 1048576
    assert clusters.sync() == [("a.t", ConfigChange("segment.bytes", 0, "1048576"))]
    assert clusters.sync() == []
    (warning,) = caplog.messages
    assert "we set 1048576 instead" in warning


def test_a_message_format_that_mirror_maker_2_carried_over_is_deleted(clusters: Clusters) -> None:
    old_format = [setting("message.format.version", "0.9.0")]
    clusters.source.settings["t"] = clusters.target.settings["a.t"] = old_format
    assert clusters.sync() == [("a.t", ConfigChange("message.format.version", 1, None))]
