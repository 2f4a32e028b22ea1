"""The entry point of `sparkmirror`: which commands exist, and how every failure ends.

Exit codes: 0 done; 1 an error of this program, with its message; 2 wrong usage or a setting that
cannot be used; 70 a bug; 130 interrupted. One of the places with a broad `except`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Protocol, cast

import typer

import sparkmirror
from sparkmirror.config.files.java_options import KRB5_CONF, java_property, use_java_options
from sparkmirror.config.log_lines import without_controls
from sparkmirror.config.masking import mask
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError

EXIT_ERROR = 1
EXIT_CONFIG = 2
EXIT_BUG = 70
EXIT_INTERRUPTED = 130

# Command -> module. A module has `register(app)`, which adds its commands to `app`; it is imported
# only when its command is used, because some import Spark.
COMMANDS = {
    "run": "sparkmirror.cli.run",
    "legacy": "sparkmirror.cli.legacy",
    "worker": "sparkmirror.cli.worker",
    "demo": "sparkmirror.cli.demo",
    "kafka": "sparkmirror.cli.kafka",
    "groups": "sparkmirror.cli.groups",
    "check": "sparkmirror.cli.check",
    "convert": "sparkmirror.cli.convert",
    "deploy": "sparkmirror.cli.deploy",
    "undeploy": "sparkmirror.cli.deploy",
    "redeploy": "sparkmirror.cli.deploy",
    "status": "sparkmirror.cli.deploy",
    "password": "sparkmirror.cli.password",
}


class CommandModule(Protocol):
    """What every module in `COMMANDS` offers."""

    def register(self, app: typer.Typer) -> None:
        """Add the commands, under their names in `COMMANDS`, to `app`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = _take_debug(words)
    _take_java_options()
    try:
        build_app(words[0] if words else None)(words, prog_name="sparkmirror")
    except MirrorError as error:
        _show(str(error), debug)
        is_config = isinstance(error, ConfigError | ConfigErrors)
        sys.exit(EXIT_CONFIG if is_config else EXIT_ERROR)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the boundary that the module docstring names
        hint = "" if debug else " (a bug; use --debug for the traceback)"
        _show(f"{type(error).__name__}: {error}{hint}", debug)
        sys.exit(EXIT_BUG)


def build_app(command: str | None = None) -> typer.Typer:
    """The command tree: only `command` if there is one of that name, otherwise all, for help."""
    needs_none = command == "--version"
    app = typer.Typer(
        name="sparkmirror",
        help="Copy topics between Kafka clusters like MirrorMaker 2, on Spark.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        # Boxes cut the names of options off where a terminal is narrow.
        rich_markup_mode=None,
        callback=_options,
    )
    modules = [COMMANDS[command]] if command in COMMANDS else dict.fromkeys(COMMANDS.values())
    for module in () if needs_none else modules:
        if importlib.util.find_spec(module) is not None:
            cast("CommandModule", importlib.import_module(module)).register(app)
    return app


def _take_debug(words: list[str]) -> bool:
    """Accept --debug anywhere before `--`: people append it to the line that failed."""
    options = words[: words.index("--")] if "--" in words else words
    if "--debug" not in options:
        return False
    words.remove("--debug")
    return True


def _take_java_options() -> None:
    """The login options that Kafka's start scripts pass to the JVM."""
    kafka_opts = os.environ.get("KAFKA_OPTS", "")
    use_java_options(kafka_opts)
    krb5_conf = java_property(kafka_opts, KRB5_CONF)
    if krb5_conf is not None:
        os.environ.setdefault("KRB5_CONFIG", krb5_conf)


def _show(message: str, debug: bool) -> None:
    if debug:
        typer.echo(without_controls(mask(traceback.format_exc())), err=True, nl=False)
    for line in without_controls(mask(message)).splitlines():
        typer.echo(f"sparkmirror: {line}", err=True)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"sparkmirror {sparkmirror.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; allowed anywhere.")
    ] = False,
) -> None:
    """Declare the options before the command; both are handled before this is called."""


if __name__ == "__main__":
    main()
