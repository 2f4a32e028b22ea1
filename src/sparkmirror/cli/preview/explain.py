"""`sparkmirror explain topic|group NAME FILE`: every rule in order, and the key to change."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sparkmirror.cli.deploy import Ca, Certificate, UserOption, ask_access
from sparkmirror.cli.tables import echo
from sparkmirror.errors import ConfigError

if TYPE_CHECKING:
    from sparkmirror.mirror.explaining.explanation import Explanation
    from sparkmirror.tools.preview.explained_connectors import AnyExplained

T = TypeVar("T")
EXIT_STOPPED = 1
PATIENCE_SECONDS = 10.0
# Of the longest rule and result.
RULE_WIDTH, RESULT_WIDTH = 30, 11
MOST_SHOWN = 120

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        help="An mm2 file, or a connector's settings (JSON or properties).", metavar="[FILE]"
    ),
]
Offline = Annotated[bool, typer.Option("--offline", help="Ask no cluster.")]
Flow = Annotated[str, typer.Option("--flow", metavar="A->B", help="Only this flow of an mm2 file.")]
ConnectorUrl = Annotated[
    str, typer.Option("--url", help="A Connect worker that has the connector, instead of FILE.")
]
ConnectorName = Annotated[
    str, typer.Option("--connector", metavar="NAME", help="The connector on that worker.")
]
ExplainedAsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add the two commands."""
    explain = typer.Typer(
        help="Say why a topic or a group is mirrored or not: every rule, and the key to change.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    explain.command("topic")(topic)
    explain.command("group")(group)
    app.add_typer(explain, name="explain")


def topic(  # noqa: PLR0917 - options of the command line
    name: Annotated[str, typer.Argument(help="A topic of the source.", metavar="NAME")],
    file: FileArgument = None,
    offline: Offline = False,
    flow: Flow = "",
    url: ConnectorUrl = "",
    connector: ConnectorName = "",
    user: UserOption = "",
    ca: Ca = None,
    cert: Certificate = None,
    as_json: ExplainedAsJson = False,
) -> None:
    """Say why topic NAME is mirrored or not: every rule in order, and the key to change.

    The rules need no cluster. If both clusters respond, they also tell whether the topic and its
    remote topic exist. Exits with 0 if a flow mirrors the topic, with 1 if none does.
    """
    from sparkmirror.mirror.explaining.topic_rules import TopicExplainer
    from sparkmirror.tools.preview.cluster_facts import ask_about_topic, not_asked
    from sparkmirror.tools.preview.explained_connectors import sources

    connectors = sources(_connectors(file, url, connector, (user, ca, cert)))
    found: list[tuple[Explanation, Sequence[str]]] = []
    for each in _of_flow(connectors, flow, lambda one: str(one.flow)):
        is_silent = offline or each.unresolved
        asked = not_asked(each.unresolved) if is_silent else ask_about_topic(each.config, name)
        explained = TopicExplainer(each.config, each.spelling).explain(name, asked.topic)
        found.append((explained, asked.notes))
    _show(found, as_json)


def group(  # noqa: PLR0917 - the same
    name: Annotated[str, typer.Argument(help="A consumer group of the source.", metavar="NAME")],
    file: FileArgument = None,
    offline: Offline = False,
    flow: Flow = "",
    url: ConnectorUrl = "",
    connector: ConnectorName = "",
    user: UserOption = "",
    ca: Ca = None,
    cert: Certificate = None,
    as_json: ExplainedAsJson = False,
) -> None:
    """Say why offsets of group NAME are written on the target or not: every rule in order.

    Without the clusters, rules about the group's members and offsets are unknown. Exits with 0 if
    no rule stops the group in at least one flow, else with 1.
    """
    from sparkmirror.mirror.explaining.group_rules import GroupExplainer
    from sparkmirror.tools.preview.cluster_facts import ask_about_group, not_asked
    from sparkmirror.tools.preview.explained_connectors import checkpointers

    connectors = checkpointers(_connectors(file, url, connector, (user, ca, cert)))
    found: list[tuple[Explanation, Sequence[str]]] = []
    for each in _of_flow(connectors, flow, lambda one: str(one.flow)):
        is_silent = offline or each.unresolved
        asked = not_asked(each.unresolved) if is_silent else ask_about_group(each.config, name)
        explained = GroupExplainer(each.config, each.spelling).explain(name, asked.group)
        found.append((explained, asked.notes))
    _show(found, as_json)


def _connectors(
    file: Path | None, url: str, connector: str, login: tuple[str, Path | None, Path | None]
) -> list[AnyExplained]:
    from sparkmirror.tools.deploy.rest_client import ConnectClient
    from sparkmirror.tools.preview.explained_connectors import (
        connector_of_worker,
        connectors_of_file,
    )

    logging.getLogger("sparkmirror").setLevel(logging.CRITICAL)  # the explanation has all of it
    if file is not None and not url:
        return connectors_of_file(file)
    if file is not None or not url or not connector:
        reason = "name either a FILE, or --url and --connector"
        raise ConfigError("explain", None, reason)
    with ConnectClient(url, PATIENCE_SECONDS, ask_access(*login)) as client:
        return [connector_of_worker(client, connector)]


def _of_flow(connectors: Sequence[T], flow: str, name_of: Callable[[T], str]) -> list[T]:
    found = [each for each in connectors if not flow or name_of(each) == flow]
    if not found:
        known = ", ".join(name_of(each) for each in connectors)
        raise ConfigError("--flow", flow, "no flow of this name copies", f"use one of {known}")
    return found


def _show(found: Sequence[tuple[Explanation, Sequence[str]]], as_json: bool) -> None:
    from sparkmirror.mirror.explaining.explanation import RuleResult

    if as_json:
        rows = [explained.as_json() | {"notes": list(notes)} for explained, notes in found]
        echo(json.dumps(rows, indent=2))
    else:
        for at, (explained, notes) in enumerate(found):
            if at:
                echo("")
            _print(explained, notes)
    are_stopped = all(each.verdict is RuleResult.STOPS for each, _ in found)
    raise typer.Exit(EXIT_STOPPED if are_stopped else 0)


def _print(explained: Explanation, notes: Sequence[str]) -> None:
    echo(f"{explained.summary}\n")
    for at, check in enumerate(explained.rules, 1):
        front = f"{at:>2}  {check.rule:<{RULE_WIDTH}}  {check.result.value:<{RESULT_WIDTH}}"
        echo(f"{front}  {check.text}".rstrip())
        # Beside a rule that was not reached, a value would only look like a reason.
        if check.text and check.value and check.value not in check.text:
            echo(f"{'':<{len(front)}}  {_short(check.value)}")
    for note in notes:
        echo(f"\nnote: {note}")
    if explained.change is not None:
        change = explained.change
        echo(f"\nto change that, write:\n  {change.line}")
        if change.note:
            echo(f"  ({change.note})")


def _short(value: str) -> str:
    return value if len(value) <= MOST_SHOWN else f"{value[: MOST_SHOWN - 3]}..."
