"""The answers of all endpoints about the incident."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

from sparkmirror.monitoring.views.rows.common import (
    ClusterRow,
    Level,
    Link,
    Requester,
    Sentence,
    WorkerRow,
    as_json,
)
from sparkmirror.monitoring.views.rows.connector_rows import (
    SettingRow,
)
from sparkmirror.monitoring.views.rows.failover_rows import (
    Evidence,
    FailoverAnswer,
    FailoverBrief,
    FailoverView,
    LagReading,
    Step,
)
from sparkmirror.monitoring.views.rows.flow_rows import (
    Gap,
    HistoryView,
    Mark,
    NoteRow,
)
from sparkmirror.monitoring.views.rows.partition_rows import (
    PartitionRow,
)
from tests.monitoring.views.examples.flows import (
    events,
    flow_row,
    problems,
)
from tests.monitoring.views.examples.groups import (
    connectors,
    groups,
    unmirrored,
)
from tests.monitoring.views.examples.incident import (
    EAST_CENTRAL,
    EAST_WEST,
    FLOWS,
    NOW,
    RANK,
    STUCK_AT,
    WEST_CENTRAL,
    WORKERS,
    Json,
    at,
    partitions,
    topic_rows,
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
            ],
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
            ],
        ),
        evidence=evidence,
        readings=[
            LagReading(NOW - 5_000, len(own), 80, lost - 1_500, 1_999_990_000),
            LagReading(NOW, len(own), 81, lost, 2_000_000_000),
        ],
    )


WHO = Requester("ops", "operator", True)
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
