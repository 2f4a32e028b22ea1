"""Compares a target topic with its source topic, record by record and in order.

    source   a b c d e        lost     = records of the source that the target lacks
    target   a X c e d        unknown  = records of the target that the source lacks

A lost and an unknown record together count as one *different* record; lost records beyond that
are *missing*, unknown ones beyond that are *extra* (a record copied twice is extra). Records
on both sides must be in the same order. Nothing here depends on how the target was filled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.demo.reading import (
    Partitions,
    ReadRecord,
    RecordContent,
    partition_counts,
    read_topics,
)


@dataclass(frozen=True, slots=True)
class TopicResult:
    """The comparison of one topic with its copy."""

    topic: str
    target_topic: str
    partitions: int
    target_partitions: int
    records: int
    size_bytes: int
    missing: int
    different: int
    extra: int
    order_kept: bool
    first_difference: str

    @property
    def same(self) -> bool:
        """True if the copy is exact."""
        counts_agree = self.missing == self.different == self.extra == 0
        return counts_agree and self.order_kept and self.partitions == self.target_partitions


@dataclass(frozen=True, slots=True)
class _PartitionResult:
    """The comparison of one partition."""

    missing: int = 0
    different: int = 0
    extra: int = 0
    order_kept: bool = True
    first_difference: str = ""


def compare_topics(
    source_bootstrap: str,
    target_bootstrap: str,
    target_names: Mapping[str, str],
    *,
    source_read_committed: bool = True,
    target_read_committed: bool = False,
) -> list[TopicResult]:
    """Read both sides and compare; `target_names` maps source topics to their copies.

    The target is read uncommitted unless the mirror writes transactions: otherwise every record
    there is visible to plain consumers, so it must be one of the source.
    """
    source = read_topics(source_bootstrap, target_names, read_committed=source_read_committed)
    present = partition_counts(target_bootstrap, target_names.values())
    target = read_topics(target_bootstrap, present, read_committed=target_read_committed)
    return [
        compare_records(topic, source[topic], target_topic, target.get(target_topic, {}))
        for topic, target_topic in target_names.items()
    ]


def compare_records(
    topic: str, source: Partitions, target_topic: str, target: Partitions
) -> TopicResult:
    """Compare two topics that were read to their ends."""
    numbers = sorted(source.keys() | target.keys())
    results = [_compare_partition(n, source.get(n, []), target.get(n, [])) for n in numbers]
    return TopicResult(
        topic=topic,
        target_topic=target_topic,
        partitions=len(source),
        target_partitions=len(target),
        records=sum(len(records) for records in source.values()),
        size_bytes=sum(one.content.size_bytes for records in source.values() for one in records),
        missing=sum(result.missing for result in results),
        different=sum(result.different for result in results),
        extra=sum(result.extra for result in results),
        order_kept=all(result.order_kept for result in results),
        first_difference=_first_difference(topic, len(source), target_topic, len(target), results),
    )


def _compare_partition(
    number: int, source: Sequence[ReadRecord], target: Sequence[ReadRecord]
) -> _PartitionResult:
    wanted = [record.content for record in source]
    copied = [record.content for record in target]
    if wanted == copied:
        return _PartitionResult()
    lost = Counter(wanted) - Counter(copied)
    unknown = Counter(copied) - Counter(wanted)
    different = min(lost.total(), unknown.total())
    return _PartitionResult(
        missing=lost.total() - different,
        different=different,
        extra=unknown.total() - different,
        order_kept=_without(wanted, lost) == _without(copied, unknown),
        first_difference=_describe(number, source, target),
    )


def _without(
    contents: Sequence[RecordContent], removed: Counter[RecordContent]
) -> list[RecordContent]:
    """The contents in order without the last `removed[x]` of each x.

    The last ones, because the second copy of a record is the superfluous one.
    """
    left = Counter(removed)
    kept = []
    for content in reversed(contents):
        if left[content] > 0:
            left[content] -= 1
        else:
            kept.append(content)
    return kept[::-1]


def _first_difference(
    topic: str,
    partitions: int,
    target_topic: str,
    target_partitions: int,
    results: Sequence[_PartitionResult],
) -> str:
    if target_partitions == 0 and partitions > 0:
        return f"the target has no topic {target_topic}"
    if partitions != target_partitions:
        return f"{topic} has {partitions} partitions, {target_topic} has {target_partitions}"
    return next((result.first_difference for result in results if result.first_difference), "")


def _describe(number: int, source: Sequence[ReadRecord], target: Sequence[ReadRecord]) -> str:
    """The first place where the two sides differ, for the report."""
    for wanted, copied in zip(source, target, strict=False):
        if wanted.content != copied.content:
            fields = _differing_fields(wanted.content, copied.content)
            return (
                f"partition {number}, source offset {wanted.offset}, "
                f"target offset {copied.offset}: {fields}"
            )
    if len(source) > len(target):
        lost = source[len(target)]
        return f"partition {number}: the target ends before source offset {lost.offset}"
    return (
        f"partition {number}: the target has more records, from its offset "
        f"{target[len(source)].offset}"
    )


def _differing_fields(wanted: RecordContent, copied: RecordContent) -> str:
    pairs = zip(RecordContent._fields, wanted, copied, strict=True)
    return "; ".join(f"{name} {_short(a)} became {_short(b)}" for name, a, b in pairs if a != b)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
