"""`sparkmirror kafka` as people and scripts use it: one process per command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sparkmirror.embedded.probe import ask
from sparkmirror.embedded.process import end_processes, pid_is_alive


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A separate state folder; processes that still run from it at the end are killed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path / "sparkmirror" / "kafka"
    files = list(tmp_path.rglob("cluster.json"))
    pids = [pid for file in files for pid in json.loads(file.read_text())["pids"]]
    end_processes(psutil.Process(pid) for pid in pids if pid_is_alive(pid))


def kafka(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sparkmirror.cli.main", "kafka", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.kafka
def test_start_status_stop_round_trip(state: Path) -> None:
    started = kafka("start", "--name", "demo", "--json")
    assert started.returncode == 0, started.stderr
    cluster = json.loads(started.stdout)
    assert list(cluster) == ["name", "bootstrap_servers", "log_dir", "pids"]
    assert cluster["name"] == "demo"
    assert cluster["log_dir"] == str(state / "demo")
    host, port = cluster["bootstrap_servers"].split(":")
    assert ask(host, int(port)).node_ids == (1,)

    assert json.loads(kafka("status", "--json").stdout) == [{**cluster, "running": True}]
    named = kafka("status", "--name", "demo", "--json")
    assert (named.returncode, len(json.loads(named.stdout))) == (0, 1)
    again = kafka("start", "--name", "demo")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert f"is running on {cluster['bootstrap_servers']}" in again.stderr

    stopped = kafka("stop", "--name", "demo", "--json")
    assert stopped.returncode == 0, stopped.stderr
    assert json.loads(stopped.stdout) == {**cluster, "kept": False}
    assert not any(pid_is_alive(pid) for pid in cluster["pids"])
    assert not (state / "demo").exists()
    assert json.loads(kafka("status", "--json").stdout) == []


@pytest.mark.kafka
def test_a_cluster_that_was_kept_comes_back_on_its_ports(state: Path) -> None:
    words = ("start", "--name", "kept", "--brokers", "2", "--json")
    before = json.loads(kafka(*words).stdout)["bootstrap_servers"]
    assert kafka("stop", "--name", "kept", "--keep").returncode == 0
    again = kafka(*words)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["bootstrap_servers"] == before
    assert kafka("stop", "--name", "kept").returncode == 0
    assert not (state / "kept").exists()


@pytest.mark.usefixtures("state")
def test_scripts_learn_from_the_exit_code_whether_a_cluster_runs() -> None:
    done = kafka("status", "--name", "none")
    text = "No Kafka cluster 'none' was started with `sparkmirror kafka start`.\n"
    assert (done.returncode, done.stdout) == (1, text)
    done = kafka("status", "--name", "none", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (1, [])
    assert kafka("status").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(("stop", "--name", "none"), 2, "no cluster of that name", id="unknown name"),
        pytest.param(("start", "--name", "../up"), 2, "use letters, digits", id="path as name"),
        pytest.param(("start",), 2, "--name", id="no name"),
        pytest.param(("start", "--name", "x", "--brokers", "4"), 2, "--brokers", id="too many"),
    ],
)
def test_wrong_use_is_reported(
    state: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = kafka(*words)
    assert done.returncode == code
    assert message in done.stderr
    assert not list(state.glob("*/broker-*"))


@pytest.mark.parametrize("version", ["9.9", "9.9.9", "1.1.1", "newest", ""])
def test_a_version_that_cannot_be_run_is_reported_and_nothing_is_written(
    state: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(state.parent / "cache"))
    done = kafka("start", "--name", "x", "--version", version)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"sparkmirror: version={version}: ")
    assert "use one of 2.1, 2.2, 2.3, " in line
    assert ", 4.3, or a release of one of these, such as 2.1.1" in line
    assert not state.parent.exists()


def test_missing_java_is_one_line(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(state / "nowhere"))
    done = kafka("start", "--name", "x")
    assert done.returncode == 1
    assert done.stderr == (
        f"sparkmirror: JAVA_HOME is {state / 'nowhere'} but has no bin/java: "
        "install a Java 17 or newer and put it on PATH or set JAVA_HOME\n"
    )
