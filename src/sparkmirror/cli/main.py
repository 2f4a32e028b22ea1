"""The entry point of `sparkmirror`: which commands exist, and how every failure ends.

Exit codes: 0 done; 1 an error of this program, with its message; 2 wrong usage or a setting that
cannot be used; 70 a bug; 130 interrupted. One of the places with a broad `except`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated, NamedTuple, Protocol, cast

import typer

import sparkmirror
from sparkmirror.config.files.java_options import KRB5_CONF, java_property, use_java_options
from sparkmirror.config.log_lines import without_controls
from sparkmirror.config.masking import mask
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError, MissingPart

EXIT_ERROR = 1
EXIT_CONFIG = 2
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


class Command(NamedTuple):
    """Where a command is, and its line in the list of commands.

    The module has `register(app)`, which adds its commands to `app`. It is imported only when one
    of them is used: some import Spark or a web server, which takes seconds.
    """

    module: str
    help: str
    # The extra in `pip install 'sparkmirror[extra]'`: packages that only this command needs.
    extra: str = ""


COMMANDS = {
    "run": Command("sparkmirror.cli.run", "Mirror the flows of FILE until SIGTERM or Ctrl-C."),
    "legacy": Command(
        "sparkmirror.cli.legacy",
        "Replace MirrorMaker 1 (kafka-mirror-maker.sh), with its options and its two files.",
    ),
    "worker": Command(
        "sparkmirror.cli.worker",
        "Run a Connect worker with the three Mirror connectors until SIGTERM or Ctrl-C.",
    ),
    "demo": Command(
        "sparkmirror.cli.demo",
        "Mirror two clusters on this machine and compare every record; takes about a minute.",
        extra="demo",
    ),
    "check": Command(
        "sparkmirror.cli.check",
        "Connect to every cluster of FILE and report what works: network, TLS, login, permissions.",
    ),
    "plan": Command(
        "sparkmirror.cli.preview.plan",
        "Show what `run` would create and change on the clusters of FILE; write nothing.",
    ),
    "validate": Command(
        "sparkmirror.cli.preview.validate",
        "Report all problems of FILE at once, with line numbers; connects to nothing.",
    ),
    "explain": Command(
        "sparkmirror.cli.preview.explain",
        "Say why a topic or a group is mirrored or not: every rule, and the key to change.",
    ),
    "convert": Command(
        "sparkmirror.cli.convert",
        "Write files and Kubernetes manifests equivalent to a KafkaMirrorMaker2 resource.",
    ),
    "deploy": Command(
        "sparkmirror.cli.deploy",
        "Create the three connectors of a source cluster, all or none, and wait until they run.",
    ),
    "undeploy": Command(
        "sparkmirror.cli.deploy", "Delete the three connectors of a source cluster."
    ),
    "redeploy": Command(
        "sparkmirror.cli.deploy",
        "Delete the three connectors of a source cluster and create them again.",
    ),
    "status": Command(
        "sparkmirror.cli.deploy", "Show the three connectors of a source cluster, and their tasks."
    ),
    "flows": Command(
        "sparkmirror.cli.watching.lists", "Show all flows of a running mirror, and what needs you."
    ),
    "topics": Command(
        "sparkmirror.cli.watching.lists",
        "List mirrored topics, the worst first; with --not-mirrored all others, and why not.",
    ),
    "lag": Command(
        "sparkmirror.cli.watching.lists",
        "List the partitions that are furthest behind: in records, bytes and seconds.",
    ),
    "events": Command(
        "sparkmirror.cli.watching.lists",
        "List what happened, newest first; an effect names its cause.",
    ),
    "top": Command(
        "sparkmirror.cli.watching.top", "Watch all flows of a running mirror until Ctrl-C."
    ),
    "failover": Command(
        "sparkmirror.cli.watching.failover",
        "Say whether consumers and producers could move to another cluster now.",
    ),
    "password": Command(
        "sparkmirror.cli.password",
        "Hash a password and print the line for the file of users (rest.basic.auth.users.file).",
    ),
    "kafka": Command(
        "sparkmirror.cli.kafka",
        "Start and stop real Kafka clusters on this machine.",
        extra="demo",
    ),
    "groups": Command(
        "sparkmirror.cli.groups", "Move consumer group offsets to the target cluster."
    ),
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
        _run(_command_in(words), words)
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


def _run(command: str | None, words: list[str]) -> None:
    try:
        build_app(command)(words, prog_name="sparkmirror")
    except ModuleNotFoundError as error:
        extra = COMMANDS[command].extra if command in COMMANDS else ""
        if not extra or error.name is None or error.name.startswith("sparkmirror"):
            raise
        raise MissingPart(
            f"sparkmirror {command} needs {error.name}, which is not installed: "
            f"pip install 'sparkmirror[{extra}]'"
        ) from error


def build_app(command: str | None = None) -> typer.Typer:
    """The command tree with `command`, or a list of all commands if there is none of that name."""
    app = typer.Typer(
        name="sparkmirror",
        help="Copy topics between Kafka clusters like MirrorMaker 2, on Spark.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        # On a narrow terminal, boxes would cut off the names of options.
        rich_markup_mode=None,
        callback=_options,
    )
    if command in COMMANDS:
        module = importlib.import_module(COMMANDS[command].module)
        cast("CommandModule", module).register(app)
        return app
    for name, each in COMMANDS.items():
        app.command(name, help=each.help)(_only_listed)
    return app


def _command_in(words: Sequence[str]) -> str | None:
    """The first word that is not an option (these take no value); None if --help precedes it."""
    for word in words:
        if word == "--help":
            break
        if not word.startswith("-"):
            return word
    return None


def _only_listed() -> None:
    """Represents a command in the list of all; never called."""


def _take_debug(words: list[str]) -> bool:
    """Accept --debug anywhere before `--`: users append it to the command that failed."""
    options = words[: words.index("--")] if "--" in words else words
    if "--debug" not in options:
        return False
    words.remove("--debug")
    return True


def _take_java_options() -> None:
    """Use the login options that Kafka's start scripts would pass to the JVM."""
    kafka_opts = os.environ.get("KAFKA_OPTS", "")
    use_java_options(kafka_opts)
    krb5_conf = java_property(kafka_opts, KRB5_CONF)
    if krb5_conf is not None:
        os.environ.setdefault("KRB5_CONFIG", krb5_conf)


def _show(message: str, debug: bool) -> None:
    from sparkmirror.logs.log_handler import write_as_json

    if write_as_json(message, sys.exception() if debug else None):
        return
    if debug:
        import traceback

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
