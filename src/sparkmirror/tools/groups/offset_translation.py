"""Where a group would continue on the target, by partition, and what it would read again.

Runs on: any machine; reads both clusters, writes nothing.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sparkmirror.errors import KafkaError
from sparkmirror.mirror.checkpoints import CheckpointRules, NoCheckpoint
from sparkmirror.mirror.translation.offset_sync_store import Translation
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import GroupOffset

CATCH_UP_SECONDS = 60.0


class GroupReader(Protocol):
    """The part of a `GroupAdmin` that is needed here, for either cluster."""

    def committed_offsets(
        self, group_ids: Iterable[str]
    ) -> Mapping[str, dict[TopicPartition, GroupOffset] | KafkaError]:
        """The committed offsets of each group."""

    def end_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, int | KafkaError]:
        """The end of each partition's log."""


class ExactTranslator(Protocol):
    """The part of an `OffsetTranslator` that is needed here; it has caught up."""

    def translate(self, tp: TopicPartition, upstream_offset: int) -> Translation:
        """Where a group at this position continues."""

    def is_exact(self, tp: TopicPartition, upstream_offset: int) -> bool:
        """Whether `translate` uses the exact offset map."""


class How(enum.StrEnum):
    """The source of a translation."""

    EXACT = "exact"
    MM2_RULE = "MM2's rule"
    NONE = "not translated"


@dataclass(frozen=True, slots=True)
class TranslatedRow:
    """One partition of a group.

    `upstream` and `source_offset` are the group's on the source. `read_again` is the most records
    that a consumer would get twice if it continued at `target_offset`; `committed` is the group's
    current offset on the target.
    """

    upstream: TopicPartition
    source_offset: int
    how: How
    reason: str = ""
    downstream: TopicPartition | None = None
    target_offset: int | None = None
    target_end_offset: int | None = None
    read_again: int | None = None
    committed: int | None = None

    def as_json(self) -> dict[str, Any]:
        """For scripts; null where there is nothing."""
        return {
            "topic": self.upstream.topic,
            "partition": self.upstream.partition,
            "source_offset": self.source_offset,
            "target_topic": self.downstream.topic if self.downstream else None,
            "target_offset": self.target_offset,
            "target_end_offset": self.target_end_offset,
            "translation": self.how.value,
            "read_again_at_most": self.read_again,
            "committed_on_target": self.committed,
            "reason": self.reason or None,
        }


def translate_group(
    group: str,
    rules: CheckpointRules,
    translator: ExactTranslator,
    source: GroupReader,
    target: GroupReader,
) -> list[TranslatedRow]:
    """A row for each partition that the group has an offset in, on the source.

    Raises:
        KafkaError: the group's offsets cannot be read, or there are none.
    """
    committed = _committed(group, rules.source_alias, source)
    renamed = {
        tp: rules.rename_topic_partition(tp)
        for tp in committed
        if rules.topic_filter.should_replicate_topic(tp.topic)
    }
    ends = target.end_offsets(renamed.values())
    on_target = target.committed_offsets([group])[group]
    current = {} if isinstance(on_target, KafkaError) else on_target
    rows: list[TranslatedRow] = []
    for tp, offset in sorted(committed.items()):
        if tp not in renamed:
            reason = "the topic filter does not accept the topic"
            rows.append(TranslatedRow(tp, offset, How.NONE, reason))
        else:
            place = _Place(tp, offset, renamed[tp], ends[renamed[tp]], current.get(renamed[tp]))
            rows.append(_row(place, translator))
    return rows


def _committed(group: str, alias: str, source: GroupReader) -> dict[TopicPartition, int]:
    found = source.committed_offsets([group])[group]
    if isinstance(found, KafkaError):
        raise found
    offsets = {tp: each.next_offset for tp, each in found.items() if each.next_offset >= 0}
    if not offsets:
        raise KafkaError(
            f"group '{group}' has no committed offset on '{alias}'; check its name, and that it "
            "commits to Kafka"
        )
    return offsets


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a group in one partition, on both sides."""

    upstream: TopicPartition
    offset: int
    downstream: TopicPartition
    end: int | KafkaError
    committed: GroupOffset | None


def _row(place: _Place, translator: ExactTranslator) -> TranslatedRow:
    found = translator.translate(place.upstream, place.offset)
    end = None if isinstance(place.end, KafkaError) else place.end
    if end is not None and (found.downstream_offset or 0) > end:
        reason = NoCheckpoint.BEYOND_END.value
        return TranslatedRow(
            place.upstream,
            place.offset,
            How.NONE,
            reason,
            downstream=place.downstream,
            target_end_offset=end,
        )
    is_exact = translator.is_exact(place.upstream, place.offset)
    how = How.EXACT if is_exact else How.MM2_RULE
    has_committed = place.committed is not None and place.committed.next_offset >= 0
    return TranslatedRow(
        upstream=place.upstream,
        source_offset=place.offset,
        how=How.NONE if found.downstream_offset is None else how,
        reason=_reason(found, place.end),
        downstream=place.downstream,
        target_offset=found.downstream_offset,
        target_end_offset=end,
        read_again=_read_again(place, found.downstream_offset, end, is_exact, translator),
        committed=place.committed.next_offset if place.committed and has_committed else None,
    )


def _reason(found: Translation, end: int | KafkaError) -> str:
    if found.downstream_offset is None:
        return found.kind.value
    return str(end) if isinstance(end, KafkaError) else ""


def _read_again(
    place: _Place, target: int | None, end: int | None, is_exact: bool, translator: ExactTranslator
) -> int | None:
    """The most records below the group's offset that are at or after `target`, now or later.

    Every position from `first` to the group's translates to `target`, so any records between them
    are read again. An exact position before the end of the target's log is complete: no record
    below it can still arrive.

        source   |---------f.......g----|     f first   g group's offset
        target   |---------t-------|          t target
    """
    if target is None:
        return None
    if is_exact and end is not None and target < end:
        return 0

    def position(upstream_offset: int) -> int:
        found = translator.translate(place.upstream, upstream_offset).downstream_offset
        return -1 if found is None else found

    first = bisect_left(range(place.offset), target, key=position)
    return place.offset - first
