"""The real herder over topics in memory, with the three connectors of the recordings.

The connectors are fakes that do at once what genuine ones had done when the recordings were made;
every response is made by the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sparkmirror.connect.entities import ConnectorProps, Json
from sparkmirror.mirror.task_configs import checkpoint_tasks, source_tasks
from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.types import TopicPartition
from tests.connect.connector_fakes import FakeRunning
from tests.connect.herder_fakes import FakeWorker

SOURCE, CHECKPOINT, HEARTBEAT = "MirrorSource", "MirrorCheckpoint", "MirrorHeartbeat"
PARTITIONS = [TopicPartition("heartbeats", 0), *(TopicPartition("ho-t1", at) for at in (0, 1))]
TASKS: Mapping[str, Sequence[Mapping[str, str]]] = {
    SOURCE: source_tasks([PARTITIONS]),
    CHECKPOINT: checkpoint_tasks(["ho-g1"], 1),
    HEARTBEAT: [{}],
}
TOPICS = {
    SOURCE: {"a.ho-t1", "a.heartbeats"},
    CHECKPOINT: {"a.checkpoints.internal"},
    HEARTBEAT: {"heartbeats"},
}
OFFSETS: Mapping[str, Sequence[tuple[Json, Json]]] = {
    SOURCE: [
        ({"cluster": "a", "partition": tp.partition, "topic": tp.topic}, {"offset": last})
        for tp, last in zip(PARTITIONS, (0, 99, 99), strict=True)
    ],
    CHECKPOINT: [
        ({"group": "ho-g1", "partition": at, "topic": "a.ho-t1"}, {"offset": 0}) for at in (0, 1)
    ],
    HEARTBEAT: [({"sourceClusterAlias": "a", "targetClusterAlias": "b"}, {"offset": 0})],
}


class Running(FakeRunning):
    """A connector of the recordings."""

    def __init__(self, config: ConnectorProps) -> None:
        super().__init__(config)
        self.kind = str(config["connector.class"]).rpartition(".")[2].removesuffix("Connector")
        self.task_class = f"{self.kind}Task"
        self.topics = set(TOPICS[self.kind])

    def task_configs(self) -> list[dict[str, str]] | None:
        return [dict(task) for task in TASKS[self.kind]]


class GoldenWorker(FakeWorker):
    """A worker whose connectors have stored their first offsets when they start."""

    def make_connector(self, props: ConnectorProps) -> FakeRunning:
        running = Running(props)
        name = str(props["name"])
        if name not in self.offsets.rows:
            self.offsets.rows[name] = list(OFFSETS[running.kind])
        self.made.append(running)
        return running

    def unsettled(self) -> set[str]:
        """The topics that connectors write and the status topic does not know yet."""
        known = {topic for name in self.offsets.rows for topic in self.statuses.topics(name)}
        return {topic for topics in TOPICS.values() for topic in topics} - known

    @contextmanager
    def served(self) -> Iterator[str]:
        """Start its REST API on a free port; returns the URL."""
        with RestServer([("127.0.0.1", 0)]) as server:
            server.start(make_app(self.herder, RestOptions()))
            yield f"http://127.0.0.1:{server.ports[0]}"
