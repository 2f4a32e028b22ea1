"""The topics of the demo: one row each, created and filled by `seed_topics`.

After filling, each topic is checked for its purpose: a compacted topic that was not compacted, or a
transactional one without aborted records, would make the comparison prove less than it claims.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from sparkmirror.demo import fills
from sparkmirror.demo.client import RESPONSE_SECONDS, admin_client, wait_for_all
from sparkmirror.demo.reading import Partitions, offset_gaps, read_topic, read_topics
from sparkmirror.errors import KafkaError
from sparkmirror.retry import wait_for

# The log cleaner looks for work every 15 s unless `log.cleaner.backoff.ms` is set.
COMPACTION_SECONDS = 60.0
_AT_ONCE = 8
_LATER_MS = 7 * 24 * fills.HOUR_MS
_COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    # A round of updates is a minute later than the one before: each gets its own segment.
    "segment.ms": str(fills.MINUTE_MS // 2),
}

Fill = Callable[[str, str, int], None]


@dataclass(frozen=True, slots=True)
class SeedRow:
    """How one topic is created. `has_gaps`: its offsets must have gaps afterwards."""

    name: str
    partitions: int
    shows: str
    fill: Fill
    configs: Mapping[str, str] = field(default_factory=dict)
    has_gaps: bool = False

    @property
    def has_records(self) -> bool:
        return self.fill is not fills.fill_nothing

    @property
    def is_compacted(self) -> bool:
        return self.configs.get("cleanup.policy") == "compact"


@dataclass(frozen=True, slots=True)
class SeededTopic:
    """A topic as a read_committed consumer finds it; `records` by partition number."""

    name: str
    shows: str
    records: Mapping[int, int]
    gaps: int
    size_bytes: int

    @property
    def partitions(self) -> int:
        return len(self.records)

    @property
    def total_records(self) -> int:
        return sum(self.records.values())


TOPICS = (
    SeedRow("orders", 6, "keys, headers, null values, an empty partition", fills.fill_orders),
    *(
        SeedRow(f"codec-{codec}", 2, f"batches compressed with {codec}", fills.fill_one_codec)
        for codec in fills.CODECS
    ),
    SeedRow("codec-mixed", 2, "all codecs in the same partitions", fills.fill_mixed_codecs),
    SeedRow(
        "profiles",
        4,
        "compacted: tombstones, offset gaps",
        fills.fill_profiles,
        _COMPACTED,
        has_gaps=True,
    ),
    SeedRow(
        "payments", 3, "committed and aborted transactions", fills.fill_payments, has_gaps=True
    ),
    SeedRow(
        "audit",
        2,
        "the broker's timestamps",
        fills.fill_audit,
        {"message.timestamp.type": "LogAppendTime"},
    ),
    SeedRow("tiny", 2, "one record per batch", fills.fill_tiny),
    SeedRow("large", 2, "records of 900 KB", fills.fill_large),
    SeedRow("bulk", 4, "enough to see a speed", fills.fill_bulk),
    SeedRow("empty", 3, "a topic without records", fills.fill_nothing),
)
LATE = SeedRow("late", 3, "created while the mirror runs", fills.fill_late)


def seed_topics(bootstrap: str, rows: Sequence[SeedRow] = TOPICS) -> list[SeededTopic]:
    """Create and fill the topics; returns them as a consumer sees them."""
    create_topics(bootstrap, rows)
    # Most of a fill is waiting: for a broker's first response, for the log cleaner.
    with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="seed") as pool:
        longest_first = sorted(rows, key=lambda row: not row.is_compacted)
        for done in [pool.submit(_fill, bootstrap, row) for row in longest_first]:
            done.result()
    found = read_topics(bootstrap, [row.name for row in rows], read_committed=True)
    return [_seeded(row, found[row.name]) for row in rows]


def _fill(bootstrap: str, row: SeedRow) -> None:
    row.fill(bootstrap, row.name, row.partitions)
    if row.is_compacted:
        _wait_compacted(bootstrap, row)


def create_topics(bootstrap: str, rows: Iterable[SeedRow]) -> None:
    """Create the topics with one replica each; raises if one exists."""
    new = [NewTopic(row.name, row.partitions, 1, config=dict(row.configs)) for row in rows]
    admin = admin_client(bootstrap)
    wait_for_all(admin.create_topics(new, request_timeout=RESPONSE_SECONDS))


def _seeded(row: SeedRow, partitions: Partitions) -> SeededTopic:
    seeded = SeededTopic(
        row.name,
        row.shows,
        {number: len(records) for number, records in partitions.items()},
        sum(offset_gaps(records) for records in partitions.values()),
        sum(one.content.size_bytes for records in partitions.values() for one in records),
    )
    if row.has_gaps and seeded.gaps == 0:
        raise KafkaError(f"seed {row.name}: its offsets have no gaps, so it shows nothing")
    return seeded


def _wait_compacted(bootstrap: str, row: SeedRow) -> None:
    """Wait until every partition has lost records, and prevent further compaction.

    Otherwise the cleaner could change the source between copy and comparison, or the target,
    because a mirror copies topic settings.
    """
    wait_for(
        lambda: _is_compacted(bootstrap, row),
        within=COMPACTION_SECONDS,
        describe=f"the log cleaner of {bootstrap} compacts every partition of {row.name}",
    )
    _alter_topic(bootstrap, row, "min.compaction.lag.ms", str(_LATER_MS))
    _wait_unchanging(bootstrap, row)


def _is_compacted(bootstrap: str, row: SeedRow) -> bool:
    partitions = read_topic(bootstrap, row.name, read_committed=True)
    return all(offset_gaps(records) for records in partitions.values())


def _wait_unchanging(bootstrap: str, row: SeedRow) -> None:
    """Wait for the end of a cleaning that began before the setting changed."""
    seen: list[Partitions] = []

    def is_unchanging() -> bool:
        time.sleep(0.5)
        seen.append(read_topic(bootstrap, row.name, read_committed=True))
        return len(seen) > 1 and seen[-1] == seen[-2]

    wait_for(is_unchanging, within=COMPACTION_SECONDS, describe=f"{row.name} stays unchanged")


def _alter_topic(bootstrap: str, row: SeedRow, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, row.name, incremental_configs=[entry])
    admin = admin_client(bootstrap)
    try:
        wait_for_all(admin.incremental_alter_configs([resource]))
    except KafkaException as error:
        if error.args[0].name() != "_UNSUPPORTED_FEATURE":
            raise
        # Brokers before 2.3 replace all settings of a topic at once (KIP-339).
        whole = {**row.configs, key: value}
        resource = ConfigResource(ResourceType.TOPIC, row.name, set_config=whole)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # these brokers offer no other way
            wait_for_all(admin.alter_configs([resource]))
