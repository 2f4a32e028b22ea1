"""Where a connector with its own topic stores its positions."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.mirror.positions.own_offsets import with_own_offsets
from tests.flows import make_flow

SERVERS = {"b.bootstrap.servers": "b:9092"}
OWN = {"a->b.offsets.storage.topic": "mine"}
ELSEWHERE = {"a->b.producer.override.bootstrap.servers": "c:9092"}


def test_without_the_key_the_worker_has_them(tmp_path: Path) -> None:
    flow = make_flow(tmp_path, SERVERS)
    for config in (flow.source, flow.checkpoint, flow.heartbeat):
        assert with_own_offsets(flow.worker, config) is flow.worker


def test_the_topic_is_on_the_cluster_that_records_go_to(tmp_path: Path) -> None:
    flow = make_flow(tmp_path, SERVERS | OWN | ELSEWHERE)
    for config in (flow.source, flow.checkpoint, flow.heartbeat):
        worker = with_own_offsets(flow.worker, config)
        assert worker.offset_storage_topic == "mine"
        assert worker.client.bootstrap_servers == ("c:9092",)
        assert worker.producer.client.bootstrap_servers == ("c:9092",)
        assert worker.offset_storage_partitions == flow.worker.offset_storage_partitions


def test_the_workers_own_topic_is_no_other(tmp_path: Path) -> None:
    same = {"a->b.offsets.storage.topic": "mm2-offsets.a.internal"}
    flow = make_flow(tmp_path, SERVERS | same)
    assert with_own_offsets(flow.worker, flow.source) is flow.worker
    flow = make_flow(tmp_path, SERVERS | same | ELSEWHERE)
    assert with_own_offsets(flow.worker, flow.source) is not flow.worker
