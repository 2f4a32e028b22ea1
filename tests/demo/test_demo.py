"""The whole demo as a person runs it, with sparkmirror and with genuine MirrorMaker 2."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sparkmirror.demo.seed import LATE, TOPICS
from tests.clusters import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(420)]


def start_demo(folder: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    """The command, with everything it writes in `folder`."""
    return subprocess.Popen(
        [sys.executable, "-m", "sparkmirror.cli.main", "demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "KEEP": "0", **environment},
    )


def entries(folder: Path) -> Sequence[Path]:
    return list(folder.glob("sparkmirror-demo-*"))


def test_demo_finds_an_exact_copy(tmp_path: Path) -> None:
    with start_demo(tmp_path, "--json") as demo:
        output, story = demo.communicate()
    assert demo.returncode == 0, f"{output}\n{story}"
    result = json.loads(output)
    assert (result["ok"], result["missing"], result["different"]) == (True, 0, 0)
    assert {topic["topic"] for topic in result["topics"]} == {row.name for row in (*TOPICS, LATE)}
    assert all(topic["same"] for topic in result["topics"])
    assert result["restart"]["copied_twice"] == 0
    assert result["restart"]["new_records"] > 0
    assert len(result["stop_seconds"]) == 2
    assert entries(tmp_path) == []


def test_demo_that_cannot_start_says_why(tmp_path: Path) -> None:
    with start_demo(tmp_path, "--json", JAVA_HOME=str(tmp_path)) as demo:
        output, story = demo.communicate(timeout=60)
    result = json.loads(output)
    assert (demo.returncode, result["ok"]) == (1, False)
    assert "Start two Kafka" in result["error"]
    assert "has no bin/java" in result["error"]
    assert story.startswith("failed")
    assert entries(tmp_path) == []


@pytest.mark.parametrize(
    "options", [("--set", "tasks.max"), ("--engine", "mm3")], ids=["no value", "no engine"]
)
def test_wrong_options_are_rejected_before_anything_starts(
    tmp_path: Path, options: Sequence[str]
) -> None:
    with start_demo(tmp_path, *options) as demo:
        _, story = demo.communicate(timeout=60)
    assert demo.returncode == 2
    assert options[1] in story
    assert entries(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with start_demo(tmp_path) as demo:
        wait_for(
            lambda: list(tmp_path.glob("*/target/broker-1/log")),
            within=60,
            describe="the second broker is started",
        )
        demo.send_signal(number)
        demo.communicate(timeout=60)
    assert demo.returncode != 0
    assert entries(tmp_path) == []
