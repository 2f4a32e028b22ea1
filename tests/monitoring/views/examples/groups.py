"""Topics that are not mirrored, groups and connectors of the incident."""

from __future__ import annotations

from sparkmirror.monitoring.views.rows.common import (
    Remedy,
)
from sparkmirror.monitoring.views.rows.connector_rows import (
    ConnectorRow,
    TaskRow,
)
from sparkmirror.monitoring.views.rows.group_rows import (
    GroupPartitionRow,
    GroupRow,
)
from sparkmirror.monitoring.views.rows.partition_rows import (
    PartitionRow,
    RuleRow,
    UnmirroredRow,
)
from tests.monitoring.views.examples.incident import (
    EAST_CENTRAL,
    EAST_WEST,
    FAILED_REMEDY,
    FAILED_TEXT,
    FLOWS,
    TRACE,
    WEST_CENTRAL,
    WORKERS,
    at,
    connector,
)


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
            ),
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
        )
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
                )
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
