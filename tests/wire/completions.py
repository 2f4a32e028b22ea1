"""Batches of which nothing is expected to be told."""

from __future__ import annotations

from typing import Any

from sparkmirror.errors import BrokerError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce.record_accumulator import BatchBytes, ProducerBatch, Replacement


class Unexpected:
    """Fails the test that lets a producer report to it."""

    def on_stored(self, tp: TopicPartition, batch: ProducerBatch[Any]) -> None:
        raise AssertionError(f"{tp} was stored")

    def on_rejected(
        self, tp: TopicPartition, batch: ProducerBatch[Any], error: BrokerError
    ) -> Replacement:
        raise AssertionError(f"{tp} was rejected: {error}")


def unsent(view: BatchBytes, count: int, payload: object) -> ProducerBatch[Any]:
    """A batch that no producer gets."""
    return ProducerBatch(view, count, None, payload, Unexpected())
