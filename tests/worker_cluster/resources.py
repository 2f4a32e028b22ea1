"""What a worker process holds: threads, connections, children, memory, Spark jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import HOST
from tests.worker_cluster.workers import Worker

_TIMEOUT_SECONDS = 20.0
# Far less than one for each of the connectors that come and go.
_SPARE = 3
_POOLS = ("block-manager-", "Worker Monitor", "task-result-get", "process reaper", "C1", "C2")


@dataclass(frozen=True, slots=True)
class Held:
    """Counted from outside; `task_connections` are those of Spark's processes to brokers."""

    threads: int
    broker_connections: int
    files: int
    children: int
    task_connections: int
    jvm_threads: int
    memory_bytes: int

    def leftovers(self, before: Held) -> dict[str, tuple[int, int]]:
        """What is more than `before`, memory left out; a few come and go by themselves."""
        names = ("threads", "broker_connections", "files", "task_connections", "jvm_threads")
        pairs = {name: (getattr(before, name), getattr(self, name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[1] > pair[0] + _SPARE}


def held_by(worker: Worker, clusters: Sequence[KafkaCluster]) -> Held:
    ports = {int(cluster.bootstrap_servers.rpartition(":")[2]) for cluster in clusters}
    process, children = worker.process, worker.descendants
    return Held(
        threads=process.num_threads(),
        broker_connections=_connections(process, ports),
        files=process.num_fds(),
        children=len(children),
        task_connections=sum(_connections(child, ports) for child in children),
        jvm_threads=sum(_lasting_threads(child) for child in children),
        memory_bytes=process.memory_info().rss,
    )


def _lasting_threads(process: psutil.Process) -> int:
    """Without those of Spark's pools, which end when they were idle for a minute."""
    return sum(not name.startswith(_POOLS) for name in _thread_names(process))


def _thread_names(jvm: psutil.Process) -> Iterator[str]:
    """None if it is no JVM; threads and processes may end at any time."""
    with suppress(psutil.NoSuchProcess):
        if jvm.name() == "java":
            for path in Path(f"/proc/{jvm.pid}/task").glob("*/comm"):
                with suppress(FileNotFoundError, ProcessLookupError):
                    yield path.read_text()


def _connections(process: psutil.Process, ports: set[int]) -> int:
    try:
        found = process.net_connections("tcp")
    except psutil.NoSuchProcess:
        return 0
    return sum(bool(each.raddr) and each.raddr.port in ports for each in found)


def spark_jobs(ui_port: int, status: str) -> int:
    """How many jobs Spark's own page tells of: `running`, `succeeded`, `failed`, `unknown`."""
    url = f"http://{HOST}:{ui_port}/api/v1/applications"
    (application,) = httpx.get(url, timeout=_TIMEOUT_SECONDS, trust_env=False).json()
    jobs = httpx.get(
        f"{url}/{application['id']}/jobs",
        params={"status": status},
        timeout=_TIMEOUT_SECONDS,
        trust_env=False,
    )
    return len(jobs.json())
