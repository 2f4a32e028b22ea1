"""Downloads are complete or absent, even if interrupted.

A script takes Java's place: it counts its runs and writes one jar slowly, as Ivy would.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sparkmirror.embedded.kafka_jars import kafka_jars, module_description
from sparkmirror.embedded.kafka_releases import find_release
from sparkmirror.errors import ConfigError, MissingPart
from tests.clusters import wait_for

FAKE_JAVA = r"""#!/bin/bash
last=${!#}
case "$*" in
  -version) echo 'openjdk version "17.0.1"' >&2 ;;
  *-retrieve*)
    echo run >> "$FAKE/runs"
    if [ -e "$FAKE/fails-with" ]; then cat "$FAKE/fails-with"; exit 1; fi
    jars=$(dirname "$last")
    printf half > "$jars/kafka.jar"
    sleep "$(cat "$FAKE/seconds")"
    printf whole > "$jars/kafka.jar" ;;
  *StorageTool*)
    node=$(sed -n 's/^log.dirs=//p' "$last")
    mkdir -p "$node"
    printf first > "$node/bootstrap.checkpoint" ;;
esac
"""
PROGRAM = "import sys; from sparkmirror.embedded.kafka_jars import kafka_jars; kafka_jars()"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the script's home, its settings, and an empty cache."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(FAKE_JAVA)
    java.chmod(0o755)
    (tmp_path / "seconds").write_text("0")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FAKE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def runs(fake: Path) -> int:
    return len((fake / "runs").read_text().splitlines()) if (fake / "runs").exists() else 0


def start_download() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.DEVNULL)


def test_second_use_downloads_nothing(fake: Path) -> None:
    jars = kafka_jars()
    assert kafka_jars() == jars
    assert (jars.folder / "kafka.jar").read_text() == "whole"
    assert jars.bootstrap_checkpoint.read_text() == "first"
    assert runs(fake) == 1
    assert not list(jars.folder.parent.glob("*.part"))


def test_interrupted_download_is_done_again(fake: Path) -> None:
    (fake / "seconds").write_text("600")
    with start_download() as process:
        wait_for(lambda: runs(fake) == 1, within=20, describe="start of the download")
        os.kill(process.pid, signal.SIGKILL)
    assert not (fake / "cache/sparkmirror/kafka-4.3.1").exists()
    (fake / "seconds").write_text("0")
    jars = kafka_jars()
    assert (jars.folder / "kafka.jar").read_text() == "whole"
    assert runs(fake) == 2


def test_two_processes_download_once(fake: Path) -> None:
    (fake / "seconds").write_text("1")
    with start_download() as first, start_download() as second:
        assert (first.wait(30), second.wait(30)) == (0, 0)
    assert runs(fake) == 1


@pytest.mark.parametrize(
    ("ivy_says", "message"),
    [
        pytest.param(
            "Server access error at url https://...", "cannot be reached; check", id="no network"
        ),
        pytest.param(":: UNRESOLVED DEPENDENCIES ::", "does not have it", id="unknown version"),
        pytest.param(
            "java.io.IOException: No space left on device", "filled the disk", id="full disk"
        ),
        pytest.param("something new", "failed: see", id="anything else"),
    ],
)
def test_failed_download_says_what_to_do(fake: Path, ivy_says: str, message: str) -> None:
    (fake / "fails-with").write_text(ivy_says)
    with pytest.raises(MissingPart, match=message) as caught:
        kafka_jars()
    assert "\n" not in str(caught.value)
    assert not (fake / "cache/sparkmirror/kafka-4.3.1").exists()


@pytest.mark.parametrize("version", ["../4", "9.9", "9.9.9", "", "4", "4.3.x", "\u0664.3.1"])
def test_nonsense_version_is_rejected_before_the_network(fake: Path, version: str) -> None:
    with pytest.raises(ConfigError, match=r"unknown Kafka release; use one of 2\.1, .*, 4\.3,"):
        kafka_jars(version)
    assert runs(fake) == 0
    assert not (fake / "cache").exists()


@pytest.mark.parametrize("version", ["1.1.1", "2.0.1", "0.11.0"])
def test_release_before_2_1_is_rejected_before_the_network(fake: Path, version: str) -> None:
    with pytest.raises(ConfigError, match=r"older than 2.1, the oldest .*; use one of 2\.1, "):
        kafka_jars(version)
    assert runs(fake) == 0


@pytest.mark.parametrize(("line", "release"), [("2.8", "2.8.2"), ("2.8.1", "2.8.1")])
def test_a_line_means_its_last_release(line: str, release: str) -> None:
    assert str(find_release(line)) == release


def test_brokers_with_zookeeper_are_not_formatted(fake: Path) -> None:
    jars = kafka_jars("2.8")
    assert jars.folder.name == "kafka-2.8.2"
    assert not jars.bootstrap_checkpoint.exists()


@pytest.mark.parametrize(
    ("version", "backend"),
    [("4.3", "log4j-slf4j-impl"), ("3.9", "slf4j-reload4j"), ("2.4", "slf4j-log4j12")],
)
def test_every_release_comes_with_what_writes_its_log(version: str, backend: str) -> None:
    assert f'name="{backend}"' in module_description(find_release(version))


def test_old_releases_come_without_parts_that_were_never_published() -> None:
    assert module_description(find_release("4.3.1")).count('rev="4.3.1"') == 5
    assert module_description(find_release("2.4")).count('rev="2.4.1"') == 1
