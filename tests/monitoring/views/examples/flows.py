"""Flows, problems and events of the incident."""

from __future__ import annotations

from sparkmirror.monitoring.views.rows.common import (
    Level,
    Link,
    Sentence,
)
from sparkmirror.monitoring.views.rows.flow_rows import (
    CatchUp,
    EventRow,
    FlowLatency,
    FlowRow,
    ProblemRow,
    WorstPartition,
)
from sparkmirror.monitoring.views.rows.partition_rows import (
    PartitionRow,
)
from tests.monitoring.views.examples.incident import (
    EAST_CENTRAL,
    EAST_WEST,
    FAILED_AT,
    STUCK_AT,
    TOPICS,
    WEST_CENTRAL,
    WORKERS,
    at,
    connector,
    counts,
    nearest,
    worst_state,
)

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
        latency=FlowLatency(71.0, 188.0, 640.0),
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
