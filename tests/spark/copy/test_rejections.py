"""Batches that the target refuses: split, skipped, or the end of the task."""

from __future__ import annotations

import pytest

from sparkmirror.batches.forward import ForwardRules, OutgoingBatch
from sparkmirror.batches.records import Record, encode
from sparkmirror.errors import BrokerError, RefusedError
from sparkmirror.spark.copy.copy_partition import CopyPartition
from sparkmirror.spark.copy.rejections import Rejections
from sparkmirror.types import TopicPartition
from sparkmirror.wire.protocol.error_codes import (
    MESSAGE_TOO_LARGE,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    broker_error,
)
from tests.wire.completions import unsent

TP = TopicPartition("t", 0)
REFUSED: BrokerError = broker_error("produce to a.t-0 on 'b'", MESSAGE_TOO_LARGE)


def unreadable_batch() -> OutgoingBatch:
    """Its header is correct, its records are not."""
    view = encode([Record(at, 0, None, b"value") for at in range(4)])
    view[61:] = b"\xff" * (len(view) - 61)
    return OutgoingBatch(view, 10, 13, 4, 0, 0, None, len(view))


def replace(tolerance: str) -> tuple[Rejections, CopyPartition]:
    rejections, batch = Rejections(tolerance), unreadable_batch()
    partition = CopyPartition(TP, TopicPartition("a.t", 0), ForwardRules(), pending_records=4)
    rejected = unsent(batch.view, batch.count, batch)
    assert rejections.replace(partition, rejected, REFUSED) == []
    return rejections, partition


def test_a_batch_that_cannot_be_split_is_skipped_when_errors_are_tolerated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rejections, partition = replace("all")
    assert (rejections.skipped_records, partition.pending_records) == (4, 0)
    (line,) = caplog.messages
    assert "offsets 10 to 13 of t-0 (4 records" in line
    assert "and cannot be split: " in line


def test_a_batch_that_cannot_be_split_ends_the_task_with_its_offsets() -> None:
    with pytest.raises(RefusedError, match=r"offsets 10 to 13 of t-0.*cannot be split"):
        replace("none")


def test_a_topic_in_an_old_message_format_waits_and_does_not_end_the_task() -> None:
    batch = unreadable_batch()
    partition = CopyPartition(TP, TopicPartition("a.t", 0), ForwardRules(), pending_records=4)
    rejected = unsent(batch.view, batch.count, batch)
    error = broker_error("produce to a.t-0 on 'b'", UNSUPPORTED_FOR_MESSAGE_FORMAT)
    assert Rejections("none").replace(partition, rejected, error) is None
    assert partition.pending_records == 4
