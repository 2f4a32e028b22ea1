"""Genuine MirrorMaker 2 in its dedicated mode, and Kafka's command-line tools."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkmirror.embedded.java import (
    QUICK_JVM_ARGS,
    SERVER_JVM_ARGS,
    java_command,
    store_properties,
)
from sparkmirror.embedded.kafka_jars import kafka_jars
from sparkmirror.embedded.process import ManagedProcess


class GenuineMirrorMaker(ManagedProcess):
    """One MirrorMaker 2 process, with its file and log in `folder`; copies after some seconds."""

    def __init__(
        self,
        properties: Mapping[str, str],
        folder: Path,
        *,
        heap: str = "2g",
        jvm_args: Sequence[str] = SERVER_JVM_ARGS,
    ) -> None:
        super().__init__("MirrorMaker 2", folder / "mm2.log")
        self.properties = dict(properties)
        self.folder = folder
        self._heap = heap
        self._jvm_args = jvm_args

    def command(self) -> list[str | Path]:
        """The command; also writes the settings, which may have changed."""
        settings = self.folder / "mm2.properties"
        store_properties(settings, self.properties)
        return java_command(
            kafka_jars(),
            self.folder,
            "org.apache.kafka.connect.mirror.MirrorMaker",
            [settings],
            heap=self._heap,
            jvm_args=self._jvm_args,
        )


def run_java_tool(
    main_class: str,
    args: Sequence[str | Path],
    *,
    stdin: str = "",
    timeout_seconds: float = 60.0,
    heap: str = "256m",
) -> subprocess.CompletedProcess[str]:
    """Run a program of Kafka's jars to its end, such as `kafka.admin.ConfigCommand`.

    The caller checks the exit code; raises TimeoutExpired if it takes too long.
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
