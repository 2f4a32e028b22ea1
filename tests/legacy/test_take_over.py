"""`sparkmirror legacy` takes over from genuine MirrorMaker 1 and hands back, exactly."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, end_offset, produce, read_partition, wait_for
from tests.group_members import member
from tests.kafka.console_tools import run_tool
from tests.kafka.topics import delete_topic
from tests.legacy.mirrors import (
    COPY_SECONDS,
    Files,
    assert_same_records,
    mirror_maker_1,
    produce_keyed,
    source_ends,
    sparkmirror_legacy,
    sparkmirror_run,
    wait_until_copied,
)

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 3
RECORDS = 3000


@cache
def admin_of(cluster: KafkaCluster) -> AdminClient:
    """One for all questions: each has threads of its own."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def topics_of(cluster: KafkaCluster) -> set[str]:
    return set(admin_of(cluster).list_topics(timeout=30).topics)


def partitions_of(cluster: KafkaCluster, topic: str) -> int:
    return len(admin_of(cluster).list_topics(topic, timeout=30).topics[topic].partitions)


def add_partition(cluster: KafkaCluster, topic: str, count: int) -> None:
    """Let the topic have so many, and wait until each has a leader."""
    admin_of(cluster).create_partitions([NewPartitions(topic, count)])[topic].result(30)
    end_offset(cluster, topic, count - 1)


@pytest.mark.parametrize("version", ["3.9.1", "2.8.2"])
def test_mirror_maker_1_then_sparkmirror_then_mirror_maker_1(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path, version: str
) -> None:
    files = Files(tmp_path, source_cluster, target_cluster)
    topic, later = f"{files.prefix}-orders", f"{files.prefix}-heartbeats"
    for cluster in (source_cluster, target_cluster):
        create_topic(cluster, topic, partitions=PARTITIONS)
    produce_keyed(source_cluster, topic, range(RECORDS))

    with mirror_maker_1(files, version) as genuine:
        wait_until_copied(files, topic, PARTITIONS, genuine)
        genuine.stop()
    assert files.committed() == source_ends(files, topic, PARTITIONS)

    produce_keyed(source_cluster, topic, range(RECORDS, 2 * RECORDS))
    before = topics_of(source_cluster), topics_of(target_cluster)
    with sparkmirror_legacy(files) as ours:
        wait_until_copied(files, topic, PARTITIONS, ours)
        # MirrorMaker 2 would rename this one. Nothing but it and the positions is created.
        create_topic(source_cluster, later, partitions=2)
        produce_keyed(source_cluster, later, range(100))
        wait_for(
            lambda: later in topics_of(target_cluster),
            within=COPY_SECONDS,
            describe=lambda: f"{later} on the target; {ours.log_end()}",
        )
        add_partition(source_cluster, later, 3)
        produce(source_cluster, later, [b"in a new partition"], partition=2)
        wait_for(
            lambda: partitions_of(target_cluster, later) == 3,
            within=COPY_SECONDS,
            describe=lambda: f"the new partition on the target; {ours.log_end()}",
        )
        wait_until_copied(files, later, 3, ours)
        ends = source_ends(files, topic, PARTITIONS) | source_ends(files, later, 3)
        wait_for(
            lambda: files.committed() == ends,
            within=COPY_SECONDS,
            describe=lambda: f"{ends} committed; {files.committed()}; {ours.log_end()}",
        )
        produce_keyed(source_cluster, topic, range(2 * RECORDS, 2 * RECORDS + 50))
        wait_until_copied(files, topic, PARTITIONS, ours)
        ours.stop()
    assert files.committed() == (
        source_ends(files, topic, PARTITIONS) | source_ends(files, later, 3)
    )
    assert topics_of(source_cluster) - before[0] == {later}
    (positions,) = topics_of(target_cluster) - before[1] - {later}
    assert positions.startswith(f"mm2-offsets.{files.group}.")
    shown = run_tool(source_cluster, "kafka-consumer-groups", "--describe", "--group", files.group)
    lags = [line.split()[5] for line in shown if line.startswith(files.group)]
    assert lags == ["0"] * (PARTITIONS + 3)

    produce_keyed(source_cluster, topic, range(3 * RECORDS, 4 * RECORDS))
    with mirror_maker_1(files, version) as genuine:
        wait_until_copied(files, topic, PARTITIONS, genuine)
        genuine.stop()
    assert_same_records(files, topic, PARTITIONS)
    assert_same_records(files, later, 3)
    assert files.committed() == (
        source_ends(files, topic, PARTITIONS) | source_ends(files, later, 3)
    )


def test_another_process_takes_over_and_then_an_mm2_file(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    files = Files(tmp_path, source_cluster, target_cluster)
    topic = create_topic(source_cluster, f"{files.prefix}-orders", partitions=PARTITIONS)
    produce_keyed(source_cluster, topic, range(RECORDS))
    with sparkmirror_legacy(files) as first:
        wait_for(
            lambda: topic in topics_of(target_cluster),
            within=COPY_SECONDS,
            describe=lambda: f"{topic} on the target; {first.log_end()}",
        )
        wait_until_copied(files, topic, PARTITIONS, first)
        wait_for(
            lambda: files.committed() == source_ends(files, topic, PARTITIONS),
            within=COPY_SECONDS,
            describe=lambda: f"all is committed; {first.log_end()}",
        )
        with sparkmirror_legacy(files) as second:
            second.wait_for_log("stands by")
            first.kill()
            produce_keyed(source_cluster, topic, range(RECORDS, 2 * RECORDS))
            wait_until_copied(files, topic, PARTITIONS, second)
            second.stop()
            (line,) = [each for each in second.log.splitlines() if "has offsets of" in each]
    positions = line.rpartition("those in ")[2].strip("'")
    # Positions were stored and committed before the kill: nothing is there twice.
    assert_same_records(files, topic, PARTITIONS)

    made = subprocess.run(
        [sys.executable, "-m", "sparkmirror.cli.main", "legacy", *files.options, "--to-mm2"],
        capture_output=True,
        text=True,
        check=True,
    )
    file = tmp_path / "mm2.properties"
    file.write_text(f"{made.stdout}\ntarget.offset.storage.topic = {positions}\n")
    produce_keyed(source_cluster, topic, range(2 * RECORDS, 3 * RECORDS))
    with sparkmirror_run(file, "--resume-only") as mirror:
        wait_until_copied(files, topic, PARTITIONS, mirror)
        mirror.stop()
    assert_same_records(files, topic, PARTITIONS)


def test_it_ends_when_mirror_maker_1_is_started_beside_it(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    files = Files(tmp_path, source_cluster, target_cluster)
    topic = create_topic(source_cluster, f"{files.prefix}-orders")
    produce_keyed(source_cluster, topic, range(10))
    with sparkmirror_legacy(files) as ours:
        ours.wait_for_log("flows started")
        with member(source_cluster, topic, files.group):
            assert ours.wait() == 1
            assert f"group '{files.group}' has active members on 'source'" in ours.log
            with sparkmirror_legacy(files) as refused:
                assert refused.wait() == 1
                assert f"group '{files.group}' has active members on 'source'" in refused.log


def test_a_topic_that_was_replaced_while_nothing_ran_is_copied_from_its_start(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    files = Files(tmp_path, source_cluster, target_cluster)
    topic = create_topic(source_cluster, f"{files.prefix}-orders")
    produce(source_cluster, topic, [b"old"] * 50)
    with sparkmirror_legacy(files) as first:
        wait_for(
            lambda: files.committed() == source_ends(files, topic, 1),
            within=COPY_SECONDS,
            describe=lambda: f"all is committed; {first.log_end()}",
        )
        first.stop()
    delete_topic(source_cluster, topic)
    create_topic(source_cluster, topic)
    for records in (80, 10):
        produce(source_cluster, topic, [b"new"] * records)
        with sparkmirror_legacy(files) as again:
            wait_for(
                lambda: files.committed() == source_ends(files, topic, 1),
                within=COPY_SECONDS,
                describe=lambda: f"all is committed; {files.committed()}; {again.log_end()}",
            )
            again.stop()
    values = [record.value for record in read_partition(target_cluster, topic)]
    assert values == [b"old"] * 50 + [b"new"] * 90
