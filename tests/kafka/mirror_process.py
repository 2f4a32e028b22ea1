"""The real program as a process: written a file, started, stopped, killed; its log is kept."""

from __future__ import annotations

import copy
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.process import Child, end_processes, is_alive, start_child, wait_gone
from tests.clusters import unique_name, wait_for

START_SECONDS = 90.0
COPY_SECONDS = 60.0
STOP_SECONDS = 10.0
OFFSETS_PARTITIONS = 3
_LOG_LINES = 40
_REPLICATION_KEYS = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)
_TASK = "pyspark.worker"


class Mirror:
    """One flow between two clusters, in a `with` block; `start` and `kill` as often as wanted.

    The aliases are its own, so that many of them can use the same clusters: positions and remote
    topics carry the alias of the source.
    """

    def __init__(
        self,
        folder: Path,
        source: KafkaCluster,
        target: KafkaCluster,
        topics: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.alias = unique_name("s")
        self.file = folder / "mm2.properties"
        self.log_path = folder / "mirror.log"
        self._child: Child | None = None
        self._read_from = 0
        self._settings = self._properties(topics)
        self.configure(settings or {})

    def another(self, name: str) -> Mirror:
        """A second process with the same file, not started yet; its log has a name of its own."""
        twin = copy.copy(self)
        twin.log_path = self.log_path.with_name(f"{name}.log")
        twin._child, twin._read_from = None, 0
        return twin

    def __enter__(self) -> Self:
        self.start()
        return self

    @contextmanager
    def ending(self) -> Iterator[Self]:
        """A block that starts it when it likes; at its end nothing of it is left."""
        try:
            yield self
        except BaseException as error:
            error.add_note(self.log_end())
            raise
        finally:
            self.kill_tree()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill_tree()
        if error is not None:
            error.add_note(self.log_end())

    def configure(self, settings: Mapping[str, str]) -> None:
        """Change the file, for the next start; SOURCE in a key stands for the source's alias."""
        self._settings |= settings
        lines = (f"{key} = {value}\n" for key, value in self._settings.items())
        self.file.write_text("".join(lines).replace("SOURCE", self.alias))

    # -- life --------------------------------------------------------------------------------------

    def start(self, *words: str, until: str = "flows started") -> None:
        """Start it, with these options, and wait until its flows are started.

        `until` is what the log has to say by then.
        """
        self._read_from = self.log_path.stat().st_size if self.log_path.exists() else 0
        command: list[str | Path] = [sys.executable, "-m", "sparkmirror.cli.main", "run", self.file]
        self._child = start_child([*command, *words], self.log_path)
        self.wait_for_log(until, within=START_SECONDS)

    def stop(
        self,
        number: signal.Signals = signal.SIGTERM,
        *,
        group: bool = False,
        expected_code: int = 0,
    ) -> float:
        """Ask it to stop and check its exit code; how many seconds it took."""
        child = self._running()
        began = time.monotonic()
        if group:
            os.killpg(child.pid, number)
        else:
            child.send(number)
        code = child.wait(START_SECONDS)
        seconds = time.monotonic() - began
        assert code == expected_code, f"exit code {code} after {number.name}; {self.log_end()}"
        self._child = None
        return seconds

    def kill_tree(self) -> None:
        """SIGKILL to all processes at once."""
        if self._child is not None:
            processes = self.processes()
            end_processes(processes)
            self._child.wait(STOP_SECONDS)
            self._child = None

    def kill_worker(self) -> list[psutil.Process]:
        """SIGKILL to the process that was started, and to nothing else; gives the others."""
        child = self._running()
        others = [process for process in self.processes() if process.pid != child.pid]
        child.send(signal.SIGKILL)
        child.wait(STOP_SECONDS)
        self._child = None
        return others

    # -- what it looks like ------------------------------------------------------------------------

    def remote(self, topic: str) -> str:
        """The topic's name on the target."""
        return f"{self.alias}.{topic}"

    @property
    def offsets_topic(self) -> str:
        """Where the positions are."""
        return f"mm2-offsets.{self.alias}.internal"

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        return self._running().pid

    def processes(self) -> list[psutil.Process]:
        """All of them: worker, Spark's JVM, Python's daemon, tasks."""
        try:
            worker = psutil.Process(self._running().pid)
            return [worker, *worker.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def task_processes(self) -> list[psutil.Process]:
        """The processes that copy: those that Spark's Python daemon has forked."""
        tasks = []
        for process in self.processes():
            parent = process.parent()
            if parent is not None and _is_daemon(parent) and _is_daemon(process):
                tasks.append(process)
        return tasks

    def log(self) -> str:
        """What it has printed since its last start."""
        with self.log_path.open("rb") as file:
            file.seek(self._read_from)
            return file.read().decode(errors="replace")

    def wait_for_log(self, text: str, *, within: float = COPY_SECONDS) -> str:
        """Wait for a line that holds `text`; the line."""
        wait_for(
            lambda: text in self.log() or self._running().exit_code is not None,
            within=within,
            describe=lambda: f"'{text}' in the log; {self.log_end()}",
        )
        lines = [line for line in self.log().splitlines() if text in line]
        assert lines, f"ended without '{text}'; {self.log_end()}"
        return lines[0]

    def log_end(self) -> str:
        """The last lines, for messages of failed tests."""
        if not self.log_path.exists():
            return f"{self.log_path} was not written"
        lines = self.log().splitlines()[-_LOG_LINES:]
        return "\n".join([f"{self.log_path} ends:", *lines])

    def _running(self) -> Child:
        assert self._child is not None, "the mirror is not running"
        return self._child

    def _properties(self, topics: str) -> dict[str, str]:
        copies = str(min(3, len(self.target.brokers)))
        return {
            "clusters": f"{self.alias}, target",
            "SOURCE.bootstrap.servers": self.source.bootstrap_servers,
            "target.bootstrap.servers": self.target.bootstrap_servers,
            "SOURCE->target.enabled": "true",
            "SOURCE->target.topics": topics,
            "target->SOURCE.enabled": "false",
            "target->SOURCE.emit.heartbeats.enabled": "false",
            "SOURCE->target.emit.heartbeats.enabled": "false",
            "SOURCE->target.emit.checkpoints.enabled": "false",
            "sync.topic.acls.enabled": "false",
            # A test sets limits of its own on remote topics, and others leave heartbeats behind.
            "sync.topic.configs.enabled": "false",
            "heartbeats.replication.enabled": "false",
            "refresh.topics.interval.seconds": "1",
            "target.offset.flush.interval.ms": "500",
            "offset.storage.partitions": str(OFFSETS_PARTITIONS),
            "tasks.max": "1",
            # So long the next process waits for one that was killed; brokers take no less.
            "target.session.timeout.ms": "6000",
            "target.heartbeat.interval.ms": "1000",
            **dict.fromkeys(_REPLICATION_KEYS, copies),
        }


def assert_gone(processes: list[psutil.Process], within: float = 10.0) -> None:
    """Fail with their command lines if some of them outlive `within`."""
    left = wait_gone(processes, within)
    commands = [" ".join(process.cmdline()) for process in left if is_alive(process)]
    assert not commands, f"still there after {within:g} s: {commands}"


def _is_daemon(process: psutil.Process) -> bool:
    try:
        return _TASK in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
