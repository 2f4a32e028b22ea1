"""The mirror of the demo as a separate process: started from a file, stopped by SIGTERM."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sparkmirror.embedded import KAFKA_VERSION
from sparkmirror.embedded.java import QUICK_JVM_ARGS, java_command
from sparkmirror.embedded.kafka_jars import kafka_jars
from sparkmirror.embedded.process import ManagedProcess, log_tail
from sparkmirror.errors import MirrorError

SOURCE = "source"
TARGET = "target"
_LOG_LINES = 15
_REPLICATION_KEYS = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)


@dataclass(frozen=True, slots=True)
class Engine:
    """A program that runs an mm2.properties."""

    title: str
    command: Callable[[Path], Sequence[str | Path]]
    stop_seconds: float
    exit_code: int


def _sparkmirror_command(file: Path) -> Sequence[str | Path]:
    return [sys.executable, "-m", "sparkmirror.cli.main", "run", file]


def _mm2_command(file: Path) -> Sequence[str | Path]:
    main_class = "org.apache.kafka.connect.mirror.MirrorMaker"
    jars = kafka_jars(KAFKA_VERSION)
    return java_command(jars, file.parent, main_class, [file], heap="1g", jvm_args=QUICK_JVM_ARGS)


# Genuine MirrorMaker 2 tests the demo itself, because its results are correct by definition. Its
# exit code is that of a Java program after SIGTERM (128 + 15), and it stops slowly.
ENGINES = {
    "sparkmirror": Engine("sparkmirror", _sparkmirror_command, stop_seconds=10.0, exit_code=0),
    "mm2": Engine(
        f"MirrorMaker {KAFKA_VERSION}", _mm2_command, stop_seconds=60.0, exit_code=128 + 15
    ),
}


class MirrorEnded(MirrorError):
    """The mirror ended unexpectedly, or did not end; shows the end of its log."""


class MirrorProcess(ManagedProcess):
    """One mirror, which can be started and stopped repeatedly; all runs write one log."""

    def __init__(self, engine: Engine, file: Path, *, detached: bool) -> None:
        super().__init__(engine.title, file.with_name("mirror.log"))
        self.engine = engine
        self._file = file
        self._detached = detached

    def command(self) -> Sequence[str | Path]:
        """The engine's command."""
        return self.engine.command(self._file)

    def start(self, *, detached: bool = False) -> Self:
        """Start it, detached if created so; copying starts after some seconds."""
        return super().start(detached=detached or self._detached)

    def check_running(self) -> None:
        """Raise MirrorEnded with the end of its log if it has ended by itself."""
        if self._child is not None and not self.is_running:
            code = self.exit_code
            raise MirrorEnded(f"{self.engine.title} ended with exit code {code}; {self.log_end()}")

    def stop(self, within: float | None = None) -> float:
        """Send SIGTERM and wait for an orderly end; returns the seconds that it took."""
        allowed = self.engine.stop_seconds if within is None else within
        self.check_running()
        child = self._started()
        began = time.monotonic()
        child.send(signal.SIGTERM)
        try:
            code = child.wait(allowed)
        except subprocess.TimeoutExpired as error:
            raise MirrorEnded(
                f"stop {self.engine.title}: still running {allowed:g} s "
                f"after SIGTERM; {self.log_end()}"
            ) from error
        if code != self.engine.exit_code:
            raise MirrorEnded(f"stop {self.engine.title}: exit code {code}; {self.log_end()}")
        self._child = None
        return time.monotonic() - began

    def log_end(self) -> str:
        """The end of its log, for an error message."""
        kept = str(self.log_path) if self._detached else "its log (KEEP=1 keeps it)"
        return f"{kept} ends:\n{log_tail(self.log_path, _LOG_LINES)}"


def mm2_properties(
    source_bootstrap: str, target_bootstrap: str, topics: Sequence[str], changes: Mapping[str, str]
) -> str:
    """The mm2.properties of the demo, as a user would write it, with `changes` applied."""
    sections: dict[str, dict[str, str]] = {
        "Two clusters, one flow between them.": {
            "clusters": f"{SOURCE}, {TARGET}",
            f"{SOURCE}.bootstrap.servers": source_bootstrap,
            f"{TARGET}.bootstrap.servers": target_bootstrap,
            f"{SOURCE}->{TARGET}.enabled": "true",
            f"{SOURCE}->{TARGET}.topics": ", ".join(topics),
            f"{TARGET}->{SOURCE}.emit.heartbeats.enabled": "false",
            "tasks.max": "2",
            "sync.topic.acls.enabled": "false",
        },
        "Skip records of aborted transactions.": {
            f"{SOURCE}.consumer.isolation.level": "read_committed",
        },
        "Look for new topics every second, not every ten minutes.": {
            "refresh.topics.interval.seconds": "1",
        },
        "Each cluster has one broker only.": dict.fromkeys(_REPLICATION_KEYS, "1"),
    }
    known = {key for section in sections.values() for key in section}
    for section in sections.values():
        section.update({key: value for key, value in changes.items() if key in section})
    sections["Added."] = {key: value for key, value in changes.items() if key not in known}
    return "\n".join(_section(title, lines) for title, lines in sections.items() if lines)


def _section(title: str, lines: Mapping[str, str]) -> str:
    return "".join([f"# {title}\n", *(f"{key} = {value}\n" for key, value in lines.items())])
