"""The same for a Connect worker: its group, its three topics, its transactional id; no Spark."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from sparkmirror.config.worker.worker_file import WorkerFile, load_worker
from sparkmirror.connect.runtime.connect_distributed import ConnectDistributed
from sparkmirror.connect.storage.backing_stores import StoredStatus
from sparkmirror.connect.storage.status_backing_store import KafkaStatusBackingStore
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.permissions import (
    NOT_LOOKED,
    Feature,
    Need,
    Operation,
    Permission,
    ResourceKind,
    needs_of,
)
from sparkmirror.tools.check.required_permissions import wanted_by_worker
from sparkmirror.wire.access import describe_lack, grant_command
from sparkmirror.wire.principal import principal_of
from tests.clusters import Record, create_topic, produce, unique_name, wait_for
from tests.group_offsets import committed_offsets
from tests.permissions.guarded import Grant, Guarded, grants_of
from tests.permissions.worlds import flush, warnings_of

pytestmark = pytest.mark.kafka

SECONDS = 20.0
URL = "http://127.0.0.1:1/"


class Worker:
    """A worker's file, and what is said while it is run."""

    def __init__(self, folder: Path, guarded: Guarded) -> None:
        self.guarded = guarded
        self.file = self._load(folder / "worker.properties")
        self.messages: list[str] = []
        self.done: set[str] = set()

    def _load(self, path: Path) -> WorkerFile:
        kinds = ("offset", "config", "status")
        login = self.guarded.login("writer")
        lines = {
            **login,
            **{f"producer.{key}": value for key, value in login.items()},
            "group.id": unique_name("workers"),
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "300",
            **{f"{kind}.storage.topic": unique_name(kind) for kind in kinds},
            **{f"{kind}.storage.replication.factor": "1" for kind in kinds},
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
        }
        path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
        return load_worker(path)

    def run(self) -> None:
        """Start, lead, write to all three topics, stop."""
        workers: list[ConnectDistributed] = []
        if not self._try("made", lambda: workers.append(ConnectDistributed(self.file, URL))):
            return
        worker = workers[0]
        try:
            if self._try("started", worker.start):
                self._use(worker)
        finally:
            worker.stop()

    def _use(self, worker: ConnectDistributed) -> None:
        membership = worker.cluster.member
        wait_for(
            lambda: membership.is_leader or "lacks" in membership.last_error,
            within=SECONDS,
            describe="it leads, or says why it cannot",
        )
        if not membership.is_leader:
            self.messages.append(membership.last_error)
            return
        self.done.add("leads")
        self._try("changes", lambda: worker.cluster.configs.put_logger("kafka", "INFO"))
        worker.cluster.statuses.put_connector("c", StoredStatus("RUNNING", "w", 1))
        statuses = cast("KafkaStatusBackingStore", worker.cluster.statuses)
        flush(statuses._writer)
        if not statuses.last_error:
            self.done.add("states")
        offsets = worker.herder._offsets
        self._try("shows", lambda: offsets.list("c"))
        self._try("offsets", lambda: offsets.write("c", [({"p": 1}, {"o": 2})]))

    def _try(self, name: str, step: Callable[[], object]) -> bool:
        try:
            step()
        except MirrorError as error:
            self.messages.append(str(error))
            return False
        self.done.add(name)
        return True


@pytest.fixture
def worker(guarded: Guarded, tmp_path: Path) -> Worker:
    return Worker(tmp_path, guarded)


ALL = {"made", "started", "leads", "changes", "states", "shows", "offsets"}


def test_a_worker_works_with_exactly_the_documented_permissions(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.guarded.allow_only(grants_of(wanted_by_worker(worker.file.worker)))
    # When the group has a coordinator: a new cluster makes its topic for groups only now.
    assert committed_offsets(worker.guarded.kafka, worker.file.group.group_id) == {}
    worker.run()
    assert worker.messages == []
    # The same for transactions comes while it runs; and at the end the group is left.
    usual = ("COORDINATOR", "does not lead any more")
    found = warnings_of(caplog.records)
    assert [text for text in found if not any(each in text for each in usual)] == []
    assert worker.done == ALL


DONE = {
    (ResourceKind.MEMBERS, Operation.READ): {"made", "started"},
    (ResourceKind.TRANSACTIONAL_ID, Operation.WRITE): ALL - {"changes"},
    (ResourceKind.CONFIG, Operation.CREATE): {"made"},
    (ResourceKind.CONFIG, Operation.READ): {"made"},
    (ResourceKind.CONFIG, Operation.WRITE): ALL - {"changes"},
    (ResourceKind.STATUS, Operation.CREATE): {"made"},
    (ResourceKind.STATUS, Operation.READ): {"made"},
    (ResourceKind.STATUS, Operation.WRITE): ALL - {"states"},
    (ResourceKind.OFFSETS, Operation.CREATE): set(),
    (ResourceKind.OFFSETS, Operation.READ): ALL - {"shows", "offsets"},
    (ResourceKind.OFFSETS, Operation.WRITE): ALL - {"offsets"},
}
EVEN_UNNOTICED = os.environ.get("SPARKMIRROR_PERMISSIONS") == "all"
IN_TURN = [
    need for need in needs_of(Feature.WORKER) if EVEN_UNNOTICED or need.without != NOT_LOOKED
]


@pytest.mark.parametrize(
    "need", IN_TURN, ids=lambda need: f"{need.place.name}-{need.operation.name}"
)
def test_a_missing_permission_is_named_and_the_rest_goes_on(
    need: Need, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = wanted_by_worker(worker.file.worker)
    row = next(row for row in wanted if row.need == need)
    (missing,) = row.permissions
    _prepare(worker, missing)
    worker.guarded.allow_only(grants_of(wanted) - {Grant(principal_of(row.client), missing)})
    worker.run()
    found = [*worker.messages, *warnings_of(caplog.records)]
    texts = [text for text in found if describe_lack(row.client, missing) in text]
    if need.without == NOT_LOOKED:
        assert worker.done == ALL
        return
    assert texts, found
    assert f"to allow it: {grant_command(row.client, missing)}" in texts[0]
    assert any(need.without in text for text in texts), texts
    assert worker.done == DONE[need.place, need.operation]


def _prepare(worker: Worker, missing: Permission) -> None:
    """A topic that is empty may be read by anybody."""
    if missing.operation is Operation.READ and missing.resource == "topic":
        kafka = worker.guarded.kafka
        create_topic(kafka, missing.name, config={"cleanup.policy": "compact"})
        produce(kafka, missing.name, [Record(None, b"a tombstone")])
