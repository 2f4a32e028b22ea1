"""What the checkpoints topic says, and that it gets what is remembered."""

from __future__ import annotations

import logging

import pytest

from sparkmirror.batches.records import Record
from sparkmirror.connect.checkpoint.checkpoint_topic import BATCH_BYTES, CheckpointTopic
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.records import Checkpoint, UnsupportedRecordError
from sparkmirror.types import TopicPartition
from tests.connect.group_fakes import FakeWriter

TOPIC = "a.checkpoints.internal"
T0, T1 = TopicPartition("a.t", 0), TopicPartition("a.t", 1)


class Noted:
    """Keys of the offsets topic."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []

    def note(self, key: bytes) -> None:
        self.keys.append(key)


class Rig:
    """A log and where it writes to."""

    def __init__(self) -> None:
        self.writer, self.noted = FakeWriter(), Noted()
        self.log = CheckpointTopic(TOPIC, "MirrorCheckpointConnector", self.writer, self.noted)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def checkpoint(
    at: int, tp: TopicPartition = T0, group: str = "g", metadata: str = ""
) -> Checkpoint:
    return Checkpoint(group, *tp, at, at + 1, metadata)


def record(found: Checkpoint, offset: int = 0) -> Record:
    return Record(offset, 0, found.encode_key(), found.encode_value())


def test_the_last_checkpoint_of_each_group_and_partition(rig: Rig) -> None:
    rig.log.load([record(checkpoint(1)), record(checkpoint(5, T1)), record(checkpoint(2))])
    assert rig.log.of_group("g") == {T0: checkpoint(2), T1: checkpoint(5, T1)}
    assert rig.log.of_group("other") == {}


def test_malformed_records_are_skipped_counted_and_named_once(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    good = checkpoint(1)
    with caplog.at_level(logging.WARNING):
        rig.log.load(
            [
                Record(3, 0, b"\x00", good.encode_value()),
                Record(4, 0, None, good.encode_value()),
                Record(5, 0, good.encode_key(), b"\x00\x00\x01"),
                record(good),
                Record(7, 0, good.encode_key(), None),
            ]
        )
    assert rig.log.by_group() == {"g": {T0: good}}
    assert rig.log.malformed == 3
    assert [line[:47] for line in caplog.messages] == [
        "offset 3 of 'a.checkpoints.internal' cannot be "
    ]


def test_a_record_of_a_later_version_is_not_guessed_at(rig: Rig) -> None:
    late = Record(0, 0, checkpoint(1).encode_key(), b"\x00\x01" + checkpoint(1).encode_value()[2:])
    with pytest.raises(UnsupportedRecordError, match="version 1 is not supported"):
        rig.log.load([record(checkpoint(1)), late])
    assert rig.log.by_group() == {}


def test_bytes_and_place_of_what_is_written(rig: Rig) -> None:
    rig.log.append([Checkpoint("g", "A.t", 3, 100, 200)], timestamp_ms=1700)
    ((topic, partition, rows),) = rig.writer.batches
    assert (topic, partition) == (TOPIC, 0)
    key = bytes.fromhex("0001 67 0003 412e74 00000003")
    value = bytes.fromhex("0000 0000000000000064 00000000000000c8 0000")
    assert rows == [(key, value, 1700)]


def test_what_is_stored_is_noted_for_the_offsets_topic(rig: Rig) -> None:
    rig.log.append([checkpoint(1)], 0)
    assert rig.noted.keys == [
        b'["MirrorCheckpointConnector",{"partition":0,"topic":"a.t","group":"g"}]'
    ]


def test_checkpoints_are_remembered_before_they_are_stored(rig: Rig) -> None:
    rig.log.load([record(checkpoint(1)), record(checkpoint(7, group="old"))])
    rig.log.append([checkpoint(2), checkpoint(3, group="new")], 0)
    assert rig.log.by_group() == {
        "g": {T0: checkpoint(2)},
        "old": {T0: checkpoint(7, group="old")},
        "new": {T0: checkpoint(3, group="new")},
    }


def test_a_refused_checkpoint_asks_for_another_load(rig: Rig) -> None:
    rig.writer.refuses = KafkaError("no")
    rig.log.append([checkpoint(1)], 0)
    assert rig.log.has_lost_some
    assert rig.noted.keys == []
    rig.log.load([])
    assert not rig.log.has_lost_some
    assert rig.log.by_group() == {}


def test_many_checkpoints_go_in_batches_that_a_broker_takes(rig: Rig) -> None:
    many = [checkpoint(at, TopicPartition("a.t", at), metadata="m" * 4000) for at in range(200)]
    rig.log.append(many, 0)
    sizes = [
        sum(len(key or b"") + len(value or b"") for key, value, _ in rows)
        for _, _, rows in rig.writer.batches
    ]
    assert len(sizes) > 1
    assert max(sizes) <= BATCH_BYTES
    assert rig.writer.checkpoints == many


def test_nothing_is_written_when_there_is_nothing(rig: Rig) -> None:
    rig.log.append([], 0)
    assert rig.writer.batches == []
