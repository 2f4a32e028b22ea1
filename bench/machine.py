"""The machine and the versions of a result."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

from sparkmirror.embedded import KAFKA_VERSION
from sparkmirror.spark import machine as embedded_machine


def describe_machine() -> dict[str, str]:
    """The description of machine and versions in RESULTS.md and latest.json."""
    return {
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "cores": str(os.cpu_count()),
        "ram": f"{ram_gigabytes(Path('/proc/meminfo').read_text()):.0f} GB",
        "kernel": platform.release(),
        "java": _java_version(),
        "python": platform.python_version(),
        "kafka": KAFKA_VERSION,
        "pyspark": importlib.metadata.version("pyspark"),
        "sparkmirror": importlib.metadata.version("sparkmirror"),
    }


def cpu_model(cpuinfo: str) -> str:
    """The name of the first core; ARM kernels have none."""
    match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return match.group(1).strip() if match else platform.machine()


def ram_gigabytes(meminfo: str) -> float:
    """Memory of the machine in 10^9 bytes."""
    match = re.search(r"^MemTotal:\s*(\d+) kB$", meminfo, re.MULTILINE)
    if match is None:
        raise ValueError("/proc/meminfo has no line MemTotal")
    return int(match.group(1)) * 1024 / 1e9


def _java_version() -> str:
    printed = subprocess.run(
        [embedded_machine.java_program(), "-version"], capture_output=True, text=True, check=True
    )
    match = re.search(r'version "([^"]+)"', printed.stderr)
    return match.group(1) if match else "unknown"
