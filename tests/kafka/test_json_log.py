"""The log of a real mirror as JSON: each line parses and names its connector and task."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, produce
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import new_topic, number, wait_for_last

pytestmark = pytest.mark.kafka

SOURCE = "MirrorSourceConnector"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LIMIT_BYTES = 20_000


def test_every_line_is_an_object(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    produce(source_cluster, topic, [number(0), b"x" * (LIMIT_BYTES + 1), number(1)])
    settings = {"errors.tolerance": "all", "no.such.key": "1"}
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topic, settings)
    create_topic(target_cluster, mirror.remote(topic), config={"max.message.bytes": "10000"})
    with mirror.ending():
        mirror.start("--log-format", "json")
        wait_for_last(mirror, topic)
        mirror.wait_for_log("skipped, because")
        mirror.stop()
        lines: list[dict[str, Any]] = [json.loads(line) for line in mirror.log().splitlines()]
    assert all(TIME.fullmatch(line["time"]) and line["logger"] for line in lines)
    assert {line["level"] for line in lines} <= {"INFO", "WARNING"}
    flow = f"{mirror.alias}->target"
    [skipped] = [line for line in lines if line["message"].startswith("skipped, because")]
    assert (skipped["connector"], skipped["task"], skipped["flow"]) == (SOURCE, 0, flow)
    assert skipped["logger"] == "sparkmirror.spark.copy.rejections"
    assert (skipped["event"], skipped["topic"], skipped["partition"]) == ("skipped", topic, 0)
    started = [line.get("connector") for line in lines if line.get("event") == "started"]
    assert SOURCE in started
    [report] = [line for line in lines if "resume at their stored positions" in line["message"]]
    assert report["message"].startswith("1 partitions: 0 resume")
    assert (report["connector"], report["flow"], "task" in report) == (SOURCE, flow, False)
    assert lines[-1]["message"] == "stopped"
    about = [line for line in lines if mirror.alias in line["message"] and "flow" not in line]
    # The list of all flows, warnings about the file, and lines of the group that runs a flow.
    assert [
        line for line in about if not re.search("^flows: |properties|mm2", line["message"])
    ] == []


def test_lines_for_people_begin_as_those_of_connect(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    produce(source_cluster, topic, [number(0)])
    with Mirror(tmp_path, source_cluster, target_cluster, topic) as mirror:
        line = mirror.wait_for_log("resume at their stored positions")
        flow = f"{mirror.alias}->target"
        assert f" INFO [{SOURCE}|worker] {flow}: 1 partitions: 0 resume" in line
        line = mirror.wait_for_log("connector started")
        assert re.search(rf" INFO \[Mirror\w+Connector\|worker\] {flow}: connector started$", line)
        mirror.stop()
        assert "\x1b" not in mirror.log()
        assert not re.search(rf"\[{flow}[|\]]", mirror.log())
