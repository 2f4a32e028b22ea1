"""Records where copied records went: offset syncs in MirrorMaker 2's format, and the exact map.

Runs on: executor, on the copy loop's thread. The rules are in mirror/: offset_sync_writer decides
which syncs are due, offset_map_writer codes the map. Written on acknowledgements and commits;
nothing here is waited for, except that a clean stop flushes both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from sparkmirror.batches.forward import OutgoingBatch
from sparkmirror.mirror.permissions import WRITE, Feature, ResourceKind, consequence_without
from sparkmirror.mirror.records import OffsetSync
from sparkmirror.mirror.translation.offset_map_chunks import ChunkKey, ChunkStart
from sparkmirror.mirror.translation.offset_map_writer import OffsetMapWriter
from sparkmirror.mirror.translation.offset_sync_writer import OffsetSyncWriter
from sparkmirror.spark.offsets.internal_topic_writer import InternalTopicWriter, TopicRecord
from sparkmirror.spark.task_config import CopyTaskConfig
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop

# Acknowledgements are processed together this often: a busy task has thousands a second, and most
# continue the one before. Measured, a sync for each would nearly double the CPU of the copy.
NOTE_SECONDS = 0.1
# Syncs that may be in flight; MirrorMaker 2 has ten, each in a request of its own.
MOST_SYNCS = 1000
# Chunks are small; a batch of them must stay below every broker's max.message.bytes.
MAP_BATCH_BYTES = 256 << 10
# How soon a record is in the map; later where so many gaps make the map large.
MAP_SECONDS = 1.0
MAP_BYTES_PER_SECOND = 256 << 10
# Of at most 300 bytes each: a batch stays below MAP_BATCH_BYTES.
MARKS_PER_BATCH = 500

Marks = Mapping[TopicPartition, tuple[int, int]]
"""By source partition: the offset that is read next, and the end of the target's log."""


class CopiedRange:
    """Records that follow each other on both sides."""

    __slots__ = ("count", "downstream", "upstream")

    def __init__(self, upstream: int, downstream: int, count: int) -> None:
        self.upstream = upstream
        self.downstream = downstream
        self.count = count


class OffsetSink(Protocol):
    """One of the two: offset syncs, or the map."""

    def note(self, tp: TopicPartition, copied: CopiedRange) -> None:
        """The target has these records of the source's `tp`."""

    def send(self) -> None:
        """Called after `note` for all records confirmed so far."""

    def commit(self) -> None:
        """Positions are being committed: write what was delayed."""

    def restarted(self, tp: TopicPartition) -> None:
        """Another topic has the name of `tp`'s."""

    def forget(self, tp: TopicPartition) -> None:
        """The partition is no longer ours."""


class SyncSink:
    """Offset syncs: which are due, and how many are in flight."""

    def __init__(self, writer: InternalTopicWriter, topic: str, offset_lag_max: int) -> None:
        self._writer = writer
        self._topic = topic
        self._due = OffsetSyncWriter(offset_lag_max, MOST_SYNCS)
        self._ready: list[OffsetSync] = []

    def note(self, tp: TopicPartition, copied: CopiedRange) -> None:
        """The target has these records; `send` follows."""
        last = copied.upstream + copied.count - 1
        self._ready += self._due.acked_batch(tp, copied.upstream, last, copied.downstream, None)

    def commit(self) -> None:
        """Positions are being committed: what was put off is due."""
        self._ready += self._due.commit()
        self.send()

    def send(self) -> None:
        """Write what is due, in one batch."""
        if self._ready:
            rows = [(sync.encode_key(), sync.encode_value()) for sync in self._ready]
            self._ready = []
            self._writer.write(self._topic, rows, lambda: self._on_stored(len(rows)))

    def restarted(self, tp: TopicPartition) -> None:
        """Another topic has the name of `tp`'s."""
        self._due.forget(tp)

    def forget(self, tp: TopicPartition) -> None:
        """The partition is no longer ours."""
        self._due.forget(tp)

    def _on_stored(self, count: int) -> None:
        self._ready += self._due.completed(count)
        self.send()


class OffsetMapSink:
    """The exact offset map: one writer per partition, flushed about once a second."""

    def __init__(self, loop: EventLoop, writer: InternalTopicWriter, topic: str) -> None:
        self._loop = loop
        self._writer = writer
        self._topic = topic
        self._wait_seconds = MAP_SECONDS
        self._is_scheduled = False
        self._maps: dict[TopicPartition, OffsetMapWriter] = {}
        self._changed: set[TopicPartition] = set()
        self._under_way = 0

    def note(self, tp: TopicPartition, copied: CopiedRange) -> None:
        """The target has these records."""
        chunks = self._maps.get(tp)
        if chunks is None:
            chunks = self._maps[tp] = OffsetMapWriter(ChunkStart.SESSION)
        chunks.append(copied.upstream, None, copied.count, copied.downstream)
        self._changed.add(tp)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_later(self._wait_seconds, self._flush_due)

    def begin(self, marks: Marks, on_done: Callable[[], None]) -> None:
        """Write where partitions begin; `on_done` is called when that is stored or given up.

        Batches are acknowledged in order, so the last one stands for all.
        """
        rows: list[TopicRecord] = []
        for tp, (upstream, downstream) in marks.items():
            chunks = self._maps.setdefault(tp, OffsetMapWriter(ChunkStart.SESSION))
            chunks.append(upstream, None, 0, downstream)
            rows += [
                (ChunkKey(*tp, chunk.first).encode(), chunk.value)
                for chunk in chunks.take_changed()
            ]
        for at in range(0, len(rows), MARKS_PER_BATCH):
            is_last = at + MARKS_PER_BATCH >= len(rows)
            self._write(rows[at : at + MARKS_PER_BATCH], on_done if is_last else None)

    def send(self) -> None:
        """Nothing to do: the map is written on its own schedule."""

    def commit(self) -> None:
        """Write what has changed; not while a flush is under way, or they would pile up."""
        if not self._under_way:
            changed, self._changed = self._changed, set()
            size = self._flush(changed)
            self._wait_seconds = max(MAP_SECONDS, size / MAP_BYTES_PER_SECOND)

    def _flush_due(self) -> None:
        self._is_scheduled = bool(self._under_way)
        if self._is_scheduled:
            self._loop.call_later(MAP_SECONDS, self._flush_due)
        else:
            self.commit()

    def restarted(self, tp: TopicPartition) -> None:
        """Another topic has the name of `tp`'s."""
        chunks = self._maps.get(tp)
        if chunks is None:
            self._maps[tp] = OffsetMapWriter(ChunkStart.NEW_LOG)
        else:
            chunks.start_new_log()

    def forget(self, tp: TopicPartition) -> None:
        """The partition is no longer ours."""
        if tp in self._changed:
            self._changed.discard(tp)
            self._flush([tp])
        self._maps.pop(tp, None)

    def _flush(self, partitions: Iterable[TopicPartition]) -> int:
        """Write the chunks of these that have changed; how many bytes they are."""
        rows: list[TopicRecord] = []
        size = total = 0
        for tp in partitions:
            for chunk in self._maps[tp].take_changed():
                key = ChunkKey(tp.topic, tp.partition, chunk.first).encode()
                rows.append((key, chunk.value))
                size += len(key) + len(chunk.value)
                if size >= MAP_BATCH_BYTES:
                    self._write(rows)
                    rows, size, total = [], 0, total + size
        if rows:
            self._write(rows)
        return total + size

    def _write(self, rows: list[TopicRecord], on_done: Callable[[], None] | None = None) -> None:
        def done() -> None:
            self._under_way -= 1
            if on_done is not None:
                on_done()

        self._under_way += 1
        self._writer.write(self._topic, rows, done)


class OffsetSyncEmitter:
    """Both, each if the settings ask for it."""

    def __init__(
        self, settings: CopyTaskConfig, loop: EventLoop, pool: BufferPool, target: NetworkClient
    ) -> None:
        config = settings.connector
        self._loop = loop
        # What was acknowledged since the last call, by partition.
        self._ranges: dict[TopicPartition, list[CopiedRange]] = {}
        self._is_scheduled = False
        self._own: list[NetworkClient] = []
        self._writers: list[InternalTopicWriter] = []
        self._sinks: list[OffsetSink] = []
        self._map: OffsetMapSink | None = None
        without = {
            settings.offset_map_topic: consequence_without(
                Feature.COPY, ResourceKind.OFFSET_MAP, WRITE
            ),
            settings.offset_syncs_topic: consequence_without(
                Feature.COPY, ResourceKind.SYNCS, WRITE
            ),
        }
        on_target = InternalTopicWriter(target, config.producer, without)
        if settings.offset_map_topic:
            self._map = OffsetMapSink(loop, on_target, settings.offset_map_topic)
            self._sinks.append(self._map)
        if settings.offset_syncs_topic:
            writer = on_target
            if config.offset_syncs_location == "source":
                # A connection of its own: behind a long poll of the fetcher's it would wait.
                self._own = [NetworkClient(loop, config.offset_syncs_producer.client, pool)]
                writer = InternalTopicWriter(self._own[0], config.offset_syncs_producer, without)
            syncs = SyncSink(writer, settings.offset_syncs_topic, config.offset_lag_max)
            self._sinks.append(syncs)
            self._writers.append(writer)
        self._writers.append(on_target)

    @property
    def has_map(self) -> bool:
        """Whether the exact map is written."""
        return self._map is not None

    def begin(self, marks: Marks, on_done: Callable[[], None]) -> None:
        """Note in the map where partitions begin, before anything of them is copied."""
        assert self._map is not None
        self._map.begin(marks, on_done)

    @property
    def idle(self) -> bool:
        """True when everything written was stored or given up."""
        return all(writer.idle for writer in self._writers)

    def acked(self, tp: TopicPartition, batch: OutgoingBatch, offset: int) -> None:
        """The target has a batch of the source's `tp`, at `offset`; -1: it forgot where.

        Runs for every batch, so it only joins adjacent ranges.
        """
        if offset < 0 or not self._sinks:
            return
        ranges = self._ranges.get(tp)
        if ranges is None:
            ranges = self._ranges[tp] = []
        for upstream, count in batch.runs or ((batch.first_offset, batch.count),):
            last = ranges[-1] if ranges else None
            if (
                last is not None
                and upstream == last.upstream + last.count
                and offset == last.downstream + last.count
            ):
                last.count += count
            else:
                ranges.append(CopiedRange(upstream, offset, count))
            offset += count
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_later(NOTE_SECONDS, self._note_due)

    def commit(self) -> None:
        """Positions are being committed."""
        self._note_all()
        for sink in self._sinks:
            sink.commit()

    def restarted(self, tp: TopicPartition) -> None:
        """Another topic has the name of `tp`'s."""
        self._note_all()
        for sink in self._sinks:
            sink.restarted(tp)

    def forget(self, tp: TopicPartition) -> None:
        """The partition is no longer ours; `commit` came before."""
        self._note_all()
        for sink in self._sinks:
            sink.forget(tp)

    def _note_due(self) -> None:
        self._is_scheduled = False
        self._note_all()

    def _note_all(self) -> None:
        noted, self._ranges = self._ranges, {}
        for sink in self._sinks:
            for tp, ranges in noted.items():
                for copied in ranges:
                    sink.note(tp, copied)
            sink.send()

    def close(self) -> None:
        """Close what is not the copy's own."""
        for cluster in self._own:
            cluster.close()
