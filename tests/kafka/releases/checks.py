"""What must hold for a broker of every release; the test files say which releases they run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from confluent_kafka.admin import AclOperation

from sparkmirror.demo import fills
from sparkmirror.demo.reading import read_topic
from sparkmirror.types import TopicPartition
from tests.clusters import create_topic, produce, unique_name, wait_for
from tests.group_offsets import committed_offsets
from tests.kafka import guarded_clusters
from tests.kafka.broker_failures import crash
from tests.kafka.guarded_clusters import DENY, rule
from tests.kafka.records import Feeder
from tests.kafka.releases.scene import (
    FORMATS,
    GROUP,
    NEW_SETTINGS,
    SEEDED,
    SMALL_SEGMENTS,
    Flow,
    Scene,
)
from tests.mm2_suite.topics import alter_configs, ends, own_configs

SECONDS = 60.0
# Brokers tell what a client may do since 2.3 (KIP-430), and can be asked whether it may write to a
# topic that is not there since 2.7.
TELLS_PERMISSIONS, TELLS_ALL = (2, 3), (2, 7)
PER_SECOND = 400


class ReleaseChecks:
    """Each test works alone, in any order, on the same clusters."""

    def test_records_are_equal_in_both_directions(self, scene: Scene) -> None:
        """Codecs, headers, compacted, transactional, broker's timestamps."""
        for flow in scene.flows:
            flow.wait_copied(*(row.name for row in SEEDED))

    def test_old_message_formats_are_copied(self, scene: Scene) -> None:
        from_old, _ = scene.flows
        if scene.knows_message_format:
            from_old.wait_copied(*FORMATS)
            times = {
                topic: {
                    record.content.timestamp_ms
                    for record in read_topic(
                        scene.old.bootstrap_servers, topic, read_committed=True
                    )[0]
                }
                for topic in FORMATS
            }
            # Otherwise the brokers have not written the format that the test is about.
            assert (times["format-0"] == {-1}) == scene.has_old_formats
            assert -1 not in times["format-1"]

    def test_group_offsets_are_exact(self, scene: Scene) -> None:
        for flow in scene.flows:
            flow.wait_copied("orders", "payments")
            wanted = {
                TopicPartition(flow.remote(where.topic), where.partition): _visible(
                    flow, where, offset
                )
                for where, offset in scene.committed.items()
            }
            _wait_for(partial(_group_offsets, flow, frozenset(wanted)), wanted)

    def test_settings_follow_and_those_that_are_refused_are_named_once(self, scene: Scene) -> None:
        from_old, to_old = scene.flows
        warned: list[str] = []
        if scene.has_small_segments:
            _wait_for(
                lambda: own_configs(scene.new, from_old.remote(SMALL_SEGMENTS)),
                {"segment.bytes": "1048576", "retention.ms": "-1"},
            )
            warned.append("segment.bytes")
        if scene.knows_message_format:
            _wait_for(lambda: own_configs(scene.new, from_old.remote("format-1")), {})
            warned.append("message.downconversion.enable")
        known = own_configs(scene.old, to_old.remote("new-settings"))
        assert known.pop("retention.ms") == "-1"
        assert known.items() <= NEW_SETTINGS.items()
        warned += NEW_SETTINGS.keys() - known.keys()
        output = re.findall(r"does not accept ([\w.]+)=", scene.mirror.log_path.read_text())
        assert sorted(output) == sorted(warned)

    def test_a_changed_setting_follows(self, scene: Scene) -> None:
        """Brokers before 2.3 know only AlterConfigs, which replaces all settings of a topic."""
        _, to_old = scene.flows
        before = own_configs(scene.new, "profiles")
        for change in ({"retention.bytes": "123456789"}, {"retention.bytes": None}):
            alter_configs(scene.new, "profiles", change)
            wanted = {**before, **change}
            _wait_for(
                lambda: own_configs(scene.old, to_old.remote("profiles")),
                {name: value for name, value in wanted.items() if value is not None},
            )

    def test_acls_follow(self, scene: Scene) -> None:
        for flow in scene.flows:
            source, target = map(guarded_clusters.Cluster, (flow.source, flow.target))
            rules = [
                rule("orders", AclOperation.READ),
                rule("orders", AclOperation.WRITE, DENY, "User:eve"),
                rule("orders", AclOperation.WRITE),
            ]
            source.create_acls(rules)
            remote = flow.remote("orders")
            # Who may write to the source may not write to the copy.
            copied = {each for each in rules if each is not rules[2]}
            wanted = {(remote, *each[1:]) for each in copied}
            _wait_for(partial(target.acls, remote), wanted)

    def test_check_names_the_release_and_misses_no_right(self, scene: Scene) -> None:
        done = _check(scene)
        report = json.loads(done.stdout)
        release = (scene.release.major, scene.release.minor)
        versions = [
            each["detail"]
            for cluster in report["clusters"]
            if cluster["cluster"] == scene.mirror.alias
            for each in cluster["checks"]
            if each["check"] == "version"
        ]
        assert set(versions) == {f"Kafka {release[0]}.{release[1]} or compatible"}
        states = {row["state"] for row in report["permissions"]}
        unknown = [row for row in report["permissions"] if row["state"] == "?"]
        assert "NO" not in states
        assert bool(unknown) == (release < TELLS_ALL)
        if release >= TELLS_PERMISSIONS:
            assert {row["operation"] for row in unknown} <= {"WRITE"}
        assert {row["cluster"] for row in unknown} <= {scene.mirror.alias}
        assert done.returncode == 0
        assert report["ok"]

    def test_a_restart_resumes_everywhere(self, scene: Scene) -> None:
        """And aborted records are copied too, by default."""
        topics = [row.name for row in SEEDED]
        for flow in scene.flows:
            flow.wait_copied(*topics)
        scene.mirror.stop()
        for flow in scene.flows:
            produce(flow.source, "orders", [b"while it was stopped"])
        for alias in ("SOURCE", "target"):
            scene.mirror.configure({f"{alias}.consumer.isolation.level": "read_uncommitted"})
        scene.mirror.start(until="2 flows started")
        resumed = re.findall(r"(\d+) resume at .* (\d+) start afresh", scene.mirror.log())
        assert len(resumed) == 2
        assert {fresh for _, fresh in resumed} == {"0"}
        late = unique_name("late")
        for flow in scene.flows:
            create_topic(flow.source, late, partitions=2)
            fills.fill_payments(flow.source.bootstrap_servers, late, 2)
        # Positions stand behind the last committed record: what was aborted after it comes now.
        for flow in scene.flows:
            flow.wait_copied(*(topic for topic in topics if topic != "payments"))
            flow.wait_copied(late, read_committed=False)

    def test_a_broker_that_is_killed_in_mid_copy_costs_no_record(self, scene: Scene) -> None:
        live = unique_name("live")
        for flow in scene.flows:
            create_topic(flow.source, live, partitions=2)
        with ExitStack() as stack:
            feeders = [
                stack.enter_context(Feeder(flow.source, live, 2, per_second=PER_SECOND))
                for flow in scene.flows
            ]
            wait_for(
                lambda: all(_is_copied(flow, live) for flow in scene.flows),
                within=SECONDS,
                describe="records of every partition are copied both ways",
            )
            crash(scene.old.brokers[0])
            written = [sum(feeder.counts) for feeder in feeders]
            wait_for(
                lambda: all(
                    sum(feeder.counts) > before + PER_SECOND
                    for feeder, before in zip(feeders, written, strict=True)
                ),
                within=SECONDS,
                describe="records are written after the crash",
            )
        for flow in scene.flows:
            flow.wait_survived(live, partitions=2)


def _group_offsets(flow: Flow, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
    found = committed_offsets(flow.target, GROUP)
    return {where: offset for where, offset in found.items() if where in partitions}


def _visible(flow: Flow, where: TopicPartition, offset: int) -> int:
    """How many records that are copied come before this offset: the offset on the target."""
    records = read_topic(flow.source.bootstrap_servers, where.topic, read_committed=True)
    return sum(record.offset < offset for record in records[where.partition])


def _is_copied(flow: Flow, topic: str) -> bool:
    found = ends(flow.target, [flow.remote(topic)])
    return bool(found) and all(found.values())


def _wait_for(read: Callable[[], object], wanted: object) -> None:
    wait_for(lambda: read() == wanted, within=SECONDS, describe=lambda: f"{wanted}; {read()}")


def _check(scene: Scene) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, "-m", "sparkmirror.cli.main", "check"]
    command += [scene.mirror.file, "--json"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
