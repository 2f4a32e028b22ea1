"""Releases with a ZooKeeper: each beside a broker of the newest, mirrored both ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.embedded.ports import ReservedPort
from tests.clusters import create_topic, unique_name
from tests.kafka.records import fill
from tests.kafka.releases.checks import ReleaseChecks
from tests.kafka.releases.scene import Flow, Scene, mirrored
from tests.users import files
from tests.users.workers import WorkerProcess, run_workers

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

ALIAS = "elsewhere"
ONE_COPY = {
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
}


@pytest.fixture(scope="module", params=["2.1", "2.4", "2.8"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """The clusters of one release, shared by all tests."""
    with mirrored(request.param, tmp_path_factory.mktemp("mirror")) as scene:
        yield scene


class TestZooKeeperReleases(ReleaseChecks):
    """One set of clusters for each release."""

    def test_a_worker_keeps_its_own_topics_there(self, scene: Scene, tmp_path: Path) -> None:
        """It runs the three connectors, and all of them again after a restart."""
        topic = unique_name("work")
        create_topic(scene.new, topic)
        fill(scene.new, topic, 100)
        flow = Flow(scene.new, scene.old, ALIAS, scene.mirror)
        connectors = _connectors(scene, topic)
        with ReservedPort() as port:
            file = files.write_worker(
                tmp_path / "connect-distributed.properties",
                files.CENTRAL_WORKER,
                scene.old.bootstrap_servers,
                port.number,
            )
            with run_workers(tmp_path, [file]) as (worker,):
                for name, settings in connectors.items():
                    created = worker.ask("PUT", f"/connectors/{name}/config", settings)
                    assert created.status_code == 201, created.text
                flow.wait_copied(topic)
                _wait_running(worker)
            fill(scene.new, topic, 100, first=100)
            (tmp_path / "again").mkdir()
            with run_workers(tmp_path / "again", [file]) as (worker,):
                flow.wait_copied(topic)
                _wait_running(worker)
                assert re.findall(r"(\d+) resume at .*, (\d+) start afresh", worker.log) == [
                    ("1", "0")
                ]


def _connectors(scene: Scene, topic: str) -> dict[str, dict[str, object]]:
    clusters = {ALIAS: scene.new.bootstrap_servers, "here": scene.old.bootstrap_servers}
    shared: dict[str, object] = dict(ONE_COPY)
    own = {"Source": {"topics": topic}, "Checkpoint": {}, "Heartbeat": {}}
    return {
        kind: files.connector(kind, kind, clusters, **shared, **settings)
        for kind, settings in own.items()
    }


def _wait_running(worker: WorkerProcess) -> None:
    for name, tasks in {"Source": 1, "Checkpoint": 1, "Heartbeat": 1}.items():
        worker.wait_running(name, tasks, on=worker)
