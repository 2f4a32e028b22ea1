"""What needs a person, the nearest loss first, and one sentence that says whether all is well.

Runs on: worker. Pure. A problem is what does not end by itself, or has lasted a minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sparkmirror.monitoring.views.partition_view import UNKNOWN, nearest_loss, total
from sparkmirror.monitoring.views.picture import Picture
from sparkmirror.monitoring.views.rows.common import Level, Link, Sentence
from sparkmirror.monitoring.views.rows.connector_rows import ConnectorRow, TaskRow
from sparkmirror.monitoring.views.rows.flow_rows import FlowRow, ProblemRow
from sparkmirror.monitoring.views.rows.partition_rows import PartitionRow
from sparkmirror.monitoring.views.wording.remedies import without_remedy
from sparkmirror.monitoring.views.wording.words import count, counted, duration, names

LASTING_MS: Final = 60_000
# A cluster may miss one question.
UNREACHABLE_MS: Final = 10_000
NO_RECORDS: Final = dict.fromkeys(
    ("records_behind", "seconds_until_loss", "loss_at_ms"), "it copies no records"
)


def problem_rows(picture: Picture) -> list[ProblemRow]:
    """All of them."""
    rows = [*_lost(picture), *_bad_partitions(picture), *_failed(picture), *_clusters(picture)]
    rows.sort(
        key=lambda row: (
            row.code != "lost",
            float("inf") if row.seconds_until_loss is None else row.seconds_until_loss,
            row.level is not Level.BAD,
            row.id,
        )
    )
    return rows


def _lost(picture: Picture) -> Iterator[ProblemRow]:
    for rows in picture.partitions.values():
        for row in rows:
            if row.lost_records:
                name = f"{row.topic}-{row.partition}"
                said = next(
                    (
                        event.text
                        for event in picture.events
                        if event.kind == "lost"
                        and (event.topic, event.partition) == (row.topic, row.partition)
                    ),
                    "The source had deleted them before they were copied.",
                )
                yield ProblemRow(
                    id=f"lost {row.flow}/{name}/{row.lost_records}",
                    code="lost",
                    level=Level.BAD,
                    title=f"{counted(row.lost_records, 'record')} of `{name}` were lost",
                    text=said,
                    remedy=None,
                    flow=row.flow,
                    connector=row.connector,
                    task=row.task,
                    topic=row.topic,
                    partition=row.partition,
                    since_ms=None,
                    records_behind=row.records_behind,
                    seconds_until_loss=None,
                    loss_at_ms=None,
                    link=Link("events", {"kind": "lost"}),
                    unknown={},
                    not_applicable=dict.fromkeys(
                        ("seconds_until_loss", "loss_at_ms"), "these records are lost"
                    ),
                )


def _bad_partitions(picture: Picture) -> Iterator[ProblemRow]:
    """Those of one flow that wait for the same reason are one problem."""
    groups: dict[tuple[str, str, str], list[PartitionRow]] = {}
    for flow, rows in picture.partitions.items():
        for row in rows:
            since = picture.at_ms if row.since_ms is None else row.since_ms
            is_lasting = row.state == "stuck" and picture.at_ms - since >= LASTING_MS
            if row.state == "failed" or is_lasting:
                groups.setdefault((flow, row.state, _kind(row)), []).append(row)
    for (flow, state, _), rows in groups.items():
        yield _of_partitions(flow, state, rows)


def _kind(row: PartitionRow) -> str:
    """The problem without what differs from partition to partition."""
    name = f"{row.topic}-{row.partition}"
    return row.problem.replace(name, "").replace(f"{row.target_topic}-{row.partition}", "")


def _of_partitions(flow: str, state: str, rows: Sequence[PartitionRow]) -> ProblemRow:
    first = rows[0]
    left, loss_at, unknown, not_applicable = nearest_loss(rows)
    behind = total(row.records_behind for row in rows)
    if behind is None:
        unknown["records_behind"] = "not known of all of them"
    found = [f"{row.topic}-{row.partition}" for row in rows]
    is_one = len(rows) == 1
    verb = (
        ("has failed" if is_one else "have failed")
        if state == "failed"
        else ("is stuck" if is_one else "are stuck")
    )
    what = f"`{found[0]}`" if is_one else f"{counted(len(rows), 'partition')}"
    text = without_remedy(first.problem) or "the task's log says why"
    known = [row.since_ms for row in rows if row.since_ms is not None]
    return ProblemRow(
        id=f"{state} {flow}/{found[0]}",
        code=state,
        level=Level.BAD if state == "failed" else Level.WARN,
        title=f"{what} {verb}",
        text=text if is_one else f"{names(found)}: {text}",
        remedy=first.remedy,
        flow=flow,
        connector=first.connector,
        task=first.task,
        topic=first.topic,
        partition=first.partition,
        since_ms=min(known) if known else None,
        records_behind=behind,
        seconds_until_loss=left,
        loss_at_ms=loss_at,
        link=Link("topics", {"open": f"{flow}/{first.topic}"}),
        unknown=unknown,
        not_applicable=not_applicable,
    )


def _failed(picture: Picture) -> Iterator[ProblemRow]:
    for row in picture.connectors:
        if row.state == "FAILED":
            yield _of_part(picture, row, None)
        for task in row.tasks:
            partitions = [
                each
                for each in picture.partitions.get(row.flow, ())
                if each.connector == row.name and each.task == task.task
            ]
            # Partitions that have failed with it are named already.
            is_named = any(each.state == "failed" for each in partitions)
            if task.state == "FAILED" and not is_named:
                yield _of_part(picture, row, task)


def _of_part(picture: Picture, row: ConnectorRow, task: TaskRow | None) -> ProblemRow:
    reason = row.reason if task is None else task.reason
    what = f"Connector `{row.name}`" if task is None else f"Task {task.task} of `{row.name}`"
    rows = [
        each
        for each in picture.partitions.get(row.flow, ())
        if each.connector == row.name and (task is None or each.task == task.task)
    ]
    behind = total(each.records_behind for each in rows) if rows else None
    left, loss_at, unknown, not_applicable = nearest_loss(rows)
    if not rows:
        not_applicable = dict(NO_RECORDS)
    elif behind is None:
        unknown["records_behind"] = "not known of all of its partitions"
    since = next(
        (
            event.time_ms
            for event in picture.events
            if event.kind == "failed" and event.connector == row.name and event.ended_ms is None
        ),
        None,
    )
    number = "" if task is None else f"-{task.task}"
    return ProblemRow(
        id=f"failed {row.prefix}{row.name}{number}",
        code="failed",
        level=Level.BAD,
        title=f"{what} has failed",
        text=reason or "Its trace says why.",
        remedy=row.remedy if task is None else task.remedy,
        flow=row.flow,
        connector=row.name,
        task=None if task is None else task.task,
        topic="",
        partition=None,
        since_ms=since,
        records_behind=behind,
        seconds_until_loss=left,
        loss_at_ms=loss_at,
        link=Link("connectors", {"c": row.name}),
        unknown=unknown,
        not_applicable=not_applicable,
    )


def _clusters(picture: Picture) -> Iterator[ProblemRow]:
    said = set()
    for specs in picture.flows:
        watch = picture.watches[specs.flow]
        for alias, known in zip(specs.aliases, (watch.source, watch.target), strict=True):
            since = known.since_ms
            if not known.error or since is None or picture.at_ms - since < UNREACHABLE_MS:
                continue
            if alias in said:
                continue
            said.add(alias)
            yield ProblemRow(
                id=f"unreachable {alias}",
                code="unreachable",
                level=Level.BAD,
                title=f"Cluster {alias} cannot be reached from this worker",
                text=known.error,
                remedy=None,
                flow=specs.flow,
                connector="",
                task=None,
                topic="",
                partition=None,
                since_ms=since,
                records_behind=None,
                seconds_until_loss=None,
                loss_at_ms=None,
                link=Link("events", {"q": alias}),
                unknown=dict.fromkeys(
                    ("records_behind", "seconds_until_loss", "loss_at_ms"),
                    "see the partitions of its flows",
                ),
            )


def verdict(picture: Picture, flows: Sequence[FlowRow], problems: Sequence[ProblemRow]) -> Sentence:
    """The first that applies: lost, problems, catching up, unknown, all right."""
    rows = [row for each in picture.partitions.values() for row in each]
    if not picture.flows:
        return Sentence(
            Level.INFO,
            "empty",
            "No flow yet",
            "This worker runs and waits for connectors: `sparkmirror deploy CLUSTER --dir mm2` "
            "sends it the files of a source cluster.",
        )
    evidence = _evidence(rows, flows)
    lost = [row for row in problems if row.code == "lost"]
    if lost:
        return Sentence(Level.BAD, "lost", "Records were lost.", f"{lost[0].title}. {evidence}")
    if problems:
        needs = "1 thing needs you" if len(problems) == 1 else f"{len(problems)} things need you"
        level = Level.BAD if any(row.level is Level.BAD for row in problems) else Level.WARN
        return Sentence(level, "problems", f"{needs}. Nothing is lost yet.", evidence)
    unknown = [row for row in rows if row.state == UNKNOWN or row.records_behind is None]
    if unknown or any(flow.state == UNKNOWN for flow in flows) or picture.gathered.missing:
        return _not_known(picture, flows, unknown, evidence)
    return _without_problems(rows, flows, evidence)


def _without_problems(
    rows: Sequence[PartitionRow], flows: Sequence[FlowRow], evidence: str
) -> Sentence:
    late = [flow for flow in flows if flow.state == "catching up"]
    if late:
        return _catching_up(late, evidence)
    stuck = [row for row in rows if row.state == "stuck"]
    if stuck:
        head = f"{counted(len(stuck), 'partition')} stuck for less than a minute"
        return Sentence(Level.WARN, "problems", head, evidence)
    return Sentence(Level.OK, "ok", "Everything is all right", evidence)


def _not_known(
    picture: Picture, flows: Sequence[FlowRow], unknown: Sequence[PartitionRow], evidence: str
) -> Sentence:
    if picture.gathered.missing:
        text = "; ".join(picture.gathered.missing)
        return Sentence(Level.UNKNOWN, UNKNOWN, "Not everything is known", f"{text}. {evidence}")
    if unknown:
        first = unknown[0]
        head = f"The state of {counted(len(unknown), 'partition')} is not known"
        why = first.problem or first.unknown.get("records_behind", "")
        text = f"`{first.topic}-{first.partition}`: {why}. {evidence}"
        return Sentence(Level.UNKNOWN, "starting" if _begins(flows) else UNKNOWN, head, text)
    words = ", ".join(flow.flow for flow in flows if flow.state == UNKNOWN)
    return Sentence(
        Level.UNKNOWN, "starting", "Starting", f"Nothing is known yet of {words}. {evidence}"
    )


def _begins(flows: Sequence[FlowRow]) -> bool:
    return all(flow.tasks_running < flow.tasks or not flow.tasks for flow in flows)


def _catching_up(late: Sequence[FlowRow], evidence: str) -> Sentence:
    slowest = max(late, key=lambda flow: flow.catch_up.seconds or 0.0)
    way = f"{slowest.source} to {slowest.target}"
    seconds = slowest.catch_up.seconds
    done = "" if seconds is None else f" is done in about {duration(seconds)}"
    waiting = "" if slowest.records_behind is None else f"{count(slowest.records_behind)} records"
    text = f"{waiting} behind. Nothing is lost. {evidence}" if waiting else evidence
    return Sentence(Level.INFO, "catching up", f"Catching up: {way}{done}", text)


def _evidence(rows: Sequence[PartitionRow], flows: Sequence[FlowRow]) -> str:
    fine = [row for row in rows if row.state in ("live", "idle")]
    known = [row.seconds_behind for row in fine if row.seconds_behind is not None]
    late = f" and at most {duration(max(known))} behind" if known else ""
    tasks, running = sum(flow.tasks for flow in flows), sum(flow.tasks_running for flow in flows)
    return (
        f"{count(len(fine))} of {counted(len(rows), 'partition')} in "
        f"{counted(len(flows), 'flow')} are live{late}. {running} of {counted(tasks, 'task')} run."
    )
