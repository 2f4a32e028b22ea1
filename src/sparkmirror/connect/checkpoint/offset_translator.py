"""Translates a consumer group's offsets to the target: exactly, or as MirrorMaker 2 does.

Runs on: worker, on one thread. Two topics are used, each as far as it could be read: our offset map
has every copied record, MirrorMaker 2's offset syncs have a few.

    upstream   |----------- map -----------|------ syncs only ------>
                exact                       the map's end, or a sync beyond it
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from sparkmirror.batches.records import Record
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.storage.log_reader import LogReader
from sparkmirror.errors import DeniedError, KafkaError, MirrorError, describe_error
from sparkmirror.mirror.permissions import READ, Feature, ResourceKind, consequence_without
from sparkmirror.mirror.policy import ReplicationPolicy, flow_offset_syncs_topic
from sparkmirror.mirror.records import OffsetSync, RecordError
from sparkmirror.mirror.translation.offset_map import OffsetMap
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkKey, offset_map_topic
from sparkmirror.mirror.translation.offset_sync_store import OffsetSyncStore, Translation
from sparkmirror.types import TopicPartition

log = logging.getLogger(__name__)


class Follower(Protocol):
    """The part of `LogReader` that is used here."""

    topic: str
    restarted: bool

    def catch_up(self, seconds: float) -> Sequence[Record]:
        """Records that arrived since the last call."""

    def cancel(self) -> None:
        """Make `catch_up` fail soon."""

    def close(self) -> None:
        """Close the connections."""


class OffsetTranslator:
    """Translates offsets of one flow, from upstream to downstream.

    `must_read_to_end`: the checkpoints of earlier runs are unknown, so only syncs read after the
    first `catch_up` may send a group further back than the newest (see `OffsetSyncStore`).
    `malformed` counts records that could not be read, by topic.
    """

    def __init__(self, syncs: Follower, offset_map: Follower, *, must_read_to_end: bool) -> None:
        self.malformed: Counter[str] = Counter()
        self.map_topic = offset_map.topic
        self._sync_follower = syncs
        self._map_follower = offset_map
        self._must_read_to_end = must_read_to_end
        self._store = OffsetSyncStore(must_read_to_end)
        self._maps: dict[TopicPartition, OffsetMap] = {}

    def catch_up(self, seconds: float) -> None:
        """Read what was added to both topics since the last call.

        Raises:
            KafkaError: which topic could not be read, and why. The other one was read.
        """
        errors: list[str] = []
        for read, place in (
            (self._read_syncs, ResourceKind.SYNCS),
            (self._read_map, ResourceKind.OFFSET_MAP),
        ):
            try:
                read(seconds)
            except DeniedError as error:
                errors.append(
                    describe_error(error, consequence_without(Feature.CHECKPOINTS, place, READ))
                )
            except MirrorError as error:
                errors.append(str(error))
        if errors:
            raise KafkaError("\n".join(errors))

    def translate(self, tp: TopicPartition, upstream_offset: int) -> Translation:
        """The target offset at which a group with this position in the source's `tp` continues."""
        exact = self._exact(tp, upstream_offset)
        if exact is None:
            return self._store.translate_downstream(tp, upstream_offset)
        lost = self._maps[tp].target_lost_records
        return Translation.to(exact, target_lost_records=lost)

    def is_exact(self, tp: TopicPartition, upstream_offset: int) -> bool:
        """Whether `translate` uses the map."""
        return self._exact(tp, upstream_offset) is not None

    def map_end(self, tp: TopicPartition) -> int | None:
        """The source offset up to which `tp` is mapped; None if it has no map."""
        return self._maps[tp].end_upstream if tp in self._maps else None

    @property
    def mapped(self) -> tuple[TopicPartition, ...]:
        """The upstream partitions that have a map."""
        return tuple(self._maps)

    def prune(self, upstream_log_starts: Mapping[TopicPartition, int]) -> list[bytes]:
        """Drop what the source has deleted; return keys of the map's topic to tombstone."""
        return [
            ChunkKey(*tp, first).encode()
            for tp, log_start in upstream_log_starts.items()
            if tp in self._maps
            for first in self._maps[tp].prune(log_start)
        ]

    def cancel(self) -> None:
        """Make a `catch_up` in progress fail soon; from any thread."""
        self._sync_follower.cancel()
        self._map_follower.cancel()

    def close(self) -> None:
        """Close the connections."""
        self._sync_follower.close()
        self._map_follower.close()

    def _exact(self, tp: TopicPartition, upstream_offset: int) -> int | None:
        offset_map = self._maps.get(tp)
        # As in MirrorMaker 2, a partition without copied records gets no checkpoint.
        if offset_map is None or not offset_map.has_records:
            return None
        found = offset_map.translate(upstream_offset)
        if found is None or self._is_outdated(tp, offset_map, upstream_offset):
            return None
        return found

    def _is_outdated(self, tp: TopicPartition, offset_map: OffsetMap, upstream_offset: int) -> bool:
        """Whether a sync covers records beyond the map's end: another program copied them.

        Syncs below that end, or during a second copy, are ignored: that copy is not complete.
        """
        end_upstream = offset_map.end_upstream
        if upstream_offset <= end_upstream or offset_map.is_catching_up:
            return False
        synced = (sync.upstream_offset for sync in self._store.slots(tp))
        usable = next((offset for offset in synced if offset <= upstream_offset), -1)
        return usable >= end_upstream

    def _read_syncs(self, seconds: float) -> None:
        records = self._sync_follower.catch_up(seconds)
        if self._sync_follower.restarted:
            log.warning("'%s' starts anew: earlier offset syncs do not count", self._syncs_topic)
            self._store = OffsetSyncStore(self._must_read_to_end)
        for record in records:
            self._take_sync(record)
        self._store.finish_load()

    def _read_map(self, seconds: float) -> None:
        records = self._map_follower.catch_up(seconds)
        if self._map_follower.restarted:
            log.warning("'%s' starts anew: earlier chunks do not count", self.map_topic)
            self._maps.clear()
        for record in records:
            self._take_chunk(record)

    @property
    def _syncs_topic(self) -> str:
        return self._sync_follower.topic

    def _take_sync(self, record: Record) -> None:
        if record.value is None:
            return
        try:
            self._store.add(OffsetSync.decode(record.key or b"", record.value))
        except RecordError as error:
            self._skip(self._syncs_topic, record, error)

    def _take_chunk(self, record: Record) -> None:
        if record.value is None:
            return
        try:
            key, chunk = ChunkKey.decode(record.key or b""), Chunk.decode(record.value)
        except RecordError as error:
            self._skip(self.map_topic, record, error)
            return
        tp = TopicPartition(key.topic, key.partition)
        if tp not in self._maps:
            self._maps[tp] = OffsetMap()
        self._maps[tp].apply(chunk)

    def _skip(self, topic: str, record: Record, error: RecordError) -> None:
        if not self.malformed[topic]:
            log.warning(
                "offset %d of '%s' cannot be read and is skipped, as all later ones like it: %s",
                record.offset,
                topic,
                error,
            )
        self.malformed[topic] += 1


def make_translator(
    config: CheckpointConfig, policy: ReplicationPolicy, *, must_read_to_end: bool
) -> OffsetTranslator:
    """The translator of a flow, over the two topics where its source connector writes them."""
    syncs_topic = flow_offset_syncs_topic(policy, config)
    syncs = LogReader(config.offset_syncs_reader, syncs_topic)
    offset_map = LogReader(config.checkpoints_reader, offset_map_topic(config.source_alias))
    return OffsetTranslator(syncs, offset_map, must_read_to_end=must_read_to_end)
