"""The three connectors of one flow on a Connect worker, which a test restarts by requests."""

from __future__ import annotations

from pathlib import Path

from tests.mm2_suite.flows import DEFAULT, Flow
from tests.mm2_suite.worlds import LAG_MAX, Clusters
from tests.worker_cluster.workers import (
    KINDS,
    MIRROR,
    Worker,
    Workers,
    connector_path,
)

SOURCE, TARGET = "rest", "backup"
PREFIX = "rest-"
_EVERY_SECOND = (
    "refresh.topics.interval.seconds",
    "refresh.groups.interval.seconds",
    "sync.topic.configs.interval.seconds",
    "sync.group.offsets.interval.seconds",
    "emit.checkpoints.interval.seconds",
    "emit.heartbeats.interval.seconds",
)
_ONE_COPY = (
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset-syncs.topic.replication.factor",
)


class ConnectMirror:
    """A worker with the connectors, made by requests as the original makes them."""

    def __init__(self, folder: Path, clusters: Clusters) -> None:
        self._clusters = clusters
        workers = Workers(folder, clusters.primary, clusters.backup)
        self._worker: Worker = workers.new_worker("rest", {"offset.flush.interval.ms": "500"})

    @property
    def flow(self) -> Flow:
        primary, backup = self._clusters.primary, self._clusters.backup
        return Flow(self, primary, backup, SOURCE, TARGET, DEFAULT, PREFIX)

    def start(self) -> None:
        self._worker.start()
        for kind in KINDS:
            request = {"name": kind, "config": self._config(kind)}
            answer = self._worker.ask("POST", "/connectors", request)
            assert answer.status_code == 201, answer.text
        # Tasks come with the first topic and the first group.
        for kind in KINDS:
            self._worker.wait_for_states(kind, "RUNNING")

    def restart_connectors(self) -> None:
        """All connectors and tasks, whatever their state; returns when they run again."""
        for kind in KINDS:
            path = connector_path(kind, "restart?includeTasks=true&onlyFailed=false")
            answer = self._worker.ask("POST", path)
            assert answer.status_code == 202, answer.text
            status = answer.json()
            states = [each["state"] for each in (status["connector"], *status["tasks"])]
            assert states == ["RESTARTING"] * 2, states
        for kind in KINDS:
            self._worker.wait_for_states(kind, "RUNNING", tasks=1)

    def stop(self) -> None:
        self._worker.stop()

    def close(self) -> None:
        self._worker.close()

    def check_running(self) -> None:
        assert self._worker.is_healthy(), self.log_end()

    def log(self) -> str:
        return self._worker.log_path.read_text()

    def log_end(self) -> str:
        return self._worker.log_end()

    def _config(self, kind: str) -> dict[str, str]:
        return {
            "name": kind,
            "connector.class": f"{MIRROR}{kind}",
            "source.cluster.alias": SOURCE,
            "target.cluster.alias": TARGET,
            "source.cluster.bootstrap.servers": self._clusters.primary.bootstrap_servers,
            "target.cluster.bootstrap.servers": self._clusters.backup.bootstrap_servers,
            "topics": f"{PREFIX}.*",
            "groups": "consumer-group-.*",
            "offset.lag.max": str(LAG_MAX),
            "sync.group.offsets.enabled": "true",
            "sync.topic.acls.enabled": "false",
            "heartbeats.replication.enabled": "false",
            "tasks.max": "1",
            **dict.fromkeys(_EVERY_SECOND, "1"),
            **dict.fromkeys(_ONE_COPY, "1"),
        }
