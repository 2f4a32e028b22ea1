"""`sparkmirror top`: a running mirror live in the terminal, with sparklines."""

from __future__ import annotations

import contextlib
import time
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sparkmirror.cli.watching.cells import Row, cell, plain, seconds, sparkline, speed
from sparkmirror.cli.watching.view_client import (
    DEFAULT_URL,
    Ca,
    Certificate,
    UserOption,
    ViewClient,
    WorkerUrl,
    view_client,
)
from sparkmirror.config.log_lines import without_controls
from sparkmirror.config.masking import mask
from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.views.wording.words import clock, duration

STYLES = {"ok": "green", "info": "cyan", "warn": "yellow", "bad": "bold red", "unknown": "magenta"}
_STATE_STYLES = {
    "failed": "bold red",
    "stuck": "yellow",
    "unknown": "magenta",
    "catching up": "cyan",
    "paused": "cyan",
}
# Of sparklines, on a wide terminal and on a narrow one.
SPARK_WIDTH, NARROW_SPARK = 20, 8
WIDE, MEDIUM = 125, 95
MOST_PROBLEMS = 5


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("top")(top)


def top(
    *,
    url: WorkerUrl = DEFAULT_URL,
    interval: Annotated[
        float, typer.Option(min=0.5, max=60, help="Seconds between two looks.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once and end.")] = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """Watch all flows of a running mirror until Ctrl-C.

    Two sparklines per flow show throughput and lag of the last hour; a gap is a time without
    figures. Exits with 1 if the worker does not answer at the start.
    """
    console = Console()
    with view_client(url, user, ca, certificate) as client:
        answer = client.get("overview")
        if once or not console.is_terminal:
            console.print(screen(answer, client.url, console.width))
            return
        with contextlib.suppress(KeyboardInterrupt):
            _watch(console, client, answer, interval)


def _watch(console: Console, client: ViewClient, answer: Row, interval: float) -> None:
    with Live(console=console, screen=True, auto_refresh=False) as live:
        problem = ""
        while True:
            live.update(screen(answer, client.url, console.width, problem), refresh=True)
            time.sleep(interval)
            try:
                answer, problem = client.get("overview"), ""
            except MirrorError as error:
                problem = str(error)


def screen(answer: Row, url: str, width: int, problem: str = "") -> Group:
    """All of it. `problem`: why the answer is not of now."""
    verdict = answer["verdict"]
    now = clock(answer["now_ms"])
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append("sparkmirror ", "bold")
    head.append(f"{answer['version']} at {url}, ", "dim")
    if problem:
        head.append(f"not live: as of {now}. {_safe(problem)}", "bold red")
    else:
        head.append(f"live {now}", "green")
    sentence = Text(_safe(plain(verdict["head"])), STYLES.get(verdict["level"], ""))
    if problem:
        sentence = Text(f"At {now}: {_safe(plain(verdict['head']))}", "dim")
    parts: list[Text | Table] = [head, Text(), sentence, Text(_safe(plain(verdict["text"])), "dim")]
    parts += [_problem(row) for row in answer["problems"][:MOST_PROBLEMS]]
    left = len(answer["problems"]) - MOST_PROBLEMS
    if left > 0:
        parts.append(Text(f"  and {left} more: sparkmirror flows", "dim"))
    parts += [Text(f"  not known: {_safe(text)}", "magenta") for text in answer["missing"]]
    parts += [Text(), _flows(answer, width), Text(), *_events(answer)]
    return Group(*parts)


def _problem(row: Row) -> Text:
    text = Text("  ")
    text.append(_safe(plain(row["title"])), STYLES.get(row["level"], ""))
    if row["seconds_until_loss"] is not None:
        text.append(f", loss begins in {duration(row['seconds_until_loss'])}", "bold")
    text.append(f"  {_safe(plain(row['text']))}", "dim")
    return text


def _flows(answer: Row, width: int) -> Table:
    """On a narrow terminal without what can be had elsewhere."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    bars = SPARK_WIDTH if width >= WIDE else NARROW_SPARK
    for name in ("Flow", "State"):
        table.add_column(name, no_wrap=True)
    table.add_column("Copied", justify="right", no_wrap=True)
    if width >= MEDIUM:
        table.add_column("last hour", no_wrap=True, min_width=bars)
    table.add_column("Lag", justify="right", no_wrap=True)
    table.add_column("last hour", no_wrap=True, min_width=bars)
    table.add_column("Behind", justify="right", no_wrap=True)
    if width >= MEDIUM:
        table.add_column("Loss in", justify="right", no_wrap=True)
    if width >= WIDE:
        table.add_column("Heartbeat", justify="right", no_wrap=True)
    table.columns[0].min_width = max((len(row["flow"]) for row in answer["flows"]), default=4)
    for row in answer["flows"]:
        sparks = answer["sparks"].get(row["flow"], {})
        copied = Text(sparkline(sparks.get("bytes_per_second", ()), bars), "blue")
        last = [seconds(row, "seconds_until_loss"), seconds(row, "heartbeat_age_seconds")]
        table.add_row(
            _safe(row["flow"]),
            Text(_safe(row["word"]), _STATE_STYLES.get(row["state"], "")),
            speed(row),
            *([copied] if width >= MEDIUM else []),
            seconds(row),
            Text(sparkline(sparks.get("seconds_behind", ()), bars), "blue"),
            cell(row, "records_behind"),
            *last[: (width >= MEDIUM) + (width >= WIDE)],
        )
    return table


def _events(answer: Row) -> list[Text]:
    found = []
    for row in answer["events"]:
        text = Text(f"{clock(row['time_ms'], answer['now_ms'])}  ", "dim", no_wrap=True)
        text.append(f"{row['kind']} ", STYLES.get(row["level"], ""))
        text.append(_safe(plain(row["text"])).replace("\n", " "))
        text.overflow = "ellipsis"
        found.append(text)
    return found


def _safe(text: str) -> str:
    """Names and messages come from elsewhere: no secrets, and nothing that moves the cursor."""
    return without_controls(mask(text))
