"""Child processes that write a log file, can be killed, paused, stopped, and leave nothing.

A tied child dies with this process. The kernel's parent-death signal is bound to the *thread*
that forked, so every tied child is started from one thread that lives as long as the process.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from sparkmirror.embedded import tied

STOP_SECONDS = 30.0
_KILL_SECONDS = 10.0
_TELLING = re.compile(r"\b(ERROR|FATAL)\b|Exception|Caused by")


class Child:
    """One started program. Not thread-safe: one owner starts, signals and stops it."""

    def __init__(self, popen: subprocess.Popen[bytes], log_path: Path) -> None:
        self._popen = popen
        self.log_path = log_path

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number if a signal ended it."""
        return self._popen.poll()

    def wait(self, timeout_seconds: float) -> int:
        """Wait until it has ended; its exit code."""
        return self._popen.wait(timeout_seconds)

    def send(self, signal_number: signal.Signals) -> None:
        """Signal the process; nothing happens if it has ended."""
        self._popen.send_signal(signal_number)

    def stop(self, within: float = STOP_SECONDS) -> None:
        """Ask it to end, and everything it started; kill what is left after `within` seconds."""
        stop_all([self], within)

    def kill(self) -> None:
        """End it and everything it started with SIGKILL."""
        stop_all([self], within=0.0)


def start_child(
    command: Sequence[str | Path],
    log_path: Path,
    *,
    environment: Mapping[str, str] | None = None,
    detached: bool = False,
) -> Child:
    """Start `command` in a session of its own, so that Ctrl-C reaches only the parent."""
    words = [str(word) for word in command]
    if detached:
        return _spawn(words, log_path, environment)
    launcher = [sys.executable, "-I", "-S", tied.__file__, str(os.getpid())]
    return _starter(os.getpid()).submit(_spawn, launcher + words, log_path, environment).result()


@functools.cache
def _starter(_process_id: int) -> ThreadPoolExecutor:
    # By process id, because a thread does not survive os.fork() into the child.
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="start-child")


def _spawn(words: list[str], log_path: Path, environment: Mapping[str, str] | None) -> Child:
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        popen = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=None if environment is None else {**os.environ, **environment},
            start_new_session=True,
        )
    return Child(popen, log_path)


def stop_all(children: Iterable[Child], within: float = STOP_SECONDS) -> None:
    """Stop several at once: terminate all, wait for all, kill what is left with its descendants."""
    trees = [(child, _descendants(child.pid)) for child in children]
    for child, _ in trees:
        if within > 0:
            # A paused process cannot answer SIGTERM.
            child.send(signal.SIGCONT)
            child.send(signal.SIGTERM)
    members = [psutil.Process(child.pid) for child, _ in trees if child.exit_code is None]
    members += [process for _, descendants in trees for process in descendants]
    if within > 0:
        _, members = psutil.wait_procs(members, timeout=within)
    end_processes(members)
    for child, _ in trees:
        child.wait(_KILL_SECONDS)


def end_processes(processes: Iterable[psutil.Process]) -> None:
    """Kill with SIGKILL and wait until they are gone."""
    alive = list(processes)
    for process in alive:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(alive, timeout=_KILL_SECONDS)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def log_tail(log_path: Path, lines: int = 5) -> str:
    """The last lines of a log that tell of an error, else simply the last, for a message."""
    if not log_path.exists():
        return f"({log_path} does not exist)"
    written = log_path.read_text(errors="replace").splitlines()
    telling = [line for line in written if _TELLING.search(line)]
    return "\n".join((telling or written)[-lines:])
