"""The parts of the program at work, on fakes of the network, so that they read their settings.

Each scene starts the real code with settings that came out of a real file. What a scene reads is
named by its place in the typed settings of a flow: `source`, `checkpoint`, `heartbeat`, `worker`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from unittest import mock

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.mm2 import FlowConfig, MirrorMakerConfig
from sparkmirror.connect.checkpoint.mirror_checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.connector import Connector as Running
from sparkmirror.connect.heartbeat import mirror_heartbeat_task
from sparkmirror.connect.heartbeat.mirror_heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.runtime.cluster_worker import ClusterWorker
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.errors import TransportError
from sparkmirror.spark.copy.copy_loop import CopyLoop
from sparkmirror.spark.task_config import parse_start, start_message
from sparkmirror.wire.admin import admin_client
from sparkmirror.wire.admin.admin import Admin
from sparkmirror.wire.admin.broker_routed_admin import BrokerRoutedAdmin
from sparkmirror.wire.net.event_loop import EventLoop
from tests.clusters import wait_for
from tests.connect import fakes, group_fakes
from tests.connect.fakes import Connector, FakeAdmin
from tests.connect.group_fakes import Checkpoints
from tests.connect.local_checkpoints import LocalCheckpoints
from tests.connect.local_source import LocalSource
from tests.every_key.recorder import Reads, record_text, recorded
from tests.flows import make_file
from tests.spark.copies import OFFSETS, T0, assign
from tests.wire.fake_broker import FETCH, PRODUCE, Do, FakeCluster, once

WAIT_SECONDS = 20.0
SYNCS, OFFSET_MAP = "mm2-offset-syncs.b.internal", "mm2-offset-map.a.internal"
CHECKPOINTS = "a.checkpoints.internal"
SHORT = {
    "a.consumer.fetch.max.wait.ms": "50",
    "a.consumer.retry.backoff.ms": "5",
    "b.producer.retry.backoff.ms": "5",
    "a->b.sync.group.offsets.enabled": "true",
    "emit.heartbeats.interval.seconds": "0",
}


@contextmanager
def two_clusters() -> Iterator[tuple[FakeCluster, FakeCluster]]:
    """A source with a topic, and a target with everything that is written there."""
    with FakeCluster() as source, FakeCluster() as target:
        source.create_topic("t")
        source.create_topic(SYNCS)
        for topic in ("a.t", "heartbeats", OFFSET_MAP, CHECKPOINTS):
            target.create_topic(topic)
        target.create_topic(OFFSETS, partitions=25)
        yield source, target


@contextmanager
def no_admin_network() -> Iterator[None]:
    """Admin clients are made with all their options and never connect."""
    with (
        mock.patch.object(admin_client, "check_reachable"),
        mock.patch.object(admin_client, "_AdminClient"),
    ):
        yield


def play_mm2(folder: Path) -> Reads:
    """Everything that one flow of an mm2 file has."""
    with recorded() as reads, two_clusters() as (source, target):
        file = make_file(folder, SHORT, source.bootstrap_servers, target.bootstrap_servers)
        (flow,) = file.flows
        record_text(flow.source)
        record_text(flow.checkpoint)
        props = flow.connector_props["MirrorSourceConnector"]
        play_copy(reads, props, flow.worker_props, source, target)
        with mock.patch.object(fakes, "make_flow", return_value=flow):
            _source_connector(reads, folder, flow)
        with mock.patch.object(group_fakes, "make_flow", return_value=flow):
            _checkpoints(reads, folder, flow)
        _heartbeats(reads, flow)
        _running(reads, flow)
        _dedicated(reads, file)
    return reads


def play_copy(
    reads: Reads,
    props: Mapping[str, str],
    worker_props: Mapping[str, str],
    source: FakeCluster,
    target: FakeCluster,
) -> None:
    """A copy task: one record, over connections that break once."""
    message = start_message(
        props,
        worker_props,
        25,
        [assign(T0, None)],
        offset_syncs_topic=SYNCS,
        offset_map_topic=OFFSET_MAP,
    )
    settings = parse_start(message)
    loop = EventLoop()
    source.intercept(FETCH, once(Do(drop=True)))
    target.intercept(PRODUCE, once(Do(drop=True)))
    source.write(T0, [b"0"])
    copy = CopyLoop(settings, loop)
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        while not target.log("a.t").values():
            assert time.monotonic() < deadline, copy.problems
            copy.turn()
        copy.stop()
        copy.run()
    finally:
        copy.close()
        loop.close()
    reads.name(settings.connector, ("source",))
    reads.name(settings.worker, ("worker",))


def ask_in_vain(client: ClientConfig) -> None:
    """An admin request that nobody answers: it is tried again until its time is over."""
    gone = TransportError("its coordinator is away")
    admin = BrokerRoutedAdmin(client, 1)
    responses = admin._ask_until_settled(
        ["g"], lambda keys: dict.fromkeys(keys, gone), lambda *_: {}
    )
    assert responses == {"g": gone}
    admin.close()


def _source_connector(reads: Reads, folder: Path, flow: FlowConfig) -> None:
    """Topics, configs and ACLs; the tasks are fakes."""
    with no_admin_network():
        real = LocalSource(flow)
        real.connect()
        real.stop()
    connector = Connector(folder, SHORT)
    connector.source.add("t")
    connector.source.acls = connector.target.acls = []
    connector.refresh()
    connector._schedule_internal_topics()
    connector._schedule()
    connector.orders(0)
    KafkaOffsetBackingStore(flow.worker, "c", "a").prepare(cast("Admin", FakeAdmin()))
    reads.name(flow.source, ("source",))
    reads.name(flow.worker, ("worker",))


def _checkpoints(reads: Reads, folder: Path, flow: FlowConfig) -> None:
    with no_admin_network():
        for client in (flow.checkpoint.source_client, flow.checkpoint.target_client):
            ask_in_vain(client)
        real = LocalCheckpoints(flow)
        real.connect()
        real._writer.start()
        real._writer.send(CHECKPOINTS, 0, [(b"", b"", 0)])
        assert real._writer.flush(WAIT_SECONDS)
        real.stop()
        real._writer.close()
    connector = Checkpoints(folder, SHORT)
    connector._prepare()
    assert connector._translator is not None
    connector._translator.catch_up(WAIT_SECONDS)
    connector._translator.close()
    connector.make_ready()
    connector.refresh()
    connector.emit()
    with mock.patch.object(connector, "_scheduler"), mock.patch.object(connector, "_writer"):
        connector.start()
    reads.name(flow.checkpoint, ("checkpoint",))
    reads.name(flow.worker, ("worker",))


def _heartbeats(reads: Reads, flow: FlowConfig) -> None:
    spec = flow.spec(flow.heartbeat)
    with no_admin_network():
        MirrorHeartbeatTask(spec).connect()
    with mock.patch.object(mirror_heartbeat_task, "Admin", return_value=FakeAdmin()):
        connector = MirrorHeartbeatTask(spec)
        connector.connect()
        connector.start()
        wait_for(
            lambda: connector.records > 0,
            within=WAIT_SECONDS,
            describe=lambda: connector.last_error,
        )
        connector.stop()
        connector.join(WAIT_SECONDS)
    reads.name(flow.heartbeat, ("heartbeat",))
    reads.name(flow.worker, ("worker",))


def _dedicated(reads: Reads, file: MirrorMakerConfig) -> None:
    """The group that processes with one file join, and the topics of MirrorMaker 2's worker."""
    worker = file.pairs[0].worker
    ClusterWorker(worker, mock.Mock(), "host/1", "host/1")
    reads.name(worker.worker, ("worker",))


def _running(reads: Reads, flow: FlowConfig) -> None:
    """Connectors as a worker runs them."""
    made: dict[str, Running] = {
        "source": MirrorSourceConnector(flow.spec(flow.source)),
        "checkpoint": MirrorCheckpointConnector(flow.spec(flow.checkpoint)),
        "heartbeat": MirrorHeartbeatConnector(flow.spec(flow.heartbeat)),
    }
    for kind, connector in made.items():
        config = getattr(flow, kind)
        with no_admin_network(), mock.patch.object(Scheduler, "start"):
            connector.connect()
            connector.task_configs()
            if kind == "checkpoint":
                connector.start(mock.Mock())
        reads.name(config, (kind,))
