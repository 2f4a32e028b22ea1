"""Children are stopped with all they started, and never outlive their parent."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sparkmirror.embedded.process import (
    Child,
    ManagedProcess,
    end_processes,
    follow_log,
    is_alive,
    log_tail,
    pid_is_alive,
    start_child,
    stop_all,
    stop_processes,
    wait_gone,
)
from sparkmirror.errors import KafkaError, LocalProtocolError
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


class Sleeper(ManagedProcess):
    """Ready once it has said so."""

    def try_ready(self) -> bool:
        return "up" in self.log_path.read_text()


def sleeper(folder: Path, script: str = "echo up; exec sleep 600") -> Sleeper:
    return Sleeper("the sleeper", folder / "log", ["/bin/sh", "-c", script])


def test_a_managed_process_lives_in_its_block(tmp_path: Path) -> None:
    with sleeper(tmp_path) as process:
        pid = process.pid
        assert (process.running_pid, process.exit_code) == (pid, None)
        assert process.start().pid == pid  # it runs already
    assert (process.is_running, process.running_pid) == (False, None)
    assert process.exit_code == -signal.SIGTERM
    process.start()
    assert process.pid != pid
    process.kill()
    assert process.exit_code == -signal.SIGKILL
    process.kill()


def test_one_that_ends_before_it_is_ready_says_why(tmp_path: Path) -> None:
    match = r"start the sleeper: it ended with exit code 3; [^$]*no bed"
    with pytest.raises(KafkaError, match=match), sleeper(tmp_path, "echo no bed; exit 3"):
        raise AssertionError("it is not ready")


def test_one_that_is_never_ready_is_not_left_behind(tmp_path: Path) -> None:
    class Never(Sleeper):
        """Fails to say whether it is ready."""

        def try_ready(self) -> bool:
            raise KafkaError("no answer")

    process = Never("never", tmp_path / "log", SLEEPS)
    with pytest.raises(KafkaError, match="no answer"), process:
        raise AssertionError("it is not ready")
    assert process.exit_code == -signal.SIGKILL


def test_pause_and_resume(tmp_path: Path) -> None:
    with sleeper(tmp_path) as process:
        state = psutil.Process(process.pid)
        process.pause()
        wait_for(lambda: state.status() == psutil.STATUS_STOPPED, within=10, describe="it stands")
        process.resume()
        wait_for(lambda: state.status() != psutil.STATUS_STOPPED, within=10, describe="it moves")


def test_what_was_never_started_cannot_be_asked(tmp_path: Path) -> None:
    process = sleeper(tmp_path)
    assert (process.is_running, process.running_pid) == (False, None)
    process.stop()
    asks: tuple[Callable[[], object], ...] = (
        lambda: process.pid,
        lambda: process.exit_code,
        process.pause,
        process.resume,
    )
    for ask in asks:
        with pytest.raises(LocalProtocolError, match="the sleeper was not started"):
            ask()


def test_several_are_stopped_at_once(tmp_path: Path) -> None:
    both = [sleeper(tmp_path / str(number)) for number in range(2)]
    for process in both:
        process.start()
    stop_processes([*both, sleeper(tmp_path / "never-started")])
    assert [process.exit_code for process in both] == [-signal.SIGTERM] * 2
