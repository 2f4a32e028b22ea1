"""Spark that starts sooner: its driver's classes, parsed once, in a file that later JVMs map.

Java's class data sharing: it changes how classes are loaded, not how they run. The first start on
a machine makes the file, in a process of its own, after it has been running for a while; nothing
waits for the file and nothing fails without it. A file is used only if it is whole and belongs to
exactly this Java and these jars, both of which its name identifies.

Runs on: worker, when Spark's session starts in local mode.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import crc32c

from sparkmirror.errors import MissingPart
from sparkmirror.spark import machine

log = logging.getLogger(__name__)

MAKER = "sparkmirror.spark.archive_maker"
# The first start on a machine copies first, and a short run makes no archive at all.
MAKE_AFTER_SECONDS = 30.0
# A second JVM for some seconds, and its file.
NEEDED_MEMORY = 1 << 30
NEEDED_DISK = 300 << 20
# An update of Java or of Spark leaves an old one behind.
MOST_KEPT = 3
# Silences what a JVM prints on the console about an archive that it rejects.
QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
# The user has decided about class data sharing: only their option counts.
DECIDED = re.compile(r"-Xshare:|SharedArchiveFile|ArchiveClassesAtExit")
OPTIONS_VARIABLE = "SPARK_SUBMIT_OPTS"
_CHUNK = 1 << 20


class ClassArchive:
    """What one session does about it; `options` before Spark starts, `make_later` after."""

    def __init__(self) -> None:
        self._missing: Path | None = None
        self._maker: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def options(self, others: str) -> str:
        """JVM options, in addition to `others`; none if there is no archive that fits."""
        if DECIDED.search(f"{others} {os.environ.get(OPTIONS_VARIABLE, '')}"):
            return ""
        try:
            archive = spark_archive(machine.cache_folder())
            if is_whole(archive):
                return archive_options(archive)
        except (OSError, MissingPart) as error:
            log.debug("no archive of Spark's classes: %s", error)
            return ""
        self._missing = archive
        return ""

    def make_later(self) -> None:
        """Make the archive that was missing, in the background."""
        if self._missing is not None:
            threading.Thread(target=self._make, name="class archive", daemon=True).start()

    def stop(self) -> None:
        """End the making, if it is under way."""
        self._stopping.set()
        with self._lock:
            maker = self._maker
        if maker is not None and maker.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(maker.pid, signal.SIGKILL)
            maker.wait()

    def _make(self) -> None:
        if self._stopping.wait(MAKE_AFTER_SECONDS) or self._missing is None:
            return
        try:
            self._missing.parent.mkdir(parents=True, exist_ok=True)
            machine.require_disk_space(self._missing.parent, NEEDED_DISK, "the class archive")
            if not os.access(self._missing.parent, os.W_OK) or free_memory() < NEEDED_MEMORY:
                return
            with self._lock:
                if self._stopping.is_set():
                    return
                self._maker = subprocess.Popen(
                    [sys.executable, "-m", MAKER, str(self._missing)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            log.debug("archive of Spark's classes: exit code %s", self._maker.wait())
        except (OSError, MissingPart) as error:
            log.debug("no archive of Spark's classes: %s", error)


def spark_archive(folder: Path) -> Path:
    """Where the archive of this Java and of pyspark's jars is, or will be."""
    return folder / f"spark-{archive_name(machine.pyspark_folder() / 'jars')}"


def archive_name(jars: Path) -> str:
    """A name per Java and jars; reinstalled jars get a new name.

    The JVM rejects an archive whose jars have another date, and prints that on the console.
    """
    java = machine.java_program().resolve()
    home = java.parents[1]
    parts = (home / "release", home / "lib" / "modules", home / "lib" / "server" / "libjvm.so")
    hasher = hashlib.sha256()
    for path in (java, *filter(Path.exists, parts), *sorted(jars.glob("*.jar"))):
        state = path.stat()
        hasher.update(f"{path} {state.st_size} {state.st_mtime_ns}\n".encode())
    return f"classes-{hasher.hexdigest()[:12]}.jsa"


def archive_options(archive: Path) -> str:
    """Options of a JVM that maps the archive, as one text; none if its path cannot be quoted."""
    if re.search(r'["\\]', str(archive)):
        return ""
    return f'{QUIET} "-XX:SharedArchiveFile={archive}"'


def is_whole(archive: Path) -> bool:
    """Whether the file is complete and undamaged: a JVM would map a damaged one all the same."""
    try:
        return _sum_path(archive).read_text("ascii") == _checksum(archive)
    except FileNotFoundError:
        return False
    except UnicodeDecodeError:
        return False


def make_once(archive: Path, run: Callable[[Path], None], *, wait: bool = True) -> bool:
    """`run` a JVM that writes the archive at its end; other processes wait for it or do without.

    Returns whether there is one now. Raises OSError, and what `run` raises.
    """
    if is_whole(archive):
        return True
    with _locked(archive.with_suffix(".lock"), wait=wait) as is_ours:
        if not is_ours or is_whole(archive):
            return is_ours
        part = archive.with_suffix(".part")
        part.unlink(missing_ok=True)
        run(part)
        if not part.exists():
            return False
        # First: an archive without its sum is never used.
        _sum_path(archive).write_text(_checksum(part), "ascii")
        part.rename(archive)
    return True


def forget_old(folder: Path) -> None:
    """Delete all archives but the newest few; a JVM that maps one keeps it until it ends."""
    found = sorted(folder.glob("spark-classes-*.jsa"), key=lambda each: each.stat().st_mtime)
    for archive in found[:-MOST_KEPT]:
        for path in (archive, _sum_path(archive), archive.with_suffix(".lock")):
            path.unlink(missing_ok=True)


def free_memory() -> int:
    """Bytes that this process's machine, or container, has left."""
    found = [_available(Path("/proc/meminfo"))]
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):
        limit = int((group / "memory.max").read_text())
        found.append(limit - int((group / "memory.current").read_text()))
    return min(found)


def _available(meminfo: Path) -> int:
    try:
        match = re.search(r"MemAvailable:\s*(\d+) kB", meminfo.read_text())
    except OSError:
        match = None
    return int(match[1]) * 1024 if match else 0


@contextlib.contextmanager
def _locked(path: Path, *, wait: bool) -> Iterator[bool]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def _sum_path(archive: Path) -> Path:
    return archive.with_suffix(".crc32c")


def _checksum(archive: Path) -> str:
    value = size = 0
    with archive.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value = crc32c.crc32c(chunk, value)
            size += len(chunk)
    return f"{size} {value:08x}\n"
