"""Spark inside the process, as it is by default: console, web page, slots, failures."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import ReservedPort
from tests.clusters import create_topic, end_offset, produce, wait_for
from tests.kafka.mirror_process import STOP_SECONDS, Mirror, assert_gone
from tests.kafka.records import assert_identical, fill, new_topic, wait_for_end, wait_until_copied

pytestmark = pytest.mark.kafka

LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING|ERROR) ")
# Loopback only, so that no proxy setting of the environment gets in between.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@pytest.fixture
def port() -> Iterator[int]:
    """For Spark's page."""
    with ReservedPort() as reserved:
        yield reserved.number


def ask(port: int, path: str) -> Any:
    """Spark's own REST API."""
    with _opener.open(f"http://127.0.0.1:{port}/api/v1/applications{path}", timeout=20) as response:
        return json.load(response)


def test_console_has_only_our_lines_and_sparks_page_reads_well(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path, port: int
) -> None:
    topic = new_topic(source_cluster, partitions=2)
    fill(source_cluster, topic, 100)
    settings = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.app.name": "our app",
        "tasks.max": "2",
    }
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        wait_until_copied(mirror, topic)
        [application] = ask(port, "")
        jobs = ask(port, f"/{application['id']}/jobs")
        mirror.stop()
        assert_identical(mirror, topic)
        strange = [line for line in mirror.log().splitlines() if not LOG_LINE.match(line)]
    assert strange == []
    assert "Spark:" not in mirror.log()
    assert application["name"] == "our app"
    assert {(job["status"], job["description"]) for job in jobs} == {
        ("SUCCEEDED", "Load what copy tasks need"),
        *(
            ("RUNNING", f"Copy {mirror.alias}->target (MirrorSourceConnector-{at})")
            for at in range(2)
        ),
    }


@pytest.mark.long
def test_missing_slots_are_logged_and_do_not_hinder_the_others(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster, partitions=3)
    for at in range(3):
        fill(source_cluster, topic, 10, partition=at)
    settings = {"spark.master": "local[1]", "tasks.max": "3"}
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        mirror.wait_for_log("has 1 slots for 3 tasks, 2 missing; add executors or cores")
        remote = mirror.remote(topic)
        wait_for(
            lambda: sorted(end_offset(target_cluster, remote, at) for at in range(3)) == [0, 0, 10],
            within=30,
            describe="one of three partitions is copied",
        )
        assert mirror.log().count("UNASSIGNED") == 2
        assert mirror.stop() < STOP_SECONDS


@pytest.mark.long
def test_failing_task_is_restarted_with_growing_waits_until_it_works(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path, port: int
) -> None:
    topic = new_topic(source_cluster)
    settings = {"spark.ui.port": str(port), "errors.tolerance": "none"}
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topic, settings)
    create_topic(target_cluster, mirror.remote(topic), config={"max.message.bytes": "1000"})
    produce(source_cluster, topic, [b"1", b"2" * 5000, b"3"])
    with mirror:
        first = mirror.wait_for_log("starting it again in 1 s")
        second = mirror.wait_for_log("starting it again in 2 s")
        assert "FAILED: RefusedError: " in first
        assert "FAILED: RefusedError: " in second
        assert f"offsets 1 to 1 of {topic}-0" in first
        assert "errors.tolerance=all" in first
        # Spark's page is off by default.
        with pytest.raises(urllib.error.URLError):
            ask(port, "")
        _set_max_bytes(target_cluster, mirror.remote(topic), "100000")
        wait_for_end(mirror, topic, 3)
        assert mirror.stop() < STOP_SECONDS
        assert_identical(mirror, topic)


def test_worker_ends_when_spark_is_gone(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 10)
    with Mirror(tmp_path, source_cluster, target_cluster, topic) as mirror:
        wait_until_copied(mirror, topic)
        processes = mirror.processes()
        [jvm] = [process for process in processes if process.name() == "java"]
        jvm.kill()
        line = mirror.wait_for_log("has stopped")
        assert mirror._running().wait(STOP_SECONDS) == 1
        assert_gone(processes)
    assert re.match(r"sparkmirror: Spark \(local.*its JVM has ended.*; restart sparkmirror", line)


def _set_max_bytes(cluster: KafkaCluster, topic: str, value: str) -> None:
    change = ConfigEntry("max.message.bytes", value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for response in admin.incremental_alter_configs([resource]).values():
        response.result(30)
