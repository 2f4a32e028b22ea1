"""`sparkmirror demo`: two real clusters on this machine, mirrored and compared."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from sparkmirror.errors import ConfigError, MirrorError

if TYPE_CHECKING:
    from rich.console import Console

    from sparkmirror.demo.scenario import Demo, DemoSettings

EXIT_DIFFERENT = 1


def register(app: typer.Typer) -> None:
    """Add `demo` to the command tree."""
    app.command()(demo)


def demo(
    *,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", envvar="KEEP", help="Leave everything running and print how to stop it."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and the progress to stderr.")
    ] = False,
    timeout_seconds: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds to wait for records to arrive.")
    ] = 120.0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the mm2.properties."),
    ] = None,
    engine: Annotated[str, typer.Option(hidden=True)] = "sparkmirror",
) -> None:
    """Mirror two clusters on this machine and compare every record; takes about a minute."""
    from sparkmirror.demo.mirror_process import ENGINES
    from sparkmirror.demo.scenario import DemoSettings

    if engine not in ENGINES:
        raise ConfigError("engine", engine, "unknown", f"use one of {', '.join(ENGINES)}")
    chosen = DemoSettings(engine, keep, timeout_seconds, _parse_settings(settings or ()))
    signal.signal(signal.SIGTERM, _interrupt)
    ok = _run(chosen, as_json)
    raise typer.Exit(0 if ok else EXIT_DIFFERENT)


def _run(settings: DemoSettings, as_json: bool) -> bool:
    from rich.console import Console

    from sparkmirror.demo.report import Narrator, print_result
    from sparkmirror.demo.scenario import Demo

    console = Console(stderr=as_json)
    story = Demo(settings, Narrator(console))
    try:
        result = story.run()
    except MirrorError as error:
        if as_json:
            typer.echo(json.dumps({"ok": False, "error": str(error)}))
        _print_kept(console, story)
        raise
    if as_json:
        typer.echo(json.dumps(result.as_json(), indent=2))
    else:
        print_result(console, result)
    _print_kept(console, story)
    return result.ok


def _print_kept(console: Console, story: Demo) -> None:
    from sparkmirror.demo.report import print_kept

    if story.kept is not None:
        print_kept(console, story.kept)


def _parse_settings(words: Sequence[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for key, equals, _ in pairs:
        if not equals:
            raise ConfigError(key, None, "--set needs KEY=VALUE")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Make SIGTERM unwind the stack, as Ctrl-C does, so that everything is stopped."""
    sys.exit(128 + number)
