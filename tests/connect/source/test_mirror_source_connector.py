"""One refresh of a source connector: what is created, and which task is told what."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import cast

import pytest

from sparkmirror.connect.source import mirror_source_connector
from sparkmirror.errors import TransportError
from sparkmirror.mirror.topics import ConfigSource
from sparkmirror.spark.link.files import SecretFileSender, clients_of_tasks
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import AclRule, Admin, ConfigChange, TopicSetting
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.certificates import make_ca
from tests.clusters import wait_for
from tests.connect.fakes import Connector, FakeAdmin

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def assigned(connector: Connector) -> list[list[TopicPartition]]:
    """Of each task, as its orders would say now."""
    rows = [connector.orders(at)["assigned"] for at in range(len(connector.tasks))]
    return [[TopicPartition(topic, at) for topic, _, at, _ in each] for each in rows]


def test_wanted_topics_get_their_remotes_and_tasks(connector: Connector) -> None:
    for topic, partitions in (("t", 2), ("tt", 1), ("other", 5)):
        connector.source.add(topic, partitions)
    connector.refresh()
    created = {topic.name: topic for topic in connector.target.created}
    assert {name: topic.partitions for name, topic in created.items()} == {"a.t": 2, "a.tt": 1}
    assert {topic.replication_factor for topic in created.values()} == {3}
    assert assigned(connector) == [[T0, TopicPartition("tt", 0)], [T1]]
    assert [task.started for task in connector.fake_tasks] == [1, 1]


def test_brokers_that_records_go_to_instead_of_the_target_are_asked_for_topics(
    connector: Connector,
) -> None:
    records = FakeAdmin()
    connector._records = cast("Admin", records)
    connector.source.add("t")
    connector.refresh()
    assert records.topics_asked == ["a.t"]
    assert records.created == []


def test_settings_of_a_topic_are_copied_but_not_all(connector: Connector) -> None:
    def setting(name: str, value: str, source: ConfigSource) -> TopicSetting:
        return TopicSetting(name, value, source, read_only=False, sensitive=False)

    connector.source.add("t")
    connector.source.settings["t"] = [
        setting("retention.ms", "5", ConfigSource.DYNAMIC_TOPIC),
        setting("segment.bytes", "6", ConfigSource.DEFAULT),
        setting("min.insync.replicas", "2", ConfigSource.DYNAMIC_TOPIC),
    ]
    connector.refresh()
    (created,) = connector.target.created
    assert created.configs == {"retention.ms": "5"}


def test_internal_topics_and_our_own_copies_are_left_alone(tmp_path: Path) -> None:
    connector = Connector(tmp_path, {"a->b.topics": ".*"})
    for topic in ("t", "b.t", "a.t", "mm2-offsets.b.internal", "mm2-offset-syncs.b.internal"):
        connector.source.add(topic)
    connector.refresh()
    assert [topic.name for topic in connector.target.created] == ["a.t"]


def test_a_new_topic_goes_to_one_task_and_the_others_do_not_notice(connector: Connector) -> None:
    connector.source.add("t", 3)
    connector.refresh()
    connector.source.add("tt")
    connector.refresh()
    first, second = connector.fake_tasks
    assert first.sent == []
    assert second.sent == [{"type": "assign", "assigned": [["tt", "a.tt", 0, None]]}]
    assert (first.started, second.started) == (1, 1)


def test_a_topic_that_is_gone_is_taken_from_its_task(connector: Connector) -> None:
    connector.source.add("t", 3)
    connector.source.add("tt")
    connector.refresh()
    del connector.source.topics["tt"]
    connector.refresh()
    sent = [task.sent for task in connector.fake_tasks]
    assert sent == [[], [{"type": "revoke", "partitions": [["tt", 0]]}]]


def test_nothing_is_sent_when_nothing_has_changed(connector: Connector) -> None:
    connector.source.add("t", 2)
    for _ in range(3):
        connector.refresh()
    assert [task.sent for task in connector.fake_tasks] == [[], []]
    assert len(connector.target.created) == 1


def test_a_topic_that_has_grown_grows_its_remote(connector: Connector) -> None:
    connector.source.add("t", 1)
    connector.refresh()
    connector.source.add("t", 3)
    connector.refresh()
    assert connector.target.topics["a.t"].partitions == 3
    everything = [tp for task in assigned(connector) for tp in task]
    assert sorted(everything) == [TopicPartition("t", at) for at in range(3)]


def test_partitions_that_the_target_does_not_have_are_not_copied(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t", 3)
    connector.target.add("a.t", 1)
    connector.target.refuses["a.t"] = broker_error("grow topic 'a.t'", 44)
    for _ in range(2):
        connector.refresh()
    assert assigned(connector) == [[T0]]
    assert caplog.text.count("POLICY_VIOLATION") == 1


def test_orders_carry_the_stored_positions(connector: Connector) -> None:
    connector.source.add("t", 2)
    connector.store.positions = {T0: 41}
    connector.refresh()
    orders = [connector.orders(at) for at in range(2)]
    assert [row for each in orders for row in each["assigned"]] == [
        ["t", "a.t", 0, 42],
        ["t", "a.t", 1, None],
    ]
    assert orders[0]["offsets_partitions"] == 25
    assert orders[0]["connector"]["source.cluster.alias"] == "a"
    assert orders[0]["worker"] == connector.spec.worker_props


def test_a_position_of_a_topic_that_was_created_anew_is_not_used(connector: Connector) -> None:
    connector.source.add("t")
    connector.store.positions = {T0: 41}
    connector.refresh()
    connector.source.add("t", topic_id=b"another")
    connector.refresh()
    assert connector.orders(0)["assigned"] == [["t", "a.t", 0, None]]


def test_secrets_in_a_file_are_resolved_for_the_tasks_only(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("pattern = t.*\n")
    settings = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "a->b.topics": f"${{file:{tmp_path}/secrets.properties:pattern}}",
    }
    connector = Connector(tmp_path, settings)
    connector.source.add("t")
    connector.refresh()
    assert connector.file_flow.connector_props["MirrorSourceConnector"]["topics"].startswith(
        "${file:"
    )
    assert connector.orders(0)["connector"]["topics"] == "t.*"


def test_stop_and_join_reach_all_tasks(connector: Connector) -> None:
    connector.source.add("t", 2)
    connector.refresh()
    connector.stop()
    assert [task.stopped for task in connector.fake_tasks] == [True, True]
    assert connector.join(1.0) is True
    assert connector.source.closed
    assert connector.target.closed


# -- syncs and internal topics --------------------------------------------------------------------


def test_settings_and_acls_are_synced_at_once_and_refresh_waits(connector: Connector) -> None:
    connector.source.add("t")
    connector.refresh()
    connector.source.acls, connector.target.acls = [acl("t")], []
    connector.source.settings["t"] = [own_setting("retention.ms", "5")]
    connector.source.add("tt")
    connector._schedule()
    connector._scheduler.run_due()
    assert connector.target.acls == [acl("a.t")]
    assert connector.target.config_changes == [("a.t", ConfigChange("retention.ms", 0, "5"))]
    assert "a.tt" not in connector.target.topics


@pytest.mark.parametrize("switch", ["enabled", "interval.seconds"])
def test_syncs_that_are_switched_off_do_nothing(switch: str, tmp_path: Path) -> None:
    off = "false" if switch == "enabled" else "-1"
    settings = {f"sync.topic.{what}.{switch}": off for what in ("acls", "configs")}
    connector = Connector(tmp_path, {"a->b.topics": "t.*", **settings})
    connector.source.add("t")
    connector.refresh()
    connector.source.acls, connector.target.acls = [acl("t")], []
    connector.source.settings["t"] = [own_setting("retention.ms", "5")]
    connector._schedule()
    connector._scheduler.run_due()
    assert (connector.target.acls, connector.target.config_changes) == ([], [])


def test_a_sync_that_fails_is_told_and_the_others_run(connector: Connector) -> None:
    connector.source.add("t")
    connector.refresh()
    connector.source.acl_errors.append(broker_error("describe ACLs on 'a'", 31))
    connector.source.settings["t"] = [own_setting("retention.ms", "5")]
    connector._schedule()
    connector._scheduler.run_due()
    assert connector.last_error.startswith("describe ACLs on 'a': CLUSTER_AUTHORIZATION_FAILED")
    assert len(connector.target.config_changes) == 1


def test_a_task_that_misses_a_topic_gets_a_refresh(connector: Connector) -> None:
    connector.source.add("t")
    connector.refresh()
    del connector.target.topics["a.t"]
    connector._schedule()
    connector._scheduler.run_due()
    assert "a.t" not in connector.target.topics
    connector.refresh_soon(["a.t"])
    connector._refresh_for_task()
    assert "a.t" in connector.target.topics


def test_a_refresh_for_a_task_that_fails_is_tried_again(connector: Connector) -> None:
    connector.source.add("t")
    connector.refresh_soon(["a.t"])
    connector.source.failures.append(TransportError("time-out"))
    with pytest.raises(TransportError):
        connector._refresh_for_task()
    connector._refresh_for_task()
    assert "a.t" in connector.target.topics


@pytest.mark.parametrize(
    ("location", "on_source", "on_target"),
    [
        ("source", ["mm2-offset-syncs.b.internal"], ["mm2-offset-map.a.internal"]),
        ("target", [], ["mm2-offset-syncs.a.internal", "mm2-offset-map.a.internal"]),
    ],
)
def test_topics_for_offset_syncs_are_created_and_told_to_the_tasks(
    location: str, on_source: list[str], on_target: list[str], tmp_path: Path
) -> None:
    settings = {
        "a->b.topics": "t",
        "a->b.offset-syncs.topic.location": location,
        "a->b.offset-syncs.topic.replication.factor": "2",
        "b.offset.storage.replication.factor": "5",
    }
    connector = Connector(tmp_path, settings)
    connector.source.add("t")
    connector._create_internal_topics()
    for admin, names in ((connector.source, on_source), (connector.target, on_target)):
        assert [topic.name for topic in admin.created] == names
        assert all(topic.configs == {"cleanup.policy": "compact"} for topic in admin.created)
        factors = {topic.name: topic.replication_factor for topic in admin.created}
        assert factors == {name: 2 if "syncs" in name else 5 for name in names}
    connector.refresh()
    orders = connector.orders(0)
    assert orders["offset_syncs_topic"] == (on_source + on_target)[0]
    assert orders["offset_map_topic"] == "mm2-offset-map.a.internal"


def test_internal_topics_that_are_refused_are_told_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_source_connector, "SOONEST_CREATE_SECONDS", 0.0)
    syncs = "mm2-offset-syncs.b.internal"
    connector = Connector(tmp_path, {"a->b.topics": "t", "refresh.topics.interval.seconds": "0"})
    connector.source.add("t")
    connector.source.refuses[syncs] = broker_error(f"create topic '{syncs}' on 'a'", 38)
    connector._schedule_internal_topics()
    assert "set offset-syncs.topic.replication.factor to at most" in connector.last_error
    assert f"[a->b] creating internal topics failed: create topic '{syncs}' on 'a'" in caplog.text
    connector.refresh()
    assert [topic.name for topic in connector.target.created] == [
        "mm2-offset-map.a.internal",
        "a.t",
    ]
    assert connector.fake_tasks[0].started == 1
    assert connector.degraded == connector.last_error
    del connector.source.refuses[syncs]
    wait_for(
        lambda: connector._scheduler.run_due() > 0 and not connector.last_error,
        within=10,
        describe="the next refresh",
    )
    assert [topic.name for topic in connector.source.created][:1] == [syncs]
    assert connector.degraded == ""


def test_without_offset_syncs_there_are_no_topics_for_them(tmp_path: Path) -> None:
    connector = Connector(tmp_path, {"a->b.topics": "t", "emit.offset-syncs.enabled": "false"})
    connector.source.add("t")
    connector._create_internal_topics()
    connector.refresh()
    assert [topic.name for topic in connector.source.created] == []
    assert [topic.name for topic in connector.target.created] == ["a.t"]
    orders = connector.orders(0)
    assert (orders["offset_syncs_topic"], orders["offset_map_topic"]) == ("", "")


def own_setting(name: str, value: str) -> TopicSetting:
    return TopicSetting(name, value, ConfigSource.DYNAMIC_TOPIC, read_only=False, sensitive=False)


def acl(topic: str) -> AclRule:
    """User:ann may read it."""
    return AclRule(2, topic, 3, "User:ann", "*", 3, 3)


def look_at_files(connector: Connector) -> None:
    for copy in connector._copies:
        copy._files_at = 0.0
    connector._look_at_files()


def test_tasks_elsewhere_get_stores_with_their_orders_and_when_they_change(tmp_path: Path) -> None:
    store = tmp_path / "trust.pem"
    store.write_text(make_ca().pem)
    settings = {
        "a.security.protocol": "SSL",
        "a.ssl.truststore.type": "PEM",
        "a.ssl.truststore.location": str(store),
        "tasks.max": "2",
    }
    connector = Connector(tmp_path, settings)
    connector.source.add("t", 2)
    connector.refresh()
    assert "files" not in connector.orders(0)  # in local mode tasks read them as the worker does
    clients = clients_of_tasks(connector.config, connector.spec.worker)
    for copy in connector._copies:
        copy._files = SecretFileSender(clients)
    connector.orders(1)
    assert list(connector.orders(0)["files"]) == [str(store)]
    look_at_files(connector)
    assert [task.sent for task in connector.fake_tasks] == [[], []]
    second = make_ca("another").pem
    store.write_text(second)
    look_at_files(connector)
    sent = {"type": "files", "files": {str(store): base64.b64encode(second.encode()).decode()}}
    assert [task.sent for task in connector.fake_tasks] == [[sent], [sent]]
