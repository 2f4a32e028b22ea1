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
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from sparkmirror.embedded import tied

STOP_SECONDS = 30.0
_KILL_SECONDS = 10.0
_FOLLOW_SECONDS = 0.1
_POLL_SECONDS = 0.02
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
    """Start `command` in a separate session, so that Ctrl-C reaches only the parent."""
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


def follow_log(child: Child) -> Iterator[str]:
    """The lines of the child's log as they are written, until it has ended."""
    with child.log_path.open(errors="replace") as log:
        ended = False
        while not ended:
            # Asked before reading: what was written until then is read below.
            ended = child.exit_code is not None
            yield from log
            if not ended:
                time.sleep(_FOLLOW_SECONDS)


def stop_all(children: Iterable[Child], within: float = STOP_SECONDS) -> None:
    """Stop several at once: terminate all, wait for all, kill what is left with its descendants."""
    stopping = list(children)
    descendants = [process for child in stopping for process in _descendants(child.pid)]
    deadline = time.monotonic() + within
    if within > 0:
        for child in stopping:
            # A paused process cannot react to SIGTERM.
            child.send(signal.SIGCONT)
            child.send(signal.SIGTERM)
        while any(child.exit_code is None for child in stopping) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    for child in stopping:
        child.send(signal.SIGKILL)
        # Not with psutil: the first waiter takes the exit code.
        child.wait(_KILL_SECONDS)
    end_processes(wait_gone(descendants, deadline - time.monotonic()))


def end_processes(processes: Iterable[psutil.Process]) -> None:
    """Kill with SIGKILL and wait until they are gone."""
    alive = [process for process in processes if is_alive(process)]
    for process in alive:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    wait_gone(alive, _KILL_SECONDS)


def wait_gone(processes: Iterable[psutil.Process], within: float) -> list[psutil.Process]:
    """Wait for processes that are not children of this one; those still there at the end."""
    deadline = time.monotonic() + within
    left = [process for process in processes if is_alive(process)]
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = [process for process in left if is_alive(process)]
    return left


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs. A zombie does not: in a container, it may never be reaped."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_is_alive(pid: int) -> bool:
    """Whether a process of that id runs."""
    try:
        return is_alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def log_tail(log_path: Path, lines: int = 5) -> str:
    """The last lines of a log that report an error, else the very last ones, for a message."""
    if not log_path.exists():
        return f"({log_path} does not exist)"
    written = log_path.read_text(errors="replace").splitlines()
    telling = [line for line in written if _TELLING.search(line)]
    return "\n".join((telling or written)[-lines:])
