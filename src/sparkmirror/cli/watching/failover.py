"""`sparkmirror failover check A B`: could one switch now, and what would it cost?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sparkmirror.cli.tables import echo
from sparkmirror.cli.watching.cells import Row, plain
from sparkmirror.cli.watching.view_client import (
    DEFAULT_URL,
    Ca,
    Certificate,
    JsonAnswer,
    UserOption,
    WorkerUrl,
    print_json,
    view_client,
)
from sparkmirror.monitoring.views.wording.words import clock, count

EXIT_LOSS = 1


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(
        help="Say whether consumers and producers could move to another cluster now.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("check")(check)
    app.add_typer(group, name="failover")


def check(
    source: Annotated[str, typer.Argument(help="The cluster to leave.", metavar="A")],
    target: Annotated[str, typer.Argument(help="The cluster to move to.", metavar="B")],
    *,
    planned: Annotated[
        bool,
        typer.Option("--planned", help="A planned move: consumers and producers are stopped."),
    ] = False,
    lost: Annotated[
        bool, typer.Option("--lost", help="The source is lost now: what is not copied is gone.")
    ] = False,
    url: WorkerUrl = DEFAULT_URL,
    as_json: JsonAnswer = False,
    user: UserOption = "",
    ca: Ca = None,
    certificate: Certificate = None,
) -> None:
    """Say what a failover from A to B would cost now, with the evidence and the steps.

    Exits with 0 only if nothing would be lost: every partition had no lag twice, five seconds
    apart, every topic is there, and all that was known. With --planned it exits with 0 if
    everything will arrive once consumers and producers have stopped. Otherwise 1, also if
    something is not known or no worker answers; 2 for wrong usage. Nothing is changed anywhere.
    """
    with view_client(url, user, ca, certificate) as client:
        answer = client.get("failover", source=source, target=target)
    chosen = ["planned"] if planned and not lost else ["lost"] if lost and not planned else []
    shown = chosen or ["lost", "planned"]
    if as_json:
        print_json(answer)
    else:
        _print(answer, shown)
    raise typer.Exit(0 if answer[shown[0]]["nothing_lost"] else EXIT_LOSS)


def _print(answer: Row, shown: list[str]) -> None:
    source, target = answer["source"], answer["target"]
    titles = {"lost": f"If {source} is lost now", "planned": "Planned move"}
    for name in shown:
        sentence = answer[name]["sentence"]
        echo(f"{titles[name]}: {plain(sentence['head'])}")
        echo(f"  {plain(sentence['text'])}")
    echo("")
    echo(f"Records lost: {_number(answer, 'records_lost')}")
    echo(f"Records read again: {_number(answer, 'records_reread')}")
    without, groups = _number(answer, "groups_without_offset"), _number(answer, "groups")
    echo(f"Groups without an offset on {target}: {without} of {groups}")
    echo(f"\nEvidence, as of {clock(answer['now_ms'])}")
    for each in answer["evidence"]:
        echo(f"  {each['word']:<10} {plain(each['question'])}: {plain(each['text'])}")
    for reading in answer["readings"]:
        behind = _number(reading, "records_behind")
        echo(
            f"  {'Reading':<10} {clock(reading['time_ms'])}: {behind} records behind in "
            f"{reading['partitions_behind']} of {reading['partitions']} partitions"
        )
    for text in answer["missing"]:
        echo(f"  {'Unknown':<10} {text}")
    for name in shown:
        echo(f"\nSteps: {titles[name].lower() if name == 'planned' else titles[name]}")
        for number, step in enumerate(answer[name]["steps"], 1):
            _print_step(number, step)


def _print_step(number: int, step: dict[str, Any]) -> None:
    done = " (done)" if step["is_done"] else ""
    text = f": {plain(step['text'])}" if step["text"] else ""
    echo(f"  {number}. {plain(step['title'])}{done}{text}")
    if step["command"]:
        echo(f"     {step['command']}")


def _number(row: Row, name: str) -> str:
    if row[name] is not None:
        return count(row[name])
    return f"unknown ({plain(row['unknown'][name])})" if name in row["unknown"] else "unknown"
