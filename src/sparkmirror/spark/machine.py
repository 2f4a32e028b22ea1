"""What this machine offers: a Java, pyspark's folder, places to keep files, free disk.

The only module of this package that reads the environment. Everything missing is a
`MissingPart` with one line that names what to install or to set.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from sparkmirror.errors import MissingPart

OLDEST_JAVA = 17
_HOW_TO_JAVA = f"install a Java {OLDEST_JAVA} or newer and put it on PATH or set JAVA_HOME"


def java_program() -> Path:
    """The `java` of JAVA_HOME, else of PATH, once it is known to be new enough."""
    program = _find_java()
    version = _java_version(program)
    if version < OLDEST_JAVA:
        raise MissingPart(f"{program} is Java {version}, too old: {_HOW_TO_JAVA}")
    return program


def _find_java() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if not os.access(program, os.X_OK):
            raise MissingPart(f"JAVA_HOME is {home} but has no bin/java: {_HOW_TO_JAVA}")
        return program
    found = shutil.which("java")
    if found is None:
        raise MissingPart(f"no Java found: {_HOW_TO_JAVA}")
    return Path(found)


@functools.cache
def _java_version(program: Path) -> int:
    # Prints `openjdk version "17.0.15" 2025-04-15` on stderr; Java 8 calls itself "1.8.0_402".
    try:
        result = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPart(f"{program} cannot be run ({error}): {_HOW_TO_JAVA}") from error
    match = re.search(r'version "(?:1\.)?(\d+)', result.stderr)
    if match is None:
        output = (result.stderr or result.stdout).strip().splitlines()[:1]
        raise MissingPart(f"{program} is not a Java (it prints {output}): {_HOW_TO_JAVA}")
    return int(match.group(1))


def pyspark_folder() -> Path:
    """Where pyspark is installed; found without importing it, which would take a second."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingPart("pyspark is not installed: run `pip install pyspark`")
    return Path(spec.origin).parent


def ivy_jar() -> Path:
    """The dependency manager that ships inside pyspark."""
    jars = sorted((pyspark_folder() / "jars").glob("ivy-*.jar"))
    if not jars:
        raise MissingPart(f"{pyspark_folder()} has no jars/ivy-*.jar: reinstall pyspark")
    return jars[-1]


def cache_folder() -> Path:
    """For what can be downloaded again."""
    return _user_folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """For what `sparkmirror kafka stop` must find again."""
    return _user_folder("XDG_STATE_HOME", ".local/state")


def _user_folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable)
    # The XDG specification: a relative path in these variables is invalid and ignored.
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / default
    return root / "sparkmirror"


def require_disk_space(folder: Path, needed_bytes: int, what_for: str) -> None:
    """Reject work that would fill the disk half way."""
    free = shutil.disk_usage(_nearest_existing(folder)).free
    if free < needed_bytes:
        raise MissingPart(
            f"{what_for} needs {needed_bytes >> 20} MB in {folder}, "
            f"only {free >> 20} MB are free: free some disk space"
        )


def _nearest_existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())
