"""Asks clusters what running tasks do not report: retention, and the lag of partitions that wait.

Runs on: worker, on the lag model's thread; `seen` and `retention` are for any thread. Of a
partition whose task does not run, or that cannot be fetched, it finds the stored position, the ends
of the source's log, and the timestamp of the oldest record that the target lacks. That record's
batch is fetched once for each position.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.errors import KafkaError
from sparkmirror.monitoring.lag.partition_lag import Retention
from sparkmirror.monitoring.lag.source_flows import SourceFlow
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import Admin
from sparkmirror.wire.admin.config_admin import TopicSetting
from sparkmirror.wire.fetch.first_timestamps import fetch_first_timestamps
from sparkmirror.wire.fetch.log_ranges import fetch_ranges
from sparkmirror.wire.fetch.offset_fetcher import Range

log = logging.getLogger(__name__)

SECONDS = 5.0
ADMIN_TIMEOUT_MS = 10_000
RETENTION_SECONDS = 300.0
AGAIN_SECONDS = 60.0
# Positions of tasks that do not run change only when somebody edits them.
POSITIONS_SECONDS = 60.0
# So many single records are looked at in one round.
MOST_TIMESTAMPS = 1000
RETENTION_KEYS = ("cleanup.policy", "retention.ms", "retention.bytes")

FlowKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found of one partition; None: unknown. `problem` says why."""

    at_ms: int
    position: int | None = None
    start: int | None = None
    end: int | None = None
    oldest_ms: int | None = None
    problem: str = ""

    @property
    def first_missing(self) -> int | None:
        """The first offset that can still be copied."""
        if self.position is None or self.start is None:
            return self.position
        return max(self.position, self.start)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Partitions of a flow to look at, each with its position; None: look for the stored one."""

    flow: SourceFlow
    positions: Mapping[TopicPartition, int | None]


class SourceProbe:
    """Of all flows of this process."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._found: Mapping[tuple[FlowKey, TopicPartition], Probe] = {}
        self._retention: dict[tuple[FlowKey, str], Retention | None] = {}
        self._retention_at: dict[FlowKey, float] = {}
        self._positions: dict[FlowKey, tuple[float, Mapping[TopicPartition, int]]] = {}

    # -- for any thread ----------------------------------------------------------------------------

    def seen(self, key: FlowKey, tp: TopicPartition) -> Probe | None:
        """What was last found of a partition."""
        return self._found.get((key, tp))

    def retention(self, key: FlowKey, topic: str) -> Retention | None:
        """Of a topic on the source; None: unknown."""
        return self._retention.get((key, topic))

    def partitions(self, key: FlowKey) -> list[TopicPartition]:
        """Those of a stopped connector: the ones with a stored position."""
        _, known = self._positions.get(key, (0.0, {}))
        return sorted(known)

    # -- the thread --------------------------------------------------------------------------------

    def look(self, wanted: Sequence[Wanted], *, is_fresh: bool = False) -> None:
        """One round; `is_fresh`: tasks have ended or begun, so positions are read again."""
        if is_fresh:
            self._positions = {
                key: (-math.inf, known) for key, (_, known) in self._positions.items()
            }
        found: dict[tuple[FlowKey, TopicPartition], Probe] = {}
        for each in wanted:
            key, spec = each.flow.key, each.flow.spec
            if spec is None:
                continue
            positions = dict(each.positions)
            if each.flow.is_stopped or None in positions.values():
                stored = self._stored(key, spec)
                if each.flow.is_stopped:
                    positions |= dict.fromkeys(stored)
                positions = {
                    tp: stored.get(tp) if at is None else at for tp, at in positions.items()
                }
            probes = self._probe(key, spec, positions)
            found |= {(key, tp): probe for tp, probe in probes.items()}
        keys = {each.flow.key for each in wanted}
        self._positions = {key: each for key, each in self._positions.items() if key in keys}
        self._found = found

    def look_at_retention(self, flow: SourceFlow, topics: Iterable[str]) -> None:
        """Ask for the settings of these topics, unless that was done a short while ago."""
        names = set(topics)
        known = {topic for key, topic in self._retention if key == flow.key}
        now = self._clock()
        is_recent = now < self._retention_at.get(flow.key, 0.0) + RETENTION_SECONDS
        asked = names - known if is_recent else names
        if not asked or flow.spec is None:
            return
        if not is_recent:
            self._retention_at[flow.key] = now
        found: dict[tuple[FlowKey, str], Retention | None]
        found = {(flow.key, topic): None for topic in asked}
        try:
            with closing(Admin(flow.spec.config.source_client, ADMIN_TIMEOUT_MS)) as admin:
                settings = admin.describe_topic_configs(sorted(asked), RETENTION_KEYS)
        except KafkaError as error:
            log.debug("%s: retention of the source's topics is unknown: %s", flow.flow, error)
            # What was known stays; it seldom changes.
            self._retention_at[flow.key] = now - RETENTION_SECONDS + AGAIN_SECONDS
            found = {each: self._retention.get(each) for each in found}
        else:
            for topic, rows in settings.items():
                if not isinstance(rows, KafkaError):
                    found[flow.key, topic] = read_retention(rows)
        self._retention = {**self._retention, **found}

    def forget(self, keys: Iterable[FlowKey]) -> None:
        """Flows that are gone."""
        gone = set(keys)
        self._retention = {at: each for at, each in self._retention.items() if at[0] not in gone}
        for key in gone:
            self._retention_at.pop(key, None)

    # -- inside ------------------------------------------------------------------------------------

    def _stored(
        self, key: FlowKey, spec: ConnectorSpec[SourceConfig]
    ) -> Mapping[TopicPartition, int]:
        at, known = self._positions.get(key, (None, {}))
        now = self._clock()
        if at is not None and now < at + POSITIONS_SECONDS:
            return known
        store = KafkaOffsetBackingStore.of(spec.worker, spec.config)
        try:
            with closing(Admin(spec.worker.client, ADMIN_TIMEOUT_MS)) as admin:
                stored = store.load_existing(admin)
        except KafkaError as error:
            log.debug("%s: positions are unknown: %s", spec.name, error)
            return known
        known = {tp: position.next_offset for tp, position in stored.items()}
        self._positions[key] = now, known
        return known

    def _probe(
        self,
        key: FlowKey,
        spec: ConnectorSpec[SourceConfig],
        positions: Mapping[TopicPartition, int | None],
    ) -> dict[TopicPartition, Probe]:
        if not positions:
            return {}
        ranges = fetch_ranges(spec.config.source_client, positions, SECONDS)
        now_ms = int(self._wall_clock() * 1000)
        found = {}
        for tp, position in positions.items():
            each = ranges.get(tp)
            if isinstance(each, Range):
                found[tp] = Probe(now_ms, _begun(spec, position, each), each.start, each.end)
            else:
                found[tp] = Probe(now_ms, position, problem=str(each or "not asked"))
        return self._with_timestamps(key, spec, found)

    def _with_timestamps(
        self, key: FlowKey, spec: ConnectorSpec[SourceConfig], probes: dict[TopicPartition, Probe]
    ) -> dict[TopicPartition, Probe]:
        asked: dict[TopicPartition, int] = {}
        for tp, probe in probes.items():
            first = probe.first_missing
            if first is None or probe.end is None or first >= probe.end:
                continue
            known = self._found.get((key, tp))
            if known is not None and known.first_missing == first and known.oldest_ms is not None:
                probes[tp] = replace(probe, oldest_ms=known.oldest_ms)
            elif len(asked) < MOST_TIMESTAMPS:
                asked[tp] = first
        if asked:
            records = fetch_first_timestamps(spec.config.consumer.client, asked, SECONDS)
            for tp, record in records.items():
                probes[tp] = replace(probes[tp], oldest_ms=record.timestamp_ms)
        return probes


def read_retention(settings: Iterable[TopicSetting]) -> Retention:
    """What a topic's settings say; -1 is no limit."""
    values = {each.name: each.value or "" for each in settings}
    return Retention(
        values.get("cleanup.policy", ""),
        _limit(values.get("retention.ms", "")),
        _limit(values.get("retention.bytes", "")),
    )


def _limit(text: str) -> int | None:
    number = int(text) if text.lstrip("-").isdecimal() else -1
    return number if number >= 0 else None


def _begun(spec: ConnectorSpec[SourceConfig], position: int | None, log_range: Range) -> int | None:
    """Where the copy will begin; auto.offset.reset decides if the log does not have its position.

    A position behind the end is of a topic that was recreated or truncated.
    """
    if position is not None and position <= log_range.end:
        return position
    is_earliest = spec.config.consumer.auto_offset_reset in ("earliest", "none")
    return log_range.start if is_earliest else None
