"""`sparkmirror flows|topics|lag|events`: what a running mirror does, as tables or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from sparkmirror.cli.tables import echo, print_table
from sparkmirror.cli.watching.cells import NONE, Row, cell, plain, seconds, speed
from sparkmirror.cli.watching.view_client import (
    DEFAULT_URL,
    Ca,
    Certificate,
    Filter,
    FlowOption,
    JsonAnswer,
    Limit,
    UserOption,
    WorkerUrl,
    print_json,
    print_missing,
    view_client,
)
from sparkmirror.monitoring.views.wording.words import clock, duration

FLOWS = ("FLOW", "STATE", "COPIED", "LAG", "RECORDS BEHIND", "LOSS IN", "HEARTBEAT", "CATCH-UP")
TOPICS = ("STATE", "TOPIC", "FLOW", "PARTITIONS", "RECORDS BEHIND", "LAG", "LOSS IN", "COPIED")
NOT_MIRRORED = ("VERDICT", "TOPIC", "FLOW", "WHY NOT")
LAG = (
    "STATE",
    "PARTITION",
    "FLOW",
    "POSITION",
    "END",
    "RECORDS",
    "BYTES",
    "LAG",
    "LOSS IN",
    "TASK",
)
EVENTS = ("TIME", "KIND", "FLOW", "LASTS", "COUNT", "EVENT")
USUAL_LIMIT = 50


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (flows, topics, lag, events):
        app.command(command.__name__)(command)


def flows(
    *,
    url: WorkerUrl = DEFAULT_URL,
    as_json: JsonAnswer = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """Show all flows of a running mirror, and what needs you.

    LAG is the age of the oldest record that is not copied yet, of the worst partition; LOSS IN is
    when the source begins to delete records that are not copied.
    """
    with view_client(url, user, ca, certificate) as client:
        answer = client.get("overview")
    if as_json:
        print_json(answer)
        return
    print_missing(answer)
    verdict = answer["verdict"]
    echo(f"{plain(verdict['head'])}  {plain(verdict['text'])}")
    for problem in answer["problems"]:
        remedy = problem["remedy"]
        echo(f"  {plain(problem['title'])}: {plain(problem['text'])}")
        if remedy:
            echo(f"    {plain(remedy['text'])} {remedy['command']}".rstrip())
    if answer["flows"]:
        echo("")
        print_table(FLOWS, [_flow_cells(row) for row in answer["flows"]])


def _flow_cells(row: Row) -> Sequence[object]:
    catch_up = row["catch_up"]
    about = catch_up["seconds"]
    return (
        row["flow"],
        row["word"],
        speed(row),
        seconds(row),
        cell(row, "records_behind"),
        seconds(row, "seconds_until_loss"),
        seconds(row, "heartbeat_age_seconds"),
        catch_up["state"] if about is None else f"about {duration(about)}",
    )


def topics(
    *,
    url: WorkerUrl = DEFAULT_URL,
    flow: FlowOption = "",
    name: Filter = "",
    state: Annotated[
        str,
        typer.Option(help="all, problem, failed, stuck, 'catching up', paused, live, idle, drift."),
    ] = "",
    not_mirrored: Annotated[
        bool, typer.Option("--not-mirrored", help="Topics that are not mirrored, and why.")
    ] = False,
    limit: Limit = USUAL_LIMIT,
    as_json: JsonAnswer = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """List mirrored topics, the worst first; with --not-mirrored all others, and why not."""
    view = "unmirrored" if not_mirrored else "topics"
    with view_client(url, user, ca, certificate) as client:
        answer = client.get(view, flow=flow, q=name, state=state, limit=limit)
    if as_json:
        print_json(answer)
        return
    print_missing(answer)
    if not_mirrored:
        rows = [
            (row["verdict"], row["topic"], row["flow"], plain(row["reason"]))
            for row in answer["rows"]
        ]
        print_table(NOT_MIRRORED, rows)
    else:
        print_table(TOPICS, [_topic_cells(row) for row in answer["rows"]])
    _print_rest(answer)


def _topic_cells(row: Row) -> Sequence[object]:
    return (
        row["word"],
        row["topic"],
        row["flow"],
        row["partitions"]["total"],
        cell(row, "records_behind"),
        seconds(row),
        seconds(row, "seconds_until_loss"),
        speed(row),
    )


def lag(
    *,
    url: WorkerUrl = DEFAULT_URL,
    flow: FlowOption = "",
    name: Filter = "",
    limit: Limit = USUAL_LIMIT,
    as_json: JsonAnswer = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """List the partitions that are furthest behind: in records, bytes and seconds."""
    with view_client(url, user, ca, certificate) as client:
        answer = client.get("lag", flow=flow, q=name, limit=limit)
    if as_json:
        print_json(answer)
        return
    print_missing(answer)
    print_table(LAG, [_lag_cells(row) for row in answer["rows"]])
    _print_rest(answer)


def _lag_cells(row: Row) -> Sequence[object]:
    return (
        row["state"],
        f"{row['topic']}-{row['partition']}",
        row["flow"],
        cell(row, "position"),
        cell(row, "end_offset"),
        cell(row, "records_behind"),
        cell(row, "bytes_behind"),
        seconds(row),
        seconds(row, "seconds_until_loss"),
        row["task"],
    )


def events(
    *,
    url: WorkerUrl = DEFAULT_URL,
    flow: FlowOption = "",
    text: Annotated[
        str, typer.Option("--filter", metavar="TEXT", help="Only events with TEXT, or /RE/.")
    ] = "",
    kind: Annotated[
        str, typer.Option(metavar="KIND,...", help="Such as failed, lost, created.")
    ] = "",
    limit: Limit = USUAL_LIMIT,
    as_json: JsonAnswer = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """List what happened, newest first; an effect names its cause."""
    with view_client(url, user, ca, certificate) as client:
        answer = client.get("events", flow=flow, q=text, kind=kind, limit=limit)
    if as_json:
        print_json(answer)
        return
    print_missing(answer)
    causes = {row["id"]: row for row in answer["rows"]}
    rows = [_event_cells(row, causes, answer["now_ms"]) for row in answer["rows"]]
    print_table(EVENTS, rows)


def _event_cells(row: Row, causes: dict[str, Row], now_ms: int) -> Sequence[object]:
    cause = causes.get(row["cause_id"] or "")
    because = f" (because: {plain(cause['text'])[:80]})" if cause else ""
    lasts = NONE
    if row["ended_ms"] is not None:
        lasts = f"over after {duration((row['ended_ms'] - row['time_ms']) / 1000)}"
    elif row["lasts"]:
        lasts = f"ongoing, {duration((now_ms - row['time_ms']) / 1000)}"
    text = plain(row["text"]).replace("\n", " ")
    return (
        clock(row["time_ms"], now_ms),
        row["kind"],
        row["flow"] or NONE,
        lasts,
        row["count"],
        f"{text}{because}",
    )


def _print_rest(answer: Row) -> None:
    left = answer["matching"] - len(answer["rows"])
    if left > 0:
        echo(f"... and {left} more: use --limit or --filter")
    elif not answer["rows"]:
        echo("nothing matches" if answer["total"] else "there are none")
