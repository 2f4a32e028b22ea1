"""The checkpoints topic of a flow: the last checkpoint of each group, and new ones.

Runs on: worker, on the checkpoint task's thread; the writer reports from its own.
Mirrors: org.apache.kafka.connect.mirror.CheckpointStore (4.4), and what Connect does with the
records of a checkpoint task.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from sparkmirror.batches.records import Record
from sparkmirror.connect.checkpoint.checkpoint_latencies import CheckpointLatencies
from sparkmirror.connect.storage.record_producer import KeyValueTime, OnDone
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.checkpoints import CheckpointStore
from sparkmirror.mirror.records import (
    Checkpoint,
    RecordError,
    UnsupportedRecordError,
    encode_checkpoint_offset_key,
)
from sparkmirror.types import TopicPartition

log = logging.getLogger(__name__)

# Of one record batch: well below what any broker accepts.
BATCH_BYTES = 256 << 10


class Writer(Protocol):
    """The part of `RecordProducer` that is used here."""

    def send(
        self,
        topic: str,
        partition: int,
        records: Sequence[KeyValueTime],
        on_done: OnDone | None = None,
    ) -> None:
        """Write records as one batch; returns at once."""


class OffsetNotes(Protocol):
    """The part of `SourceOffsets` that is used here."""

    def note(self, key: bytes) -> None:
        """A record with this key was stored."""


class CheckpointTopic:
    """The last checkpoint of every group, stored or being written.

    Includes groups of other workers, and groups that are no longer followed: they may be followed
    later. `malformed` counts records that could not be read, `made` checkpoints that were sent.
    """

    def __init__(self, topic: str, connector: str, writer: Writer, offsets: OffsetNotes) -> None:
        self.topic = topic
        self.malformed = self.made = 0
        self.latencies = CheckpointLatencies()
        self._connector = connector
        self._writer = writer
        self._offsets = offsets
        self._store = CheckpointStore()
        self._lost = threading.Event()

    @property
    def has_lost_some(self) -> bool:
        """Whether the target rejected checkpoints that are kept here: load the topic again."""
        return self._lost.is_set()

    def load(self, records: Iterable[Record]) -> None:
        """Replace what is kept here by all records of the topic.

        Raises:
            UnsupportedRecordError: a later MirrorMaker wrote one; nothing is kept.
        """
        self.forget()
        found = [checkpoint for record in records for checkpoint in self._read(record)]
        for checkpoint in found:
            self._store.add(checkpoint)

    def forget(self) -> None:
        """Drop all checkpoints."""
        self._lost.clear()
        self._store = CheckpointStore()

    def of_group(self, group: str) -> Mapping[TopicPartition, Checkpoint]:
        """The last checkpoints of a group, by downstream partition."""
        return self._store.of_group(group)

    def by_group(self) -> Mapping[str, Mapping[TopicPartition, Checkpoint]]:
        """The last checkpoints of all groups that have any."""
        return self._store.by_group()

    def append(self, checkpoints: Sequence[Checkpoint], timestamp_ms: int) -> None:
        """Keep checkpoints, then write them."""
        for checkpoint in checkpoints:
            self._store.add(checkpoint)
        for chunk in _chunks(checkpoints):
            rows = [(c.encode_key(), c.encode_value(), timestamp_ms) for c in chunk]
            self._writer.send(self.topic, 0, rows, self._reporter(chunk, timestamp_ms))
            self.made += len(chunk)

    def _reporter(self, checkpoints: Sequence[Checkpoint], read_ms: int) -> OnDone:
        keys = [
            encode_checkpoint_offset_key(self._connector, c.group, c.topic, c.partition)
            for c in checkpoints
        ]

        def on_done(error: KafkaError | None) -> None:
            if error is not None:
                self._lost.set()
                return
            for key in keys:
                self._offsets.note(key)
            self.latencies.add(checkpoints, time.time_ns() // 1_000_000 - read_ms)

        return on_done

    def _read(self, record: Record) -> Iterator[Checkpoint]:
        if record.value is None:
            return
        try:
            yield Checkpoint.decode(record.key or b"", record.value)
        except UnsupportedRecordError:
            raise
        except RecordError as error:
            if not self.malformed:
                log.warning(
                    "offset %d of '%s' cannot be read and is skipped, as all later ones like it: "
                    "%s",
                    record.offset,
                    self.topic,
                    error,
                )
            self.malformed += 1


def _chunks(checkpoints: Sequence[Checkpoint]) -> Iterator[list[Checkpoint]]:
    """Split into chunks that each fit into one batch."""
    chunk: list[Checkpoint] = []
    room = BATCH_BYTES
    for checkpoint in checkpoints:
        # Names and metadata vary; offsets, version and the record's own overhead do not.
        text = f"{checkpoint.group}{checkpoint.topic}{checkpoint.metadata}"
        size = 64 + len(text.encode())
        if chunk and size > room:
            yield chunk
            chunk, room = [], BATCH_BYTES
        chunk.append(checkpoint)
        room -= size
    if chunk:
        yield chunk
