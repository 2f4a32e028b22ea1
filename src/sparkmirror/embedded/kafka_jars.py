"""Downloads Kafka's jars from Maven coordinates, with the Ivy in pyspark.

A version is complete or absent: it is collected in a separate folder and renamed into place. One
process downloads; the others wait for a lock, which the kernel releases when its holder ends. An
interrupted download leaves its files in Ivy's cache, and the next attempt continues from there.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from sparkmirror.embedded.kafka_releases import KAFKA_VERSION, Release, find_release
from sparkmirror.embedded.process import follow_log, log_tail, start_child
from sparkmirror.errors import MissingPart
from sparkmirror.spark import machine

NEEDED_BYTES = 300 << 20  # jars once in Ivy's cache, once in place, and a margin
_FORMAT_SECONDS = 60.0
_BOOTSTRAP = "bootstrap.checkpoint"


@dataclass(frozen=True, slots=True)
class KafkaJars:
    """One complete version of Kafka on this machine."""

    release: Release
    folder: Path

    @property
    def class_path(self) -> str:
        return f"{self.folder}/*"

    @property
    def bootstrap_checkpoint(self) -> Path:
        """The metadata of a newly formatted node; the same for every node."""
        return self.folder / _BOOTSTRAP


def kafka_jars(version: str | Release = KAFKA_VERSION, cache: Path | None = None) -> KafkaJars:
    """The jars of `version`, downloaded on first use."""
    release = find_release(version) if isinstance(version, str) else version
    home = cache or machine.cache_folder()
    jars = KafkaJars(release, home / f"kafka-{release}")
    if not jars.folder.is_dir():
        with locked(home / f"kafka-{release}.lock"):
            if not jars.folder.is_dir():
                _install(jars, home)
    return jars


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, which is in the cache, alone on this machine."""
    with open_lock(path, "XDG_CACHE_HOME") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def open_lock(path: Path, variable: str) -> TextIO:
    """Open a lock file; the environment variable `variable` determines its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w")
    except OSError as error:
        raise MissingPart(f"cannot write {path} ({error.strerror}): set {variable}") from error


def _install(jars: KafkaJars, home: Path) -> None:
    java = machine.java_program()
    machine.require_disk_space(home, NEEDED_BYTES, f"downloading Kafka {jars.release}")
    work = home / f"kafka-{jars.release}.part"
    complete = work / "jars"
    # Jars of an interrupted attempt may be truncated; those in Ivy's own cache never are.
    shutil.rmtree(complete, ignore_errors=True)
    complete.mkdir(parents=True)
    _run_ivy(java, work, jars.release)
    if not jars.release.needs_zookeeper:
        _format_once(java, work, complete)
    complete.rename(jars.folder)
    shutil.rmtree(work)


def _run_ivy(java: Path, work: Path, release: Release) -> None:
    version = str(release)
    description = work / "ivy.xml"
    description.write_text(module_description(release))
    pattern = f"{work}/jars/[artifact]-[revision].[ext]"
    # Ivy's type "bundle" means jars of OSGi projects (snappy, zstd), which are needed too.
    command: list[str | Path] = [java, "-jar", machine.ivy_jar(), "-ivy", description]
    command += ["-cache", work / "ivy"]
    command += ["-confs", "default", "-types", "jar", "bundle", "-retrieve", pattern]
    log_path = work / "ivy.log"
    log_path.unlink(missing_ok=True)
    # Tied to this process: an orphaned Ivy beside another would damage the shared cache.
    ivy = start_child(command, log_path)
    try:
        _show_progress(follow_log(ivy), version)
    finally:
        ivy.kill()
    if ivy.exit_code != 0:
        raise MissingPart(_why_ivy_failed(log_path.read_text(errors="replace"), version, log_path))


def module_description(release: Release) -> str:
    """Ivy's description of all artifacts, so that their versions are resolved together."""
    root = ElementTree.Element("ivy-module", version="2.0")
    ElementTree.SubElement(root, "info", organisation="sparkmirror", module="kafka")
    ElementTree.SubElement(ElementTree.SubElement(root, "configurations"), "conf", name="default")
    dependencies = ElementTree.SubElement(
        root, "dependencies", defaultconf="default->master,runtime"
    )
    for organisation, name, revision in release.artifacts:
        # This version wins over one that another artifact requires.
        ElementTree.SubElement(
            dependencies, "dependency", org=organisation, name=name, rev=revision, force="true"
        )
    return ElementTree.tostring(root, encoding="unicode")


def _show_progress(lines: Iterable[str], version: str) -> None:
    """Show a bar on a terminal, otherwise one line; the bar counts resolved and downloaded jars."""
    title = f"Downloading Kafka {version} (once)"
    if not sys.stderr.isatty():
        sys.stderr.write(f"{title} ...\n")
        sys.stderr.flush()
        for _ in lines:
            pass
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(title, total=None)
        found = 0
        for line in lines:
            if line.startswith("\tfound "):
                found += 1
                progress.update(bar, total=found)
            elif "[SUCCESSFUL ]" in line:
                progress.advance(bar)


def _why_ivy_failed(log: str, version: str, log_path: Path) -> str:
    if "No space left on device" in log:
        return f"downloading Kafka {version} filled the disk: free some space and try again"
    if re.search(r"UnknownHost|ConnectException|SocketTimeout|SSLHandshake|Server access", log):
        return (
            f"downloading Kafka {version}: the Maven registry cannot be reached; check the network "
            f"(a proxy: JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=...); details in {log_path}"
        )
    if "UNRESOLVED" in log or "not found" in log:
        return (
            f"downloading Kafka {version}: the Maven registry does not have it; "
            f"name another version or see {log_path}"
        )
    return f"downloading Kafka {version} failed: see {log_path}, then try again"


def _format_once(java: Path, work: Path, jars: Path) -> None:
    """Let Kafka's own tool write the first metadata; copying it saves each node a JVM start."""
    node = work / "formatted"
    shutil.rmtree(node, ignore_errors=True)
    settings = work / "format.properties"
    settings.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=1@127.0.0.1:9093\n"
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        f"log.dirs={node}\n"
    )
    tool: list[str | Path] = [java, "-cp", f"{jars}/*", "kafka.tools.StorageTool", "format"]
    tool += ["-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", settings]
    formatting = start_child(tool, work / "format.log")
    try:
        code = formatting.wait(_FORMAT_SECONDS)
    finally:
        formatting.kill()
    if code != 0:
        raise MissingPart(f"formatting a first Kafka node: {log_tail(work / 'format.log')}")
    shutil.copy(node / _BOOTSTRAP, jars / _BOOTSTRAP)
