"""A task's start message: written by the worker, read by the task, nothing lost in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkmirror.config.masking import HIDDEN, mask, remember_provided
from sparkmirror.errors import ConfigErrors
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.spark.task_config import (
    AssignedPartition,
    decode_assigned,
    encode_assigned,
    parse_start,
    start_message,
)
from sparkmirror.types import TopicPartition
from tests.flows import make_flow

ASSIGNED = (
    AssignedPartition(TopicPartition("t", 0), TopicPartition("a.t", 0), 41),
    AssignedPartition(TopicPartition("t", 1), TopicPartition("a.t", 1), None),
    AssignedPartition(
        TopicPartition("t", 2),
        TopicPartition("a.t", 2),
        9,
        Provenance(bytes(range(16)), ((0, 0), (4, 7)), 12),
    ),
    AssignedPartition(TopicPartition("\u00e9", 7), TopicPartition("a.\u00e9", 7), 0),
)
SETTINGS = {
    "a->b.topics": "t.*",
    "a.consumer.fetch.max.bytes": "1000000",
    "a.consumer.auto.offset.reset": "latest",
    "b.producer.acks": "1",
    "b.offset.flush.interval.ms": "1234",
}


def test_assignments_both_ways() -> None:
    rows = json.loads(json.dumps(encode_assigned(ASSIGNED)))
    assert rows[0] == ["t", "a.t", 0, 41]
    assert decode_assigned(rows) == ASSIGNED


def test_start_message_both_ways(tmp_path: Path) -> None:
    flow = make_flow(tmp_path, SETTINGS)
    props = flow.connector_props["MirrorSourceConnector"]
    message = start_message(props, flow.worker_props, 25, ASSIGNED)
    settings = parse_start(json.loads(json.dumps(message)))
    assert settings.connector == flow.source
    assert settings.worker == flow.worker
    assert settings.offsets_partitions == 25
    assert settings.assigned == ASSIGNED


def test_a_task_hides_what_providers_gave_and_knows_no_other_secret(tmp_path: Path) -> None:
    flow = make_flow(tmp_path)
    remember_provided("provided-topic-1")
    remember_provided("provided-elsewhere-1")
    props = flow.connector_props["MirrorSourceConnector"] | {"topics": "t,provided-topic-1"}
    message = start_message(props, flow.worker_props, 25, ())
    assert message["provided"] == ["provided-topic-1"]
    parse_start(message | {"provided": ["provided-of-the-worker"]})
    assert mask("at provided-of-the-worker") == f"at {HIDDEN}"


def test_a_senseless_start_message_names_the_worker_as_its_place(tmp_path: Path) -> None:
    flow = make_flow(tmp_path)
    props = flow.connector_props["MirrorSourceConnector"] | {"tasks.max": "many"}
    message = start_message(props, flow.worker_props, 25, ())
    with pytest.raises(ConfigErrors, match=r"the worker's start message.*tasks\.max=many"):
        parse_start(message)
