"""Children are stopped with all they started, and never outlive their parent."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from sparkmirror.embedded.process import (
    Child,
    end_processes,
    follow_log,
    is_alive,
    log_tail,
    pid_is_alive,
    start_child,
    stop_all,
    wait_gone,
)
from tests.clusters import wait_for

SLEEPS = ["/bin/sleep", "600"]
DEAF = ["/bin/bash", "-c", "trap '' TERM; echo deaf; while :; do sleep 600; done"]


def start_deaf(tmp_path: Path) -> Child:
    child = start_child(DEAF, tmp_path / "log")
    wait_for(lambda: "deaf" in child.log_path.read_text(), within=10, describe="the trap")
    return child


def test_stop_is_polite(tmp_path: Path) -> None:
    child = start_child(SLEEPS, tmp_path / "log")
    child.stop()
    assert child.exit_code == -signal.SIGTERM


def test_what_ignores_a_stop_is_killed_with_its_children(tmp_path: Path) -> None:
    child = start_deaf(tmp_path)
    wait_for(lambda: psutil.Process(child.pid).children(), within=10, describe="its child")
    (grandchild,) = psutil.Process(child.pid).children()
    child.stop(within=0.3)
    assert child.exit_code == -signal.SIGKILL
    assert not is_alive(grandchild)


def test_paused_child_can_be_stopped(tmp_path: Path) -> None:
    child = start_child(SLEEPS, tmp_path / "log")
    child.send(signal.SIGSTOP)
    child.stop()
    assert child.exit_code == -signal.SIGTERM


def test_stopping_twice_does_no_harm(tmp_path: Path) -> None:
    child = start_child(SLEEPS, tmp_path / "log")
    stop_all([child])
    stop_all([child])
    assert child.exit_code == -signal.SIGTERM


def test_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    children: list[Child] = []
    thread = threading.Thread(target=lambda: children.append(start_child(SLEEPS, tmp_path / "log")))
    thread.start()
    thread.join()
    (child,) = children
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.3)
    child.kill()


@pytest.mark.parametrize(("detached", "survives"), [(False, False), (True, True)])
def test_child_dies_with_a_killed_parent_unless_detached(
    tmp_path: Path, detached: bool, survives: bool
) -> None:
    program = (
        "import os, sys, pathlib; from sparkmirror.embedded.process import start_child\n"
        f"log = pathlib.Path({str(tmp_path / 'log')!r})\n"
        f"child = start_child({SLEEPS!r}, log, detached={detached})\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    parent = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False
    )
    assert parent.returncode == -signal.SIGKILL
    (pid,) = map(int, parent.stdout.split())
    if survives:
        alive = wait_gone([psutil.Process(pid)], within=0.5)
        end_processes(alive)
        assert alive
    else:
        wait_for(lambda: not pid_is_alive(pid), within=20, describe="the child has ended")


def test_log_is_followed_to_its_end(tmp_path: Path) -> None:
    child = start_child(["/bin/sh", "-c", "echo a; sleep 0.2; echo b"], tmp_path / "log")
    assert list(follow_log(child)) == ["a\n", "b\n"]
    assert child.exit_code == 0


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        pytest.param("one\ntwo\nthree\n", "two\nthree", id="no error: the last lines"),
        pytest.param("a\n[x] ERROR broken\nb\nc\n", "[x] ERROR broken", id="an error"),
        pytest.param("", "", id="empty"),
    ],
)
def test_log_tail_prefers_errors(tmp_path: Path, written: str, shown: str) -> None:
    (tmp_path / "log").write_text(written)
    assert log_tail(tmp_path / "log", lines=2) == shown


def test_log_tail_of_a_missing_file_says_so(tmp_path: Path) -> None:
    assert "does not exist" in log_tail(tmp_path / "log")
