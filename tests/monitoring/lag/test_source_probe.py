"""What is asked of clusters: stored positions, ends of logs, single timestamps, retention."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.batches.records import Record, encode
from sparkmirror.connect.entities import TargetState
from sparkmirror.errors import BrokerError, TransportError
from sparkmirror.mirror.positions.partitioner import partition_for_key
from sparkmirror.mirror.records import encode_offset_key, encode_offset_value
from sparkmirror.monitoring.lag import source_probe
from sparkmirror.monitoring.lag.partition_lag import Retention
from sparkmirror.monitoring.lag.source_flows import SourceFlow, SourceFlows
from sparkmirror.monitoring.lag.source_probe import Probe, SourceProbe, Wanted
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import TopicSetting, TopicView
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.monitoring.lag.fakes import NAME, T0, T1, Clock, World
from tests.wire.fake_broker import FETCH, LIST_OFFSETS, FakeCluster

KEY = ("", NAME)
PARTITIONS = 3


class FakeAdmin:
    """What brokers say that the fake clusters do not."""

    described: list[tuple[Sequence[str], Sequence[str] | None]]
    settings: dict[str, list[TopicSetting] | BrokerError]
    error: TransportError | None
    views: int

    def __init__(self, config: object, timeout_ms: int) -> None:
        del config, timeout_ms

    def describe_topic_configs(
        self, topics: Iterable[str], keys: Sequence[str] | None = None
    ) -> dict[str, list[TopicSetting] | BrokerError]:
        names = list(topics)
        FakeAdmin.described.append((names, keys))
        if FakeAdmin.error is not None:
            raise FakeAdmin.error
        return {name: FakeAdmin.settings[name] for name in names if name in FakeAdmin.settings}

    def view_topic(self, name: str) -> TopicView | None:
        FakeAdmin.views += 1
        return TopicView(PARTITIONS, b"") if name == "offsets" else None

    def close(self) -> None:
        """Nothing is open."""


class Rig:
    """Two fake clusters, a connector that is paused, and its probe."""

    def __init__(self, folder: Path, source: FakeCluster, target: FakeCluster) -> None:
        self.source, self.target = source, target
        self.clock = Clock(time.time())
        self.world = World(folder, source.bootstrap_servers[0], target.bootstrap_servers[0])
        self.probe = SourceProbe(self.clock, self.clock)

    def flow(self) -> SourceFlow:
        (flow,) = SourceFlows().of([self.world.group])
        return flow

    def store(self, tp: TopicPartition, next_offset: int) -> None:
        """A position, as a task does."""
        key = encode_offset_key(NAME, "a", tp.topic, tp.partition)
        record = Record(0, 1, key, encode_offset_value(next_offset - 1))
        at = partition_for_key(key, PARTITIONS)
        self.target.log("offsets", at).append(bytes(encode([record])))

    def write(self, *ages: float, tp: TopicPartition = T0) -> None:
        """One batch for each."""
        for age in ages:
            at = int((self.clock.now - age) * 1000)
            batch = encode([Record(0, at, None, b"v"), Record(1, at + 500, None, b"v")])
            self.source.log(tp.topic, tp.partition).append(bytes(batch))

    def look(self, *partitions: TopicPartition, position: int | None = None) -> dict[str, Probe]:
        self.probe.look([Wanted(self.flow(), dict.fromkeys(partitions, position))])
        found = {tp: self.probe.seen(KEY, tp) for tp in (T0, T1)}
        return {str(tp): probe for tp, probe in found.items() if probe is not None}

    def age(self, probe: Probe) -> float | None:
        return None if probe.oldest_ms is None else self.clock.now - probe.oldest_ms / 1000


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(source_probe, "Admin", FakeAdmin)
    FakeAdmin.described, FakeAdmin.settings, FakeAdmin.error, FakeAdmin.views = [], {}, None, 0
    with FakeCluster() as source, FakeCluster() as target:
        source.create_topic("t", partitions=2)
        target.create_topic("offsets", partitions=PARTITIONS)
        yield Rig(tmp_path, source, target)


def test_of_a_partition_that_waits_all_is_found(rig: Rig) -> None:
    rig.write(100, 50, 10)
    rig.store(T0, 2)
    found = rig.look(T0)["t-0"]
    assert (found.position, found.start, found.end, found.problem) == (2, 0, 6, "")
    assert rig.age(found) == pytest.approx(50, abs=0.01)


def test_a_partition_at_its_end_has_no_oldest_record(rig: Rig) -> None:
    rig.write(100)
    rig.store(T0, 2)
    found = rig.look(T0)["t-0"]
    assert (found.position, found.end, found.oldest_ms) == (2, 2, None)
    assert rig.source.sent(FETCH) == []


def test_a_single_timestamp_is_asked_for_once(rig: Rig) -> None:
    rig.write(100)
    rig.store(T0, 0)
    rig.look(T0)
    fetches = len(rig.source.sent(FETCH))
    assert fetches
    rig.write(5)
    found = rig.look(T0)["t-0"]
    assert found.end == 4
    assert rig.age(found) == pytest.approx(100, abs=0.01)
    assert len(rig.source.sent(FETCH)) == fetches


def test_where_retention_was_first_it_is_that_of_the_first_record_left(rig: Rig) -> None:
    rig.write(100, 50, 10)
    rig.source.log("t", 0).delete_before(4)
    rig.store(T0, 2)
    found = rig.look(T0)["t-0"]
    assert (found.position, found.start, found.first_missing) == (2, 4, 4)
    assert rig.age(found) == pytest.approx(10, abs=0.01)


def test_a_partition_without_a_position_begins_by_auto_offset_reset(rig: Rig) -> None:
    rig.write(100)
    found = rig.look(T0, T1)
    assert (found["t-0"].position, found["t-1"].position, found["t-1"].end) == (0, 0, 0)
    rig.world.config["consumer.auto.offset.reset"] = "latest"
    rig.world.config["source.consumer.auto.offset.reset"] = "latest"
    rig.world.configs.put_connector(NAME, dict(rig.world.config), None)
    assert rig.look(T0)["t-0"].position is None


def test_a_position_behind_the_end_is_of_another_log(rig: Rig) -> None:
    rig.write(100)
    rig.store(T0, 500)
    found = rig.look(T0)["t-0"]
    assert (found.position, found.end) == (0, 2)


def test_a_running_tasks_position_counts_more_than_the_stored_one(rig: Rig) -> None:
    rig.write(100, 50)
    rig.store(T0, 0)
    found = rig.look(T0, position=2)["t-0"]
    assert found.position == 2
    assert rig.age(found) == pytest.approx(50, abs=0.01)
    assert FakeAdmin.views == 0


def test_stored_positions_are_read_once_a_minute(rig: Rig) -> None:
    rig.write(100)
    rig.store(T0, 1)
    rig.look(T0)
    rig.store(T0, 2)
    assert rig.look(T0)["t-0"].position == 1
    rig.clock.now += 61
    assert rig.look(T0)["t-0"].position == 2
    rig.store(T0, 1)
    rig.probe.look([Wanted(rig.flow(), {T0: None})], is_fresh=True)
    found = rig.probe.seen(KEY, T0)
    assert found is not None
    assert found.position == 1


def test_a_stopped_connector_has_what_its_positions_name(rig: Rig) -> None:
    rig.world.want(TargetState.STOPPED)
    rig.write(100)
    rig.store(T0, 1)
    found = rig.look()
    assert found.keys() == {"t-0"}
    assert rig.probe.partitions(KEY) == [T0]
    assert rig.age(found["t-0"]) == pytest.approx(100, abs=0.01)


def test_a_source_that_does_not_respond_is_named(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_probe, "SECONDS", 0.3)
    rig.store(T0, 1)
    rig.source.stop_node(1)
    found = rig.look(T0)["t-0"]
    assert (found.position, found.end) == (1, None)
    assert "no response within 0.3 s" in found.problem
    assert rig.source.sent(LIST_OFFSETS) == []


def test_what_is_not_wanted_any_more_is_forgotten(rig: Rig) -> None:
    rig.store(T0, 1)
    rig.look(T0)
    rig.probe.look([])
    assert rig.probe.seen(KEY, T0) is None
    assert rig.probe.partitions(KEY) == []


def setting(name: str, value: str) -> TopicSetting:
    return TopicSetting(name, value, 5, False, False)


def test_retention_is_asked_for_every_five_minutes_and_for_new_topics(rig: Rig) -> None:
    FakeAdmin.settings = {
        "t": [setting("cleanup.policy", "delete"), setting("retention.ms", "60000"),
              setting("retention.bytes", "-1")],
        "u": [setting("cleanup.policy", "compact"), setting("retention.ms", "-1"),
              setting("retention.bytes", "1000")],
        "denied": broker_error("describe", 29),
    }  # fmt: skip
    rig.probe.look_at_retention(rig.flow(), {"t"})
    assert rig.probe.retention(KEY, "t") == Retention("delete", 60_000, None)
    rig.probe.look_at_retention(rig.flow(), {"t", "u", "denied"})
    assert rig.probe.retention(KEY, "u") == Retention("compact", None, 1000)
    assert rig.probe.retention(KEY, "denied") is None
    rig.probe.look_at_retention(rig.flow(), {"t", "u", "denied"})
    rig.clock.now += 301
    rig.probe.look_at_retention(rig.flow(), {"t", "u"})
    keys = source_probe.RETENTION_KEYS
    assert FakeAdmin.described == [(["t"], keys), (["denied", "u"], keys), (["t", "u"], keys)]
    rig.probe.forget([KEY])
    assert rig.probe.retention(KEY, "t") is None


def test_retention_that_cannot_be_asked_for_stays_as_it_was_known(rig: Rig) -> None:
    FakeAdmin.error = TransportError("gone")
    rig.probe.look_at_retention(rig.flow(), {"t"})
    assert rig.probe.retention(KEY, "t") is None
    FakeAdmin.error = None
    FakeAdmin.settings = {"t": [setting("retention.ms", "5")]}
    rig.probe.look_at_retention(rig.flow(), {"t"})
    assert rig.probe.retention(KEY, "t") is None  # not at once again
    rig.clock.now += 61
    rig.probe.look_at_retention(rig.flow(), {"t"})
    assert rig.probe.retention(KEY, "t") == Retention("", 5, None)
    FakeAdmin.error = TransportError("gone")
    rig.clock.now += 301
    rig.probe.look_at_retention(rig.flow(), {"t"})
    assert rig.probe.retention(KEY, "t") == Retention("", 5, None)


def test_a_connector_whose_settings_cannot_be_used_is_left_out(rig: Rig) -> None:
    config: dict[str, Any] = {**rig.world.config, "tasks.max": "many"}
    rig.world.configs.put_connector(NAME, config, None)
    assert rig.look(T0) == {}
    rig.probe.look_at_retention(rig.flow(), {"t"})
    assert FakeAdmin.described == []
