"""Clusters that outlive the command that started them, and are found by name.

    <state folder>/kafka/NAME/cluster.json   what runs        NAME/broker-1/ ...   data and logs
    <state folder>/kafka/NAME.lock           held while a command starts or stops NAME

A process id may belong to another process after a reboot, so it is stored with the process's start
time, and only a process that matches both gets a signal.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from sparkmirror.embedded.kafka_cluster import KafkaCluster
from sparkmirror.embedded.kafka_jars import open_lock
from sparkmirror.embedded.kafka_releases import KAFKA_VERSION, find_release
from sparkmirror.embedded.process import end_processes, is_alive, wait_gone
from sparkmirror.errors import ConfigError, MirrorError
from sparkmirror.spark import machine

_STATE_FILE = "cluster.json"
_STOP_SECONDS = 20.0
NEEDED_BYTES = 200 << 20


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """A cluster that was started by name."""

    name: str
    bootstrap_servers: str
    folder: str
    pids: tuple[int, ...]
    started: tuple[float, ...]

    def processes(self, *, of_brokers: bool = False) -> list[psutil.Process]:
        """The running processes: the brokers, and their ZooKeeper if they have one."""
        found = list(zip(self.pids, self.started, strict=True))
        wanted = found[: len(self.ports)] if of_brokers else found
        return [process for pid, began in wanted if (process := _process(pid, began)) is not None]

    @property
    def ports(self) -> list[int]:
        return [int(server.rpartition(":")[2]) for server in self.bootstrap_servers.split(",")]

    @property
    def is_running(self) -> bool:
        return len(self.processes()) == len(self.pids)

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "name": self.name,
            "bootstrap_servers": self.bootstrap_servers,
            "log_dir": self.folder,
            "pids": list(self.pids),
        }


def _process(pid: int, began: float) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
    return process if process.create_time() == began and is_alive(process) else None


def start_named(
    name: str,
    *,
    brokers: int = 1,
    port: int | None = None,
    version: str = KAFKA_VERSION,
    heap: str = "512m",
) -> NamedCluster:
    """Start a cluster that outlives this process; return when it is ready.

    A cluster stopped with `keep` restarts on the same ports, which clients have in their files.
    """
    find_release(version)  # before anything is written
    with _locked(name) as folder:
        running = _load(folder)
        if running is not None and running.processes():
            reason = f"a cluster of that name is running on {running.bootstrap_servers}"
            raise ConfigError("name", name, reason, "stop it or use another name")
        machine.require_disk_space(folder, NEEDED_BYTES, f"Kafka cluster '{name}'")
        cluster = KafkaCluster(
            name,
            brokers=brokers,
            port=port,
            ports=() if running is None or port is not None else running.ports,
            folder=folder,
            version=version,
            heap=heap,
            detached=True,
            # The data of a cluster stopped with --keep must survive a failed start.
            keep=running is not None,
        )
        cluster.launch()
        # Before waiting, so that the brokers of an interrupted start can be stopped by name.
        named = _store(cluster, folder)
        cluster.wait_ready()
        cluster.release_ports()
        return named


def stop_named(name: str, *, keep: bool = False) -> NamedCluster:
    """Stop a cluster; delete its data and logs unless they are kept."""
    with _locked(name) as folder:
        named = _load(folder)
        if named is None:
            raise ConfigError("name", name, "no cluster of that name was started", _hint())
        # No orderly shutdown is needed for data that is deleted anyway.
        _end(named.processes(of_brokers=True), _STOP_SECONDS if keep else 0.0)
        # Brokers before 3.3 need their ZooKeeper to shut down in an orderly way.
        _end(named.processes(), 0.0)
        if not keep:
            shutil.rmtree(folder)
        return named


def list_named() -> list[NamedCluster]:
    """All clusters that were started and not deleted, running or not."""
    folders = sorted(_home().glob(f"*/{_STATE_FILE}"))
    return [named for path in folders if (named := _load(path.parent)) is not None]


def _end(processes: list[psutil.Process], within: float) -> None:
    if within > 0:
        for process in processes:
            process.terminate()
    end_processes(wait_gone(processes, within))


def _hint() -> str:
    names = ", ".join(named.name for named in list_named())
    return f"known names: {names}" if names else "start one with `sparkmirror kafka start`"


def _home() -> Path:
    return machine.state_folder() / "kafka"


@contextmanager
def _locked(name: str) -> Iterator[Path]:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ConfigError("name", name, "use letters, digits, dots, dashes and underscores")
    path = _home() / f"{name}.lock"
    with open_lock(path, "XDG_STATE_HOME") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise MirrorError(f"another command is starting or stopping '{name}'") from error
        yield _home() / name


def _load(folder: Path) -> NamedCluster | None:
    path = folder / _STATE_FILE
    if not path.exists():
        return None
    try:
        fields = json.loads(path.read_text())
        return NamedCluster(
            name=fields["name"],
            bootstrap_servers=fields["bootstrap_servers"],
            folder=fields["folder"],
            pids=tuple(fields["pids"]),
            started=tuple(fields["started"]),
        )
    except (ValueError, KeyError) as error:
        raise MirrorError(f"{path} is damaged ({error}): delete {folder}") from error


def _store(cluster: KafkaCluster, folder: Path) -> NamedCluster:
    named = NamedCluster(
        name=cluster.name,
        bootstrap_servers=cluster.bootstrap_servers,
        folder=str(folder),
        pids=tuple(cluster.pids),
        started=tuple(psutil.Process(pid).create_time() for pid in cluster.pids),
    )
    part = folder / f"{_STATE_FILE}.part"
    part.write_text(json.dumps(asdict(named), indent=2))
    part.rename(folder / _STATE_FILE)
    return named
