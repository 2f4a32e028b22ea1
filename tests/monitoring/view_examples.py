"""Example answers of the REST endpoints of the views: one consistent incident, for the page's tests.

`python -m tests.monitoring.view_examples FOLDER` writes one JSON file for each. They are made of
the rows that the worker sends, so they have the same fields.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from sparkmirror.monitoring.views.rows.common import (
    Caller,
    ClusterRow,
    Level,
    Link,
    Remedy,
    Sentence,
    WorkerRow,
    as_json,
)
from sparkmirror.monitoring.views.rows.connector_rows import (
    ConnectorRow,
    SettingRow,
    TaskRow,
)
from sparkmirror.monitoring.views.rows.failover_rows import (
    Evidence,
    FailoverAnswer,
    FailoverBrief,
    FailoverView,
    Reading,
    Step,
)
from sparkmirror.monitoring.views.rows.flow_rows import (
    CatchUp,
    EventRow,
    FlowRow,
    Gap,
    HistoryView,
    Latency,
    Mark,
    NoteRow,
    ProblemRow,
    WorstPartition,
)
from sparkmirror.monitoring.views.rows.group_rows import (
    GroupPartitionRow,
    GroupRow,
)
from sparkmirror.monitoring.views.rows.partition_rows import (
    PartitionRow,
    RuleRow,
    SettingDifference,
    StateCounts,
    TopicRow,
    UnmirroredRow,
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
                rows.append(partition_row(flow, topic, partition, rate / count, number % 4, dice))
    return rows


def partition_row(
    flow: str, topic: str, partition: int, rate: float, task: int, dice: random.Random
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
    differences = ()
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


SENTENCES = {
    EAST_WEST: Sentence(
        Level.WARN,
        "stuck",
        "1 partition is stuck, the rest is live",
        "`payments-7` waits since 02:58:35 UTC for us-west: `NOT_ENOUGH_REPLICAS`. The other "
        "partitions are at most 0.6 s behind.",
    ),
    EAST_CENTRAL: Sentence(Level.OK, "live", "Live", "All 54 partitions are at most 0.6 s behind."),
    WEST_CENTRAL: Sentence(
        Level.BAD,
        "failed",
        "1 of 4 tasks failed",
        "Task 2 cannot copy offset 88,120,417 of `clickstream-raw-3`: `MESSAGE_TOO_LARGE`.",
    ),
}
CATCH_UPS = {
    EAST_WEST: CatchUp("waiting", "for us-west", change_per_second=300.0),
    EAST_CENTRAL: CatchUp("done", "since 00:47:44 UTC", since_ms=at(0, 47, 44)),
    WEST_CENTRAL: CatchUp("not by itself", "grows by 223 records/s", change_per_second=223.0),
}


def flow_row(flow: str, rows: list[PartitionRow]) -> FlowRow:
    source, _, target = flow.partition("->")
    late = sorted(rows, key=lambda row: -(row.seconds_behind or 0))
    worst = late[0]
    megabytes = sum(each[2] for each in TOPICS[flow])
    records = float(sum(each[3] for each in TOPICS[flow]))
    left, loss_at, why = nearest(rows)
    words = {EAST_WEST: "1 partition stuck", EAST_CENTRAL: "Live", WEST_CENTRAL: "1 task failed"}
    hearts = {EAST_WEST: 0.9, EAST_CENTRAL: None, WEST_CENTRAL: 1.1}
    heart = "no heartbeat connector from us-east to central"
    return FlowRow(
        flow=flow,
        source=source,
        target=target,
        prefix="",
        connectors=[connector(flow, kind) for kind in ("msc", "cpc", "hbc")],
        state=worst_state(rows),
        word=words[flow],
        sentence=SENTENCES[flow],
        topics=len(TOPICS[flow]),
        unmirrored={EAST_WEST: 13, EAST_CENTRAL: 0, WEST_CENTRAL: 24}[flow],
        partitions=counts(rows),
        tasks=4,
        tasks_running=3 if flow == WEST_CENTRAL else 4,
        bytes_per_second=megabytes * 1e6,
        records_per_second=records,
        written_bytes_per_second=megabytes * 1.006e6,
        written_records_per_second=records * 1.006,
        records_behind=sum(row.records_behind or 0 for row in rows),
        bytes_behind=sum(row.bytes_behind or 0 for row in rows),
        seconds_behind=worst.seconds_behind,
        worst=WorstPartition(
            flow, worst.topic, worst.partition, worst.seconds_behind or 0, worst.records_behind
        ),
        others_seconds_behind=late[1].seconds_behind,
        seconds_until_loss=left,
        loss_at_ms=loss_at,
        latency=Latency(71.0, 188.0, 640.0),
        heartbeat_age_seconds=hearts[flow],
        catch_up=CATCH_UPS[flow],
        lost_records=0,
        skipped_records=0,
        unknown={},
        not_applicable={**why, **({} if hearts[flow] else {"heartbeat_age_seconds": heart})},
    )


def problems(rows: list[PartitionRow]) -> list[ProblemRow]:
    found = [row for row in rows if row.state in ("failed", "stuck")]
    found.sort(key=lambda row: row.seconds_until_loss or 0)
    made = []
    for row in found:
        name = f"{row.topic}-{row.partition}"
        is_failed = row.state == "failed"
        title = (
            f"`{name}` has failed: a record is too large for central"
            if is_failed
            else f"`{name}` is stuck: us-west has too few replicas"
        )
        link = (
            Link("connectors", {"c": row.connector})
            if is_failed
            else Link("topics", {"open": f"{row.flow}/{row.topic}"})
        )
        made.append(
            ProblemRow(
                id=f"partition {row.flow}/{name}",
                code=row.state,
                level=Level.BAD if is_failed else Level.WARN,
                title=title,
                text=row.problem,
                remedy=row.remedy,
                flow=row.flow,
                connector=row.connector,
                task=row.task,
                topic=row.topic,
                partition=row.partition,
                since_ms=row.since_ms,
                records_behind=row.records_behind,
                seconds_until_loss=row.seconds_until_loss,
                loss_at_ms=row.loss_at_ms,
                link=link,
            )
        )
    return made


def events() -> list[EventRow]:
    def row(
        number: int,
        when: int,
        kind: str,
        level: Level,
        text: str,
        *,
        cause: int | None = None,
        lasts: bool = False,
        ended: int | None = None,
        count: int = 1,
        link: Link | None = None,
        **about: object,
    ) -> EventRow:
        fields: dict[str, object] = dict.fromkeys(
            ("flow", "connector", "task", "topic", "cluster", "group", "user"), ""
        )
        fields |= {"partition": None, "worker": WORKERS[0], **about}
        return EventRow(
            id=f"{fields['worker']}/{number}",
            time_ms=when,
            kind=kind,
            level=level,
            text=text,
            cause_id=None if cause is None else f"{WORKERS[0]}/{cause}",
            lasts=lasts,
            ended_ms=ended,
            count=count,
            link=link,
            **fields,  # type: ignore[arg-type]
        )

    refused = (
        "`us-east.orders-archive` not created: `INVALID_REPLICATION_FACTOR`, 3 replicas wanted, "
        "2 brokers alive"
    )
    failed = (
        "task 2 of `mm2-msc-us-west-central` failed: `MESSAGE_TOO_LARGE`, `clickstream-raw-3`, "
        "offset 88,120,417, 1,500,000 bytes"
    )
    made = [
        row(1, at(0, 40, 2), "action", Level.INFO, "`mm2-msc-us-east-central` resumed by REST",
            flow=EAST_CENTRAL, connector=connector(EAST_CENTRAL), user="ops"),
        row(2, at(0, 40, 27), "recovered", Level.OK, "caught up: 1,203,400 records in 25 s",
            cause=1, flow=EAST_CENTRAL),
        row(3, at(1, 12, 40), "created", Level.OK,
            "`us-east.carts-abandoned` created on us-west: 6 partitions, 3 replicas",
            flow=EAST_WEST, topic="carts-abandoned"),
        row(4, at(2, 31, 12), "stopped", Level.INFO, "worker sm-worker-2 left: all positions "
            "stored", lasts=True, ended=at(2, 33, 2)),
        row(5, at(2, 31, 13), "rebalanced", Level.OK, "6 tasks moved to sm-worker-1 and "
            "sm-worker-3", cause=4),
        row(6, at(2, 33, 2), "started", Level.OK, "worker sm-worker-2 joined; 6 tasks moved back",
            cause=4),
        row(7, FAILED_AT, "failed", Level.BAD, failed, lasts=True, count=34, flow=WEST_CENTRAL,
            connector=connector(WEST_CENTRAL), task="2", topic="clickstream-raw", partition=3,
            link=Link("connectors", {"c": connector(WEST_CENTRAL)})),
        row(8, at(2, 41, 7), "blocked", Level.WARN,
            "group `fraud-scoring` not synced: it has 3 members on us-west", lasts=True,
            flow=EAST_WEST, group="fraud-scoring",
            link=Link("groups", {"open": f"{EAST_WEST}/fraud-scoring"})),
        row(9, at(2, 58, 31), "unreachable", Level.WARN,
            "broker 3 of us-west unreachable: connection refused (10.2.0.13:9092)", lasts=True,
            cluster="us-west"),
        row(10, STUCK_AT, "stuck", Level.WARN, "`payments-7` stuck: `NOT_ENOUGH_REPLICAS`, 1 of 2 "
            "needed replicas in sync", cause=9, lasts=True, flow=EAST_WEST,
            connector=connector(EAST_WEST), topic="payments", partition=7,
            link=Link("topics", {"open": f"{EAST_WEST}/payments"})),
        row(11, at(3, 5, 11), "blocked", Level.BAD, refused, cause=9, lasts=True, count=46,
            flow=EAST_WEST, topic="orders-archive",
            link=Link("topics", {"tab": "whynot"})),
        row(12, at(3, 10, 2), "synced", Level.INFO,
            "settings of `us-east.catalog-prices` differ: retention.ms, cleanup.policy",
            lasts=True, flow=EAST_WEST, topic="catalog-prices",
            link=Link("topics", {"state": "drift"})),
    ]  # fmt: skip
    return list(reversed(made))


def unmirrored() -> list[UnmirroredRow]:
    def rules(*found: tuple[str, str, str, bool | None]) -> list[RuleRow]:
        return [RuleRow(*each) for each in found]

    exclude = r".*[\-\.]internal"
    return [
        UnmirroredRow(
            EAST_WEST, "orders-archive", 1, ["orders-archive"], "blocked",
            "us-west refuses to create it: `INVALID_REPLICATION_FACTOR`",
            "3 replicas wanted, 2 brokers alive; tried again every 10 s", "replication.factor",
            rules(("topics", "orders.*", "matches", True),
                  ("topics.exclude", exclude, "does not match", True),
                  ("cycle", "does it come from us-west?", "no", True),
                  ("created on us-west", "", "refused: INVALID_REPLICATION_FACTOR", False)),
            Remedy("It is created by itself when broker 3 of us-west is back. To create it now "
                   "with 2 replicas:", "us-east->us-west.replication.factor = 2"),
            "sparkmirror explain topic orders-archive", at(3, 5, 11)),
        UnmirroredRow(
            EAST_WEST, "hr-payroll", 1, ["hr-payroll"], "blocked",
            "`User:sparkmirror` lacks READ on it at us-east", "", "", rules(),
            Remedy("To allow it:", "kafka-acls.sh --bootstrap-server us-east-1:9092 --add "
                   "--allow-principal User:sparkmirror --operation Read --topic hr-payroll"),
            "sparkmirror explain topic hr-payroll"),
        UnmirroredRow(
            EAST_WEST, "pricing-internal", 1, ["pricing-internal"], "by rule",
            "excluded by `topics.exclude`, pattern 1 of 3", "but 3 groups read it on us-east",
            "topics.exclude",
            rules(("topics", "pricing.*", "matches", True),
                  ("topics.exclude 1 of 3", exclude, "matches: excluded", False),
                  ("topics.exclude 2 of 3", r".*\.replica", "not reached", None),
                  ("topics.exclude 3 of 3", "__.*", "not reached", None),
                  ("cycle", "does it come from us-west?", "not reached", None)),
            Remedy("To mirror it, leave that pattern out:",
                   r"us-east->us-west.topics.exclude = .*\.replica, __.*"),
            "sparkmirror explain topic pricing-internal"),
        UnmirroredRow(
            EAST_WEST, "tmp-load-test", 1, ["tmp-load-test"], "by rule",
            "no pattern of `topics` matches", "", "topics",
            rules(("topics", "orders.*, payments.*", "no pattern matches", False),
                  ("topics.exclude", exclude, "not reached", None)),
            Remedy("To mirror it, add it:",
                   "us-east->us-west.topics = orders.*, payments.*, tmp-load-test"),
            "sparkmirror explain topic tmp-load-test"),
        UnmirroredRow(
            WEST_CENTRAL, "us-east.*", 24, [f"us-east.topic-{n}" for n in range(24)], "by rule",
            "no pattern of `topics` matches", "central gets them from us-east", "topics",
            rules(("topics", "clickstream-raw, ads-.*", "no pattern matches", False)), None,
            "sparkmirror explain topic us-east.topic-0"),
    ]  # fmt: skip


def groups() -> tuple[list[GroupRow], dict[str, list[GroupPartitionRow]]]:
    def partition(
        topic: str, number: int, committed: int, reread: int, rule: str = "exact"
    ) -> GroupPartitionRow:
        moved = committed - 120_000
        return GroupPartitionRow(
            topic, number, f"us-east.{topic}", committed, moved, moved - reread, rule, reread
        )

    members = {
        "fraud-scoring": [partition("fraud-signals", n, 5_000_000 + n, 1_368) for n in range(6)],
        "payment-service": [
            *(partition("payments", n, 7_000_000 + n, 8) for n in range(7)),
            GroupPartitionRow(
                "payments",
                7,
                "us-east.payments",
                7_100_000,
                None,
                6_745_094,
                "",
                None,
                "the group has read further on us-east than was copied: it keeps its last offset",
                {"reread_records": "`payments-7` is stuck"},
                {"translated": "not copied yet"},
            ),  # fmt: skip
        ],
        "billing-legacy": [
            partition("ledger", n, 900_000 + n, 235, "MM2's rule") for n in range(6)
        ],
        "order-service": [partition("orders", n, 3_000_000 + n, 17) for n in range(12)],
        "ledger-audit": [partition("ledger", n, 910_000 + n, 0) for n in range(6)],
    }
    why = {
        "fraud-scoring": ("not synced", "3 members on us-west"),
        "payment-service": ("partly synced", "`payments-7` is stuck"),
    }
    rows = []
    for name, parts in members.items():
        state, reason = why.get(name, ("synced", ""))
        known = [part.reread_records or 0 for part in parts]
        rows.append(
            GroupRow(
                flow=EAST_WEST,
                group=name,
                state=state,
                reason=reason,
                remedy=Remedy("To sync it again, stop its 3 consumers on us-west.")
                if state == "not synced"
                else None,
                members=6,
                members_on_target=3 if state == "not synced" else 0,
                partitions=len(parts),
                synced_partitions=0 if state == "not synced" else len(known),
                topics=sorted({part.topic for part in parts}),
                newest=parts[0],
                checkpoint_age_seconds=41.0,
                reread_records=sum(known),
                translation=parts[0].translation,
            )
        )
    rows.append(
        GroupRow(
            EAST_WEST,
            "reporting",
            "unknown",
            "us-west does not say",
            None,
            2,
            None,
            3,
            0,
            ["orders"],
            None,
            None,
            None,
            "",
            dict.fromkeys(
                ("members_on_target", "newest", "checkpoint_age_seconds", "reread_records"),
                "User:sparkmirror lacks DESCRIBE on the group `reporting` of us-west",
            ),
        )  # fmt: skip
    )
    return rows, members


def connectors(rows: list[PartitionRow]) -> list[ConnectorRow]:
    made = []
    kinds = (("msc", "source"), ("cpc", "checkpoint"), ("hbc", "heartbeat"))
    for flow in FLOWS:
        for kind, long in kinds:
            name = connector(flow, kind)
            none = long == "checkpoint" and flow == EAST_CENTRAL
            tasks = [
                task_row(flow, number, rows if long == "source" else None)
                for number in range(0 if none else 4 if long == "source" else 1)
            ]
            made.append(
                ConnectorRow(
                    name=name,
                    prefix="",
                    path=f"/connectors/{name}",
                    flow=flow,
                    kind=long,
                    state="RUNNING",
                    worker=WORKERS[0],
                    reason="",
                    remedy=None,
                    trace="",
                    note="No tasks: it gets one as soon as a group matches `groups`."
                    if none
                    else "",
                    is_changeable=True,
                    fixed="",
                    tasks=tasks,
                )  # fmt: skip
            )
    return made


def task_row(flow: str, number: int, rows: list[PartitionRow] | None) -> TaskRow:
    own = [row for row in rows or () if (row.flow, row.task) == (flow, number)]
    is_failed = bool(own) and (flow, number) == (WEST_CENTRAL, 2)
    none = dict.fromkeys(("partitions", "records_behind", "seconds_behind"), "it copies nothing")
    return TaskRow(
        task=number,
        state="FAILED" if is_failed else "RUNNING",
        worker=WORKERS[number % 3],
        reason=FAILED_TEXT if is_failed else "",
        remedy=FAILED_REMEDY if is_failed else None,
        trace=TRACE if is_failed else "",
        partitions=len(own) if own else None,
        records_behind=sum(row.records_behind or 0 for row in own) if own else None,
        seconds_behind=max(row.seconds_behind or 0 for row in own) if own else None,
        not_applicable={} if own else none,
    )


def history(flow: str, megabytes: float) -> HistoryView:
    dice = random.Random(11)
    times = [NOW - 15_000 * back for back in range(240, -1, -1)]
    gap = (at(2, 31, 10), at(2, 33))
    names = (
        "bytes_per_second", "records_per_second", "written_bytes_per_second",
        "written_records_per_second", "seconds_behind", "others_seconds_behind",
        "records_behind", "latency_p50_ms", "latency_p99_ms",
    )  # fmt: skip
    series: dict[str, list[float | None]] = {name: [] for name in names}
    for when in times:
        noise = 0.95 + dice.random() * 0.1
        stuck = max(0.0, (when - STUCK_AT) / 1000) if flow == EAST_WEST else 0.0
        values = (
            megabytes * 1e6 * noise, 41_000 * noise, megabytes * 1.006e6, 41_200.0,
            max(0.5 * noise, stuck), 0.5 * noise, 19_000 * noise + 300 * stuck, 71 * noise,
            188 * noise,
        )  # fmt: skip
        is_gap = flow == EAST_WEST and gap[0] < when < gap[1]
        for name, value in zip(names, values, strict=True):
            series[name].append(None if is_gap else round(value, 3))
    gaps = [Gap(*gap, "no figures of sm-worker-2: it was restarted")] if flow == EAST_WEST else []
    marks = [Mark(at(2, 58, 31), "broker 3 of us-west unreachable", f"{WORKERS[0]}/9")]
    return HistoryView(flow, "1h", 15, times, series, gaps, marks if flow == EAST_WEST else [])


def failover(rows: list[PartitionRow]) -> FailoverView:
    own = [row for row in rows if row.flow == EAST_WEST]
    lost = sum(row.records_behind or 0 for row in own)
    way = lost - 254_906
    text = f"254,906 of them are in `payments-7`, stuck since 02:58:35 UTC; {way:,} are on the way."
    open_topic = Link("topics", {"open": f"{EAST_WEST}/payments"})
    evidence = [
        Evidence("alive", Level.OK, "The flow is alive",
                 "Newest heartbeat of us-east on us-west is 0.9 s old", "Yes"),
        Evidence("copied", Level.BAD, "Every partition keeps up",
                 f"{len(own) - 1} of {len(own)} are at most 0.6 s behind. `payments-7` is 14 min "
                 "10 s and 254,906 records behind", "No", {"payments-7": open_topic}),
        Evidence("lost", Level.OK, "Nothing was lost or skipped before",
                 "0 offsets lost to retention, 0 records skipped since 4 Nov 09:12 UTC", "Yes"),
        Evidence("groups", Level.WARN, "Every group has its offset on us-west",
                 "3 of 6 synced. `fraud-scoring` has 3 members there; `payment-service` waits for "
                 "payments-7", "Not all",
                 {"fraud-scoring": Link("groups", {"open": f"{EAST_WEST}/fraud-scoring"})}),
        Evidence("exact", Level.WARN, "Offsets are exact",
                 "5 of 6 groups. `billing-legacy` is placed by MM2's rule and re-reads 1,412 "
                 "records", "Not all"),
        Evidence("topics", Level.WARN, "Every topic that should be there is there",
                 "12 of 14: `orders-archive` and `hr-payroll` are blocked", "Not all",
                 {"blocked": Link("topics", {"tab": "whynot"})}),
        Evidence("consumers", Level.UNKNOWN,
                 "Consumers subscribe to both names and start at earliest",
                 r"Cannot be seen from here: `(us-east\.)?orders`, `auto.offset.reset=earliest`",
                 "You check"),
    ]  # fmt: skip
    return FailoverView(
        flow=EAST_WEST,
        source="us-east",
        target="us-west",
        records_lost=lost,
        records_on_the_way=way,
        records_reread=9_634,
        groups=6,
        groups_without_offset=0,
        lost=FailoverAnswer(
            False,
            Sentence(Level.BAD, "loss", f"Not ready: {lost:,} records would be lost", text),
            [
                Step("Stop the mirror", "so that it writes nothing when us-east comes back"),
                Step(
                    "Write the last checkpoints",
                    "",
                    "sparkmirror groups sync -src us-east -pfp us-west.properties --once",
                ),
                Step("Start the consumers on us-west", "with auto.offset.reset=earliest"),
                Step("Keep the disks of us-east", f"The {lost:,} records are only there."),
            ],  # fmt: skip
        ),
        planned=FailoverAnswer(
            False,
            Sentence(
                Level.WARN,
                "first",
                "Not ready: 2 things to do first",
                "Bring broker 3 of us-west back, so that `payments-7` is copied, and stop the "
                "3 consumers of `fraud-scoring` on us-west.",
            ),
            [
                Step("Stop the consumers on us-east", "They commit when they end."),
                Step("Stop the producers"),
                Step(
                    "Wait until this page says: nothing would be lost",
                    "In a script, exit code 0 means yes:",
                    "sparkmirror failover check us-east us-west --planned",
                ),
                Step(
                    "Start consumers, then producers, on us-west", "with auto.offset.reset=earliest"
                ),
                Step("Stop the mirror"),
            ],  # fmt: skip
        ),
        evidence=evidence,
        readings=[
            Reading(NOW - 5_000, len(own), 80, lost - 1_500),
            Reading(NOW, len(own), 81, lost),
        ],
    )


WHO = Caller("ops", "operator", True)
THIS = WorkerRow(WORKERS[1], "http://sm-worker-2:8083/", "ok", is_this=True)
GROUP = [
    WorkerRow(WORKERS[0], "http://sm-worker-1:8083/", "ok", is_leader=True),
    THIS,
    WorkerRow(WORKERS[2], "http://sm-worker-3:8083/", "unreachable",
              "no answer within 2 s; its tasks' figures are unknown"),
]  # fmt: skip


def answer(**data: object) -> Json:
    frame = {
        "now_ms": NOW,
        "version": "0.2.0",
        "worker": WORKERS[1],
        "who": WHO,
        "workers": GROUP,
        "missing": ["worker sm-worker-3:8083: no answer within 2 s"],
    }
    found = as_json({**frame, **data})
    assert isinstance(found, dict)
    return found


def page(rows: list[object], counted: Mapping[str, int], total: int) -> Json:
    return {"rows": rows, "counts": counted, "total": total, "matching": len(rows),
            "offset": 0, "limit": 200}  # fmt: skip


def examples() -> dict[str, Json]:
    """By the names of their files."""
    parts = partitions()
    flows = [flow_row(flow, [row for row in parts if row.flow == flow]) for flow in FLOWS]
    topics = topic_rows(parts)
    happened, not_mirrored = events(), unmirrored()
    group_rows, members = groups()
    found = problems(parts)
    slow = sorted(parts, key=lambda row: -(row.seconds_behind or 0))
    clusters = [
        ClusterRow("us-east", "ok", 3, 3),
        ClusterRow("us-west", "partly", 3, 2, "broker 3 (10.2.0.13:9092): connection refused",
                   at(2, 58, 31)),
        ClusterRow("central", "unreachable", None, None, "no broker of central answers",
                   at(3, 11), dict.fromkeys(("brokers_known", "brokers_reachable"),
                                            "central has not answered since 03:11:00 UTC")),
    ]  # fmt: skip
    notes = [
        NoteRow("1 group is not synced", "it has members on us-west",
                Link("groups", {"open": f"{EAST_WEST}/fraud-scoring"})),
        NoteRow("2 topics cannot be mirrored", "a missing permission; too few brokers",
                Link("topics", {"tab": "whynot"})),
        NoteRow("1 topic has other settings", "on us-west", Link("topics", {"state": "drift"})),
    ]  # fmt: skip
    states = {state: sum(row.state == state for row in topics) for state in RANK}
    overview = {
        "verdict": Sentence(
            Level.BAD, "problems", "2 things need you. Nothing is lost yet.",
            f"{len(parts) - 3} of {len(parts)} partitions are live and at most 0.6 s behind. 11 of "
            "12 tasks are running."),
        "problems": found,
        "notes": notes,
        "worst": flows[2].worst,
        "bytes_per_second": sum(flow.bytes_per_second or 0 for flow in flows),
        "records_per_second": sum(flow.records_per_second or 0 for flow in flows),
        "records_behind": sum(flow.records_behind or 0 for flow in flows),
        "unknown": {},
        "failover": [FailoverBrief(EAST_WEST, Level.BAD, "Not ready",
                                   "255,012 records would be lost"),
                     FailoverBrief(EAST_CENTRAL, Level.OK, "Ready",
                                   "0.6 s would be lost, 0 records re-read"),
                     FailoverBrief(WEST_CENTRAL, Level.UNKNOWN, "Unknown",
                                   "central is unreachable since 03:11:00 UTC")],
        "clusters": clusters,
        "flows": flows,
        "events": happened[:5],
        "sparks": {row.flow: {"bytes_per_second": history(row.flow, 20)
                              .series["bytes_per_second"][::4],
                              "seconds_behind": history(row.flow, 20)
                              .series["seconds_behind"][::4]} for row in flows},
        "versions": {"topics": 812, "groups": 40, "connectors": 7, "events": 12, "failover": 811},
    }  # fmt: skip
    kept = [row for row in topics if row.flow == EAST_WEST]
    return {
        "overview": answer(**overview),
        "flows": answer(flows=flows),
        "flow": answer(flow=flows[0], slowest=[p for p in slow if p.flow == EAST_WEST][:5],
                       events=[e for e in happened if e.flow == EAST_WEST][:5]),
        "history": answer(**as_dict(history(EAST_WEST, 29.0))),
        "topics": answer(**page(list(topics), {**states, "problem": 2, "drift": 1, "all":
                                               len(topics)}, len(topics))),
        "partitions": answer(flow=EAST_WEST, topic=kept[0], rows=[
            row for row in parts if (row.flow, row.topic) == (EAST_WEST, "payments")]),
        "unmirrored": answer(**page(list(not_mirrored), {"blocked": 2, "by rule": 26, "all": 28},
                                    28)),
        "groups": answer(
            **page(list(group_rows), {"all": 6, "not synced": 3, "reread": 4, "rule": 1}, 6),
            reread_records=9_634, oldest_checkpoint_seconds=41.0,
            unknown={}),
        "group": answer(group=group_rows[0], rows=members["fraud-scoring"]),
        "connectors": answer(rows=connectors(parts)),
        "connector": answer(
            connector=connectors(parts)[6],
            settings=[
                SettingRow("connector.class", "MirrorSourceConnector", "connector"),
                SettingRow("topics", "clickstream-raw, ads-.*, sessions", "connector"),
                SettingRow("tasks.max", "4", "connector"),
                SettingRow("errors.tolerance", "none", "default"),
                SettingRow("source.cluster.sasl.jaas.config", "[hidden]", "connector"),
            ]),
        "events": answer(rows=happened, total=len(happened), newest_id=happened[0].id),
        "failover": answer(**as_dict(failover(parts))),
    }  # fmt: skip


def as_dict(row: object) -> Json:
    found = as_json(row)
    assert isinstance(found, dict)
    return found


def main(folder: Path) -> None:
    for name, data in examples().items():
        (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    first = examples()["overview"]
    lines = [
        "retry: 2000",
        "",
        f"id: {first['now_ms']}",
        "event: overview",
        f"data: {json.dumps(first)}",
        "",
        ": heartbeat",
        "",
    ]
    (folder / "stream.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
