"""Genuine MirrorMaker 2 in its dedicated mode, and Kafka's command-line tools."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from sparkmirror.embedded.java import (
    QUICK_JVM_ARGS,
    SERVER_JVM_ARGS,
    java_command,
    store_properties,
)
from sparkmirror.embedded.kafka_jars import kafka_jars
from sparkmirror.embedded.process import Child, start_child
from sparkmirror.errors import LocalProtocolError


class GenuineMirrorMaker:
    """One MirrorMaker 2 process that lives in a `with` block; `folder` keeps its file and log."""

    def __init__(
        self,
        properties: Mapping[str, str],
        folder: Path,
        *,
        heap: str = "2g",
        jvm_args: Sequence[str] = SERVER_JVM_ARGS,
    ) -> None:
        self.properties = dict(properties)
        self.folder = folder
        self.log_path = folder / "mm2.log"
        self._heap = heap
        self._jvm_args = jvm_args
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code is None

    def start(self) -> GenuineMirrorMaker:
        """Start the process; it needs some seconds until it copies."""
        settings = self.folder / "mm2.properties"
        store_properties(settings, self.properties)
        command = java_command(
            kafka_jars(),
            self.folder,
            "org.apache.kafka.connect.mirror.MirrorMaker",
            [settings],
            heap=self._heap,
            jvm_args=self._jvm_args,
        )
        self._child = start_child(command, self.log_path)
        return self

    def stop(self, within: float = 30.0) -> None:
        """Shut down in an orderly way: source offsets are committed first."""
        if self._child is not None:
            self._child.stop(within)

    def kill(self) -> None:
        """SIGKILL, as a crash does it."""
        self._running().kill()

    def __enter__(self) -> GenuineMirrorMaker:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _running(self) -> Child:
        if self._child is None:
            raise LocalProtocolError(f"MirrorMaker 2 in {self.folder} was not started")
        return self._child


def run_java_tool(
    main_class: str,
    args: Sequence[str | Path],
    *,
    stdin: str = "",
    timeout_seconds: float = 60.0,
    heap: str = "256m",
) -> subprocess.CompletedProcess[str]:
    """Run a program of Kafka's jars to its end, such as `kafka.admin.ConfigCommand`.

    The exit code is for the caller to judge; TimeoutExpired if it takes too long.
    """
    with tempfile.TemporaryDirectory(prefix="sparkmirror-tool-") as folder:
        command = java_command(
            kafka_jars(), Path(folder), main_class, args, heap=heap, jvm_args=QUICK_JVM_ARGS
        )
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
