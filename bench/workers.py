"""The systems as Connect workers: a copy is a connector that is created, measured and deleted.

One worker makes all copies of a system, so its code stays warm. Every copy of the same topic
starts without state, because its connector and its source alias are new.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.cases import MM2_TUNED, SPARKMIRROR
from bench.process_tree import ProcessTree
from bench.systems import (
    CONSUMER_TUNING,
    MM2_JVM_ARGS,
    MM2_TASKS,
    PRODUCER_TUNING,
    STOP_SECONDS,
    Mirror,
)
from sparkmirror.embedded.connect_worker import ConnectWorker
from sparkmirror.embedded.java import store_properties
from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.process import Child, log_tail, start_child
from sparkmirror.errors import MirrorError
from sparkmirror.retry import wait_for
from sparkmirror.tools.deploy.rest_client import ConnectClient

_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_START_SECONDS = 120.0
_REST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Route:
    """The two clusters of a copy; `security` are the settings for clients of both."""

    source_bootstrap: str
    target_bootstrap: str
    security: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CopyName:
    """One copy of a topic: its connector, and the alias that makes its remote topic."""

    alias: str
    topic: str

    @property
    def remote_topic(self) -> str:
        return f"{self.alias}.{self.topic}"


@dataclass(frozen=True, slots=True)
class Worker:
    """A running worker, and a client of its REST API."""

    system: str
    mirror: Mirror
    client: ConnectClient

    def start_copy(self, name: CopyName, route: Route) -> None:
        """Create the connector that copies a topic."""
        body = json.dumps(connector_config(self.system, name, route)).encode()
        self.client.renew_patience()
        self.client.put_config(name.alias, body)

    def end_copy(self, name: CopyName) -> None:
        """Delete the connector; return when the worker no longer lists it."""
        self.client.renew_patience()
        self.client.delete(name.alias)
        wait_for(
            lambda: self.client.status(name.alias) is None,
            within=_REST_SECONDS,
            describe=f"connector {name.alias} is deleted",
        )


def connector_config(system: str, name: CopyName, route: Route) -> dict[str, str]:
    """The settings of the source connector; systems differ only in tasks and tuning."""
    config = {
        "name": name.alias,
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": name.alias,
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": route.source_bootstrap,
        "target.cluster.bootstrap.servers": route.target_bootstrap,
        # Connect's own producer writes the records, not one of the connector's.
        "producer.override.bootstrap.servers": route.target_bootstrap,
        "topics": name.topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
    }
    for prefix in ("source.cluster.", "target.cluster.", "producer.override."):
        config |= {f"{prefix}{key}": value for key, value in route.security.items()}
    if system != SPARKMIRROR:
        config["tasks.max"] = MM2_TASKS
    if system == MM2_TUNED:
        config |= {f"producer.override.{key}": value for key, value in PRODUCER_TUNING.items()}
        config |= {f"source.consumer.{key}": value for key, value in CONSUMER_TUNING.items()}
    return config


def worker_properties(name: str, bootstrap: str) -> dict[str, str]:
    """The connect-distributed.properties of a worker, the same for all systems."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        "key.converter": _BYTES,
        "value.converter": _BYTES,
        "header.converter": _BYTES,
        "config.storage.topic": f"{name}-configs",
        "offset.storage.topic": f"{name}-offsets",
        "status.storage.topic": f"{name}-status",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "connector.client.config.override.policy": "All",
    }


@contextmanager
def running_worker(system: str, name: str, bootstrap: str, folder: Path) -> Iterator[Worker]:
    """Start a worker of `system`; stop it and everything it started at the end."""
    properties = worker_properties(name, bootstrap)
    start = _running_ours if system == SPARKMIRROR else _running_genuine
    with (
        start(properties, folder) as (mirror, url),
        ConnectClient(url, _REST_SECONDS) as client,
    ):
        yield Worker(system, mirror, client)


@contextmanager
def _running_genuine(properties: dict[str, str], folder: Path) -> Iterator[tuple[Mirror, str]]:
    started_at = time.monotonic()
    with ConnectWorker(properties, folder, heap="2g", jvm_args=MM2_JVM_ARGS) as worker:
        tree = ProcessTree(worker.pid)
        yield Mirror(worker.pid, worker.log_path, started_at, tree), worker.url


@contextmanager
def _running_ours(properties: dict[str, str], folder: Path) -> Iterator[tuple[Mirror, str]]:
    started_at = time.monotonic()
    settings, log_path = folder / "connect.properties", folder / "sparkmirror.log"
    with ReservedPort() as port:
        url = f"http://{HOST}:{port.number}"
        store_properties(settings, {**properties, "listeners": url})
        command: list[str | Path]
        command = [sys.executable, "-m", "sparkmirror.cli.main", "worker", settings]
        child = start_child(command, log_path)
        try:
            wait_for(
                lambda: _is_healthy(child, url),
                within=_START_SECONDS,
                describe=lambda: log_tail(log_path),
            )
            yield Mirror(child.pid, log_path, started_at, ProcessTree(child.pid)), url
        finally:
            child.stop(STOP_SECONDS)


def _is_healthy(child: Child, url: str) -> bool:
    if child.exit_code is not None:
        raise MirrorError(f"the worker ended while it started:\n{log_tail(child.log_path)}")
    try:
        return httpx.get(f"{url}/health", trust_env=False).is_success
    except httpx.HTTPError:
        return False  # not listening yet
