"""How many series there are: one per partition, per topic, or per flow.

Runs on: worker. Pure. Ten thousand partitions would be half a million series, which Prometheus
stores for weeks: beyond a limit those of a topic become one, and beyond the same limit of topics
those of a flow.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sparkmirror.config.worker.metrics_keys import PerPartition
from sparkmirror.monitoring.lag.partition_lag import PartitionLag
from sparkmirror.spark.figures import Window

MOST_SERIES = 1000


class Detail(enum.StrEnum):
    """What a series is about."""

    PARTITION = "partition"
    TOPIC = "topic"
    FLOW = "flow"


@dataclass(slots=True)
class LagRow:
    """Partitions of one connector as one; labels that their number forbids are None.

    `records`, `bytes`: copied; `behind`, `bytes_behind`: not copied yet, of those where it is
    known; `seconds`: of the worst; `until_loss`: of the nearest.
    """

    flow: str
    connector: str
    source: str | None = None
    target: str | None = None
    partition: str | None = None
    task: int = 0
    records: int = 0
    bytes: int = 0
    behind: int | None = None
    bytes_behind: int | None = None
    seconds: float | None = None
    until_loss: float | None = None
    age: Window = field(default_factory=Window)
    latency: Window = field(default_factory=Window)

    def include(self, lag: PartitionLag) -> None:
        """Add one partition."""
        self.records += lag.records
        self.bytes += lag.bytes
        self.behind = _sum(self.behind, lag.records_behind)
        self.bytes_behind = _sum(self.bytes_behind, lag.bytes_behind)
        self.seconds = _most(self.seconds, lag.seconds_behind)
        self.until_loss = _least(self.until_loss, lag.seconds_until_loss)
        self.age = merged(self.age, lag.age)
        self.latency = merged(self.latency, lag.latency)


def detail_of(wanted: PerPartition, partitions: Sequence[PartitionLag]) -> Detail:
    """What a series is about, with so many of them."""
    if wanted is PerPartition.ALWAYS:
        return Detail.PARTITION
    if wanted is PerPartition.AUTO and len(partitions) <= MOST_SERIES:
        return Detail.PARTITION
    topics = {(each.connector, each.source.topic) for each in partitions}
    return Detail.TOPIC if len(topics) <= MOST_SERIES else Detail.FLOW


def lag_rows(partitions: Iterable[PartitionLag], detail: Detail) -> Iterator[LagRow]:
    """The partitions as series of so much detail."""
    found: dict[tuple[str, ...], LagRow] = {}
    for lag in partitions:
        if detail is Detail.PARTITION:
            row = LagRow(lag.flow, lag.connector, lag.source.topic, lag.target.topic, None)
            row.partition, row.task = str(lag.source.partition), lag.task
            row.include(lag)
            yield row
            continue
        key: tuple[str, ...] = (lag.flow, lag.connector)
        topics: tuple[str | None, str | None] = None, None
        if detail is Detail.TOPIC:
            topics = lag.source.topic, lag.target.topic
            key = (*key, lag.source.topic, lag.target.topic)
        if key not in found:
            found[key] = LagRow(lag.flow, lag.connector, *topics)
        found[key].include(lag)
    yield from found.values()


def merged(one: Window, other: Window) -> Window:
    """Both as one; `last` is the larger of the last ones."""
    if not other.count:
        return one if one.count else Window(max(one.last, other.last))
    if not one.count:
        return Window(max(one.last, other.last), other.least, other.most, other.total, other.count)
    return Window(
        max(one.last, other.last),
        min(one.least, other.least),
        max(one.most, other.most),
        one.total + other.total,
        one.count + other.count,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def _most(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


def _least(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else min(one, other)
