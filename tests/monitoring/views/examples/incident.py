"""The incident of the examples: its partitions and topics."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime

from sparkmirror.monitoring.views.rows.common import (
    Remedy,
)
from sparkmirror.monitoring.views.rows.partition_rows import (
    PartitionRow,
    SettingDifference,
    StateCounts,
    TopicRow,
)

Json = dict[str, object]
WEEK_MS = 604_800_000
EAST_WEST, EAST_CENTRAL, WEST_CENTRAL = "us-east->us-west", "us-east->central", "us-west->central"
FLOWS = (EAST_WEST, EAST_CENTRAL, WEST_CENTRAL)
RANK = ("failed", "stuck", "unknown", "paused", "catching up", "live", "idle")


def at(hour: int, minute: int, second: float = 0, day: int = 17) -> int:
    return int(datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp() * 1000 + second * 1000)


NOW = at(3, 12, 45)
STUCK_AT, FAILED_AT, DAY_AGO = at(2, 58, 35), at(2, 34, 33), at(3, 12, 45, 16)
WORKERS = ("sm-worker-1:8083", "sm-worker-2:8083", "sm-worker-3:8083")

TOPICS: Mapping[str, tuple[tuple[str, int, float, int], ...]] = {
    EAST_WEST: (
        ("orders", 12, 3.1, 4100),
        ("orders-returns", 6, 0.22, 310),
        ("payments", 12, 2.4, 3600),
        ("payments-refunds", 6, 0.14, 190),
        ("inventory", 12, 4.2, 6900),
        ("customers", 8, 0.48, 610),
        ("carts", 12, 3.6, 5200),
        ("catalog-prices", 8, 0.91, 1700),
        ("fraud-signals", 6, 1.6, 2100),
        ("clickstream", 24, 11.6, 9800),
        ("ledger", 6, 0.64, 510),
        ("loyalty-points", 6, 0.0, 0),
    ),
    EAST_CENTRAL: (
        ("orders", 12, 3.1, 4100),
        ("payments", 12, 2.4, 3600),
        ("clickstream", 24, 11.6, 9800),
        ("audit-log", 6, 0.0, 0),
    ),
    WEST_CENTRAL: (
        ("clickstream-raw", 12, 2.9, 2680),
        ("ads-impressions", 8, 1.7, 3900),
        ("sessions", 12, 1.9, 2500),
        ("store-pos-events", 6, 0.35, 520),
        ("archive", 4, 0.0, 0),
    ),
}
NICE = {EAST_WEST: "us-east to us-west", EAST_CENTRAL: "us-east to central"}
NICE[WEST_CENTRAL] = "us-west to central"
STUCK_TEXT = (
    "`NOT_ENOUGH_REPLICAS`: 1 of 2 needed replicas of `us-east.payments-7` is in sync on us-west. "
    "Copying resumes by itself when broker 3 of us-west is back; nothing is lost."
)
FAILED_TEXT = (
    "`MESSAGE_TOO_LARGE`: the record at offset 88,120,417 of `clickstream-raw-3` has 1,500,000 "
    "bytes; `us-west.clickstream-raw` takes 1,048,588."
)
FAILED_REMEDY = Remedy(
    "Raise the limit; the task then continues by itself. A restart alone does not help.",
    "kafka-configs.sh --bootstrap-server central-1:9092 --alter --topic us-west.clickstream-raw "
    "--add-config max.message.bytes=2097152",
)
TRACE = """\
sparkmirror.errors.RecordTooLarge: clickstream-raw-3 at 88120417: 1500000 bytes
mm2-msc-us-west-central task 2: produce to us-west.clickstream-raw-3 on 'central':
  offsets 88120417 to 88120417 (1 record, 1500000 bytes): MESSAGE_TOO_LARGE
  max.message.bytes of us-west.clickstream-raw is 1048588
Traceback (most recent call last):
  File "sparkmirror/spark/copy/copy_task.py", line 114, in run
    self._loop.run()
"""


def connector(flow: str, kind: str = "msc") -> str:
    return f"mm2-{kind}-{flow.replace('->', '-')}"


def partitions(seed: int = 7) -> list[PartitionRow]:
    dice = random.Random(seed)
    rows = []
    for flow, topics in TOPICS.items():
        number = 0
        for topic, count, _, rate in topics:
            for partition in range(count):
                number += 1
                rows.append(
                    partition_row(flow, topic, partition, rate / count, task=number % 4, dice=dice)
                )
    return rows


def partition_row(
    flow: str, topic: str, partition: int, rate: float, *, task: int, dice: random.Random
) -> PartitionRow:
    end = dice.randrange(2_000_000, 90_000_000)
    seconds = round(0.1 + dice.random() * 0.5, 3) if rate else 0.0
    behind, state, problem, remedy, since = round(rate * seconds), "live", "", None, None
    lost_none: dict[str, str] = {}
    if not rate:
        state, behind = "idle", 0
    elif (flow, topic, partition) == (EAST_WEST, "payments", 7):
        state, behind, problem, since = "stuck", 254_906, STUCK_TEXT, STUCK_AT
        seconds = (NOW - STUCK_AT) / 1000
    elif (flow, topic, partition) == (WEST_CENTRAL, "clickstream-raw", 3):
        state, behind, problem, since = "failed", 511_906, FAILED_TEXT, FAILED_AT
        remedy, seconds = FAILED_REMEDY, (NOW - FAILED_AT) / 1000
    elif (flow, topic, partition) == (WEST_CENTRAL, "sessions", 10):
        state, seconds, behind = "catching up", 41.0, 8_541
    elif topic == "store-pos-events":
        state, seconds, behind = "paused", 310.0, round(rate * 310)
    retention = 21_600_000 if topic == "clickstream-raw" else WEEK_MS
    left: float | None = retention / 1000 - seconds
    policy = "delete"
    unknown: dict[str, str] = {}
    if topic in ("customers", "catalog-prices"):
        policy, left = "compact", None
        lost_none = {
            "seconds_until_loss": "not by retention: cleanup.policy is compact",
            "loss_at_ms": "not by retention: cleanup.policy is compact",
        }
    if topic == "ledger":
        why = "User:sparkmirror lacks DescribeConfigs on the topic `ledger` of us-east"
        unknown = {
            "seconds_until_loss": why,
            "loss_at_ms": why,
            "retention_ms": why,
            "retention_bytes": why,
            "cleanup_policy": why,
        }
        left = None
    if not behind:
        left = None
        lost_none = dict.fromkeys(("seconds_until_loss", "loss_at_ms"), "everything is copied")
        lost_none["oldest_ms"] = "everything is copied"
    is_known = topic != "ledger"
    return PartitionRow(
        flow=flow,
        topic=topic,
        partition=partition,
        target_topic=f"{flow.partition('->')[0]}.{topic}",
        state=state,
        problem=problem,
        remedy=remedy,
        since_ms=since,
        connector=connector(flow),
        task=task,
        worker=WORKERS[task % 3],
        position=end - behind,
        end_offset=end,
        records_behind=behind,
        bytes_behind=behind * 640,
        seconds_behind=seconds,
        oldest_ms=NOW - round(seconds * 1000) if behind else None,
        lost_records=0,
        skipped_records=0,
        retention_ms=retention if is_known else None,
        retention_bytes=-1 if is_known else None,
        cleanup_policy=policy if is_known else "",
        seconds_until_loss=left,
        loss_at_ms=None if left is None else NOW + round(left * 1000),
        unknown=unknown,
        not_applicable=lost_none,
    )


def counts(rows: list[PartitionRow]) -> StateCounts:
    found = [row.state.replace(" ", "_") for row in rows]
    return StateCounts(len(rows), **{name: found.count(name) for name in set(found)})


def worst_state(rows: list[PartitionRow]) -> str:
    return min((row.state for row in rows), key=RANK.index)


def word(rows: list[PartitionRow]) -> str:
    state = worst_state(rows)
    number = sum(row.state == state for row in rows)
    every = state in ("live", "idle") or number == len(rows)
    return state.capitalize() if every else f"{state.capitalize()} {number} of {len(rows)}"


def nearest(rows: list[PartitionRow]) -> tuple[float | None, int | None, dict[str, str]]:
    known = [row for row in rows if row.seconds_until_loss is not None]
    if known:
        first = min(known, key=lambda row: row.seconds_until_loss or 0)
        return first.seconds_until_loss, first.loss_at_ms, {}
    why = rows[0].not_applicable or rows[0].unknown
    text = why.get("seconds_until_loss", "everything is copied")
    return None, None, {"seconds_until_loss": text, "loss_at_ms": text}


def topic_row(rows: list[PartitionRow], megabytes: float, records: int) -> TopicRow:
    first = rows[0]
    left, loss_at, why = nearest(rows)
    is_unknown = first.topic == "ledger"
    differences: tuple[SettingDifference, ...] = ()
    if first.topic == "catalog-prices":
        differences = (
            SettingDifference("retention.ms", "604800000", "86400000"),
            SettingDifference("cleanup.policy", "compact", "delete"),
        )
    return TopicRow(
        flow=first.flow,
        topic=first.topic,
        target_topic=first.target_topic,
        state=worst_state(rows),
        word=word(rows),
        partitions=counts(rows),
        records_behind=sum(row.records_behind or 0 for row in rows),
        bytes_behind=sum(row.bytes_behind or 0 for row in rows),
        seconds_behind=max(row.seconds_behind or 0 for row in rows),
        bytes_per_second=megabytes * 1e6,
        records_per_second=float(records),
        end_offsets=None if is_unknown else sum(row.end_offset or 0 for row in rows),
        lost_records=0,
        skipped_records=0,
        seconds_until_loss=left,
        loss_at_ms=loss_at,
        differences=None if is_unknown else differences,
        unknown={**(why if is_unknown else {}), "differences": first.unknown["retention_ms"]}
        if is_unknown
        else {},
        not_applicable={} if is_unknown else why,
    )


def topic_rows(all_partitions: list[PartitionRow]) -> list[TopicRow]:
    rows = []
    for flow, topics in TOPICS.items():
        for name, _, megabytes, records in topics:
            own = [row for row in all_partitions if (row.flow, row.topic) == (flow, name)]
            rows.append(topic_row(own, megabytes, records))
    rows.sort(key=lambda row: (RANK.index(row.state), -(row.seconds_behind or 0)))
    return rows
