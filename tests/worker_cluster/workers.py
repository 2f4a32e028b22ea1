"""`sparkmirror worker` as processes of their own, and the connectors that they are given."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import httpx
import psutil

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import store_properties
from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.process import Child, log_tail, start_child
from tests.clusters import unique_name, wait_for
from tests.rest.requests import request

MIRROR = "org.apache.kafka.connect.mirror."
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
KINDS = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
# Where none is lost, none is to be missed, also if all stand still for some seconds.
SESSION_TIMEOUT_MS = 30_000
OFFSETS_PARTITIONS = 3
# A loaded machine: how long anything may take that has no limit of its own.
WAIT_SECONDS = 90.0
STOP_SECONDS = 20.0
_LOG_LINES = 40
_OK, _ACCEPTED = 200, 202


class Worker:
    """One worker. Its address and its log stay the same however often it is started."""

    def __init__(self, name: str, folder: Path, settings: Mapping[str, str], *options: str) -> None:
        self.name = name
        self._options = options
        self.log_path = folder / f"{name}.log"
        self._port = ReservedPort()
        # As statuses name it.
        self.worker_id = f"{HOST}:{self._port.number}"
        self.url = f"http://{self.worker_id}"
        self._file = folder / f"{name}.properties"
        store_properties(self._file, {**settings, "listeners": self.url})
        self._child: Child | None = None

    # -- the process -------------------------------------------------------------------------------

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self._running.pid)

    @property
    def descendants(self) -> list[psutil.Process]:
        """Spark's JVM, and the Python processes of its tasks."""
        return self.process.children(recursive=True)

    @property
    def _running(self) -> Child:
        assert self._child is not None, f"{self.name} was not started"
        return self._child

    def start(self) -> None:
        """Start it and wait until it is a member of its group."""
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "sparkmirror.cli.main",
            "worker",
            self._file,
            *self._options,
        ]
        self._child = start_child(command, self.log_path)
        self.wait_for(self.is_healthy, lambda: "it is healthy")

    def stop(self) -> float:
        """SIGTERM; how many seconds it took to end well."""
        began = time.monotonic()
        self._running.send(signal.SIGTERM)
        assert self._running.wait(STOP_SECONDS) == 0, self.log_end()
        self._child = None
        return time.monotonic() - began

    def kill(self) -> None:
        """SIGKILL for this one process; what it started has to end by itself."""
        self._running.send(signal.SIGKILL)
        self._running.wait(STOP_SECONDS)
        self._child = None

    def close(self) -> None:
        """End it and what it started."""
        if self._child is not None:
            self._child.kill()
            self._child = None
        self._port.close()

    # -- what it says ------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """One request; the path goes out as it is."""
        return request(self.url, method, path, body)

    def is_healthy(self) -> bool:
        assert self._running.exit_code is None, f"{self.name} has ended; {self.log_end()}"
        try:
            return self.ask("GET", "/health").status_code == _OK
        except httpx.TransportError:
            return False

    def leads(self, connector: str) -> bool:
        """Whether it does what only a leader does, and does not ask another one."""
        path = connector_path(connector, "resume?forward=false")
        return self.ask("PUT", path).status_code == _ACCEPTED

    def states(self, connector: str) -> list[tuple[str, str]]:
        """State and worker of a connector and of each of its tasks; none if it is not known."""
        answer = self.ask("GET", connector_path(connector, "status"))
        if answer.status_code != _OK:
            return []
        status = answer.json()
        return [
            (each["state"], each["worker_id"]) for each in (status["connector"], *status["tasks"])
        ]

    def wait_for(self, condition: Callable[[], object], describe: Callable[[], str]) -> None:
        wait_for(
            condition,
            within=WAIT_SECONDS,
            describe=lambda: f"{self.name}: {describe()}; {self.log_end()}",
        )

    def wait_for_states(self, connector: str, state: str, *, tasks: int | None = None) -> None:
        """Wait until the connector and its tasks are all in `state`."""

        def holds() -> bool:
            found = self.states(connector)
            is_complete = bool(found) if tasks is None else len(found) == 1 + tasks
            return is_complete and {each for each, _ in found} == {state}

        self.wait_for(holds, lambda: f"{connector} is {state}: {self.states(connector)}")

    def log_end(self) -> str:
        return f"its log ends:\n{log_tail(self.log_path, _LOG_LINES)}"


def connector_path(connector: str, rest: str = "") -> str:
    """The path of a connector whose name may have any characters."""
    path = f"/connectors/{quote(connector, safe='')}"
    return f"{path}/{rest}" if rest else path


class Workers:
    """What the workers of one group have in common: their clusters, file and topics."""

    def __init__(self, folder: Path, source: KafkaCluster, target: KafkaCluster) -> None:
        self.source, self.target = source, target
        self.group_id = unique_name("workers")
        self._folder = folder

    @property
    def offsets_topic(self) -> str:
        return f"{self.group_id}-offset"

    def new_worker(
        self, name: str, settings: Mapping[str, str] | None = None, *options: str
    ) -> Worker:
        """A worker that is not started yet."""
        return Worker(name, self._folder, {**self._settings(), **(settings or {})}, *options)

    def _settings(self) -> dict[str, str]:
        topics = {
            f"{kind}.storage.{key}": value
            for kind in ("config", "offset", "status")
            for key, value in (("topic", f"{self.group_id}-{kind}"), ("replication.factor", "1"))
        }
        return {
            "bootstrap.servers": self.target.bootstrap_servers,
            "group.id": self.group_id,
            "key.converter": BYTES,
            "value.converter": BYTES,
            "offset.storage.partitions": str(OFFSETS_PARTITIONS),
            "offset.flush.interval.ms": "1000",
            "session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "heartbeat.interval.ms": "1000",
            **topics,
        }


class Flow:
    """The three connectors from a cluster under an alias of its own; they copy one topic."""

    def __init__(self, workers: Workers, topic: str, group: str, *, tasks_max: int = 2) -> None:
        self.alias = unique_name("a")
        self.topic, self.group = topic, group
        self.remote = f"{self.alias}.{topic}"
        self.source_name, self.checkpoint_name, self.heartbeat_name = self.names = tuple(
            f"{self.alias}->b.{kind}" for kind in KINDS
        )
        self._workers = workers
        self._tasks_max = tasks_max

    def configs(self) -> dict[str, dict[str, str]]:
        """Settings by name."""
        own: tuple[dict[str, str], ...] = (
            {
                "topics": self.topic,
                "replication.factor": "1",
                "offset-syncs.topic.replication.factor": "1",
                "tasks.max": str(self._tasks_max),
                "sync.topic.acls.enabled": "false",
            },
            {
                "groups": self.group,
                "checkpoints.topic.replication.factor": "1",
                "emit.checkpoints.interval.seconds": "1",
                "refresh.groups.interval.seconds": "1",
                "sync.group.offsets.enabled": "true",
                "sync.group.offsets.interval.seconds": "1",
            },
            {
                "heartbeats.topic.replication.factor": "1",
                "emit.heartbeats.interval.seconds": "1",
            },
        )
        return {
            name: {**self._common(name, kind), **settings}
            for name, kind, settings in zip(self.names, KINDS, own, strict=True)
        }

    def _common(self, name: str, kind: str) -> dict[str, str]:
        return {
            "name": name,
            "connector.class": f"{MIRROR}{kind}",
            "source.cluster.alias": self.alias,
            "target.cluster.alias": "b",
            "source.cluster.bootstrap.servers": self._workers.source.bootstrap_servers,
            "target.cluster.bootstrap.servers": self._workers.target.bootstrap_servers,
        }
