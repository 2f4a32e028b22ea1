"""CPU and memory of a process and everything that it started, read from /proc.

One pass over /proc costs about 2 ms and gives parents, CPU and memory of the same moment. A process
that has ended keeps its last CPU reading, so sample regularly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# The process that forks Spark's Python workers; its children keep its command line.
_TASK_MARK = b"pyspark.worker"


class ProcessKey(NamedTuple):
    """Identifies a process, because its id may be reused later."""

    pid: int
    start_ticks: int


class ProcessStat(NamedTuple):
    """One line of /proc/<pid>/stat."""

    key: ProcessKey
    parent_pid: int
    cpu_seconds: float
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class Usage:
    """A tree at one moment. Task values are those of Spark's Python processes: the copy tasks."""

    cpu_seconds: float
    task_cpu_seconds: float
    rss_bytes: int
    largest_task_rss_bytes: int


@dataclass(slots=True)
class PeakMemory:
    """The highest memory of the samples seen."""

    rss_bytes: int = 0
    task_rss_bytes: int = 0

    def note(self, usage: Usage) -> None:
        """Add a sample."""
        self.rss_bytes = max(self.rss_bytes, usage.rss_bytes)
        self.task_rss_bytes = max(self.task_rss_bytes, usage.largest_task_rss_bytes)

    def measures(self) -> dict[str, float]:
        """In MB (10^6 bytes); without copy tasks there is no figure for them."""
        found = {"rss_mb": self.rss_bytes / 1e6, "task_rss_mb": self.task_rss_bytes / 1e6}
        return {name: value for name, value in found.items() if value}


class ProcessTree:
    """A process and its descendants, including those whose parent has ended."""

    def __init__(self, root_pid: int, proc: Path = Path("/proc")) -> None:
        self._root_pid = root_pid
        self._proc = proc
        self._cpu: dict[ProcessKey, float] = {}
        self._tasks: set[ProcessKey] = set()

    def sample(self) -> Usage:
        """Read the current tree; its CPU never decreases."""
        stats = list(self._read_all())
        members = self._members(stats)
        for stat in members:
            self._cpu[stat.key] = stat.cpu_seconds
        self._mark_tasks(members)
        task_rss = [stat.rss_bytes for stat in members if stat.key in self._tasks]
        return Usage(
            cpu_seconds=sum(self._cpu.values()),
            task_cpu_seconds=sum(self._cpu[key] for key in self._tasks),
            rss_bytes=sum(stat.rss_bytes for stat in members),
            largest_task_rss_bytes=max(task_rss, default=0),
        )

    def _read_all(self) -> Iterator[ProcessStat]:
        for name in os.listdir(self._proc):  # noqa: PTH208  pathlib takes twice as long
            if name.isdigit():
                text = self._read(name, "stat")
                if text:
                    yield parse_stat(text)

    def _read(self, pid: str, name: str) -> bytes:
        try:
            with open(f"{self._proc}/{pid}/{name}", "rb") as file:  # noqa: PTH123  as above
                return file.read()
        except (FileNotFoundError, ProcessLookupError):
            return b""  # ended since the folder was listed

    def _members(self, stats: list[ProcessStat]) -> list[ProcessStat]:
        """Known processes, the root, and their descendants, each after its parent."""
        children: dict[int, list[ProcessStat]] = {}
        for stat in stats:
            children.setdefault(stat.parent_pid, []).append(stat)
        found: dict[ProcessKey, ProcessStat] = {}
        waiting = [
            stat for stat in stats if stat.key.pid == self._root_pid or stat.key in self._cpu
        ]
        while waiting:
            stat = waiting.pop()
            if stat.key not in found:
                found[stat.key] = stat
                waiting += children.get(stat.key.pid, [])
        return list(found.values())

    def _mark_tasks(self, members: list[ProcessStat]) -> None:
        # Read every time, because exec changes a process's command line.
        for stat in members:
            if _TASK_MARK in self._read(str(stat.key.pid), "cmdline"):
                self._tasks.add(stat.key)
        task_pids = {key.pid for key in self._tasks}
        self._tasks |= {stat.key for stat in members if stat.parent_pid in task_pids}


def parse_stat(text: bytes) -> ProcessStat:
    """Parse a line of /proc/<pid>/stat; the name in brackets may hold spaces and brackets."""
    pid = int(text[: text.index(b" ")])
    # Counted from the state, field 3: 1 parent, 11 user ticks, 12 system ticks, 19 start, 21 pages.
    fields = text[text.rindex(b")") + 2 :].split()
    ticks = int(fields[11]) + int(fields[12])
    return ProcessStat(
        key=ProcessKey(pid, int(fields[19])),
        parent_pid=int(fields[1]),
        cpu_seconds=ticks / _TICKS_PER_SECOND,
        rss_bytes=int(fields[21]) * _PAGE_BYTES,
    )
