"""Child processes that write a log file and can be killed, paused and stopped without leftovers.

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
from typing import Self

import psutil

from sparkmirror.embedded import tied
from sparkmirror.errors import KafkaError, LocalProtocolError
from sparkmirror.retry import wait_for

STOP_SECONDS = 30.0
READY_SECONDS = 90.0
_KILL_SECONDS = 10.0
_FOLLOW_SECONDS = 0.1
_POLL_SECONDS = 0.02
_ERROR_LINE = re.compile(r"\b(ERROR|FATAL)\b|Exception|Caused by")


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
        """None while it runs; the negative signal number if a signal ended it."""
        return self._popen.poll()

    def wait(self, timeout_seconds: float) -> int:
        """Wait until it has ended; returns its exit code."""
        return self._popen.wait(timeout_seconds)

    def send(self, signal_number: signal.Signals) -> None:
        """Signal the process; no effect if it has ended."""
        self._popen.send_signal(signal_number)

    def stop(self, within: float = STOP_SECONDS) -> None:
        """Terminate it and all that it started; kill what still runs after `within` seconds."""
        stop_all([self], within)

    def kill(self) -> None:
        """Kill it and everything that it started."""
        stop_all([self], within=0.0)


class ManagedProcess:
    """A program with a name and a log, in a `with` block or started and stopped by its owner.

    It may be started again after its end. Subclasses define its command, when it is ready and how
    it is stopped. Not thread-safe: one owner starts, signals and stops it.
    """

    def __init__(
        self,
        title: str,
        log_path: Path,
        command: Sequence[str | Path] = (),
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`title` is for messages; `environment` is added to that of this process."""
        self.title = title
        self.log_path = log_path
        self._command = command
        self._environment = environment
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """The id of the process that was started last."""
        return self._started().pid

    @property
    def running_pid(self) -> int | None:
        """The id of the running process, or None."""
        return self.pid if self.is_running else None

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process that was started last; None before its end."""
        return self._started().exit_code

    def command(self) -> Sequence[str | Path]:
        """The command of the next start."""
        return self._command

    def start(self, *, detached: bool = False) -> Self:
        """Start the process, unless it runs; `wait_ready` waits until it can be used."""
        if not self.is_running:
            self._child = start_child(
                self.command(), self.log_path, environment=self._environment, detached=detached
            )
        return self

    def wait_ready(self, within: float = READY_SECONDS) -> None:
        """Return once it can be used. Raises KafkaError when it ends instead."""
        wait_for(self._check_ready, within=within, describe=self._describe)

    def try_ready(self) -> bool:
        """Whether it can be used; called while it runs."""
        return True

    def stop(self, within: float = STOP_SECONDS) -> float:
        """Terminate it and all that it started; kill what still runs after `within` seconds.

        Returns the seconds that it took.
        """
        began = time.monotonic()
        stop_processes([self], within)
        return time.monotonic() - began

    def kill(self) -> None:
        """Kill it with SIGKILL, like a crash."""
        stop_processes([self], within=0.0)

    def pause(self) -> None:
        """SIGSTOP: connections stay open, but nothing responds."""
        self._started().send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        self._started().send(signal.SIGCONT)

    def __enter__(self) -> Self:
        try:
            self.start()
            self.wait_ready()
        except BaseException:  # also Ctrl-C: no process is left behind
            self.stop(within=0.0)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _started(self) -> Child:
        if self._child is None:
            raise LocalProtocolError(f"{self.title} was not started ({self.log_path})")
        return self._child

    def _check_ready(self) -> bool:
        if not self.is_running:
            raise KafkaError(
                f"start {self.title}: it ended with exit code {self.exit_code}; "
                f"{self.log_path} ends:\n{log_tail(self.log_path)}"
            )
        return self.try_ready()

    def _describe(self) -> str:
        return f"{self.title} is ready; {self.log_path} ends:\n{log_tail(self.log_path)}"


def stop_processes(processes: Iterable[ManagedProcess], within: float = STOP_SECONDS) -> None:
    """Stop several at once with `stop_all`, except those that were never started."""
    stop_all([each._child for each in processes if each._child is not None], within)  # noqa: SLF001


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
            # Checked before reading, so that the last lines are read too.
            ended = child.exit_code is not None
            yield from log
            if not ended:
                time.sleep(_FOLLOW_SECONDS)


def stop_all(children: Iterable[Child], within: float = STOP_SECONDS) -> None:
    """Stop several at once: terminate all, wait, then kill what still runs and its descendants."""
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
        # Not with psutil, because only the first waiter gets the exit code.
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
    """Wait for processes that are not our children; returns those that still run."""
    deadline = time.monotonic() + within
    left = [process for process in processes if is_alive(process)]
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = [process for process in left if is_alive(process)]
    return left


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs; a zombie, which a container may never reap, does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_is_alive(pid: int) -> bool:
    """Whether a process with this id runs."""
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
    errors = [line for line in written if _ERROR_LINE.search(line)]
    return "\n".join((errors or written)[-lines:])
