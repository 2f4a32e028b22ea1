"""`sparkmirror legacy`: MirrorMaker 1, with the options of kafka-mirror-maker.sh (2.1 to 3.9)."""

from __future__ import annotations

import json
import logging
from typing import Annotated

import typer

import sparkmirror
from sparkmirror.cli.run import run_until
from sparkmirror.cli.service import EXIT_UNCLEAN, LogFormatOption, set_up_log, stop_on_signals
from sparkmirror.cli.tables import echo
from sparkmirror.config.legacy.as_mm2_file import NOTES, mm2_text, shown_settings, shown_warnings
from sparkmirror.config.legacy.mirror_maker_1 import LegacyConfig, LegacyOptions, load_legacy
from sparkmirror.connect.background import Background
from sparkmirror.errors import ConfigError
from sparkmirror.spark.machine import java_program

log = logging.getLogger("sparkmirror")

Text = str | None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("legacy")(legacy)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"sparkmirror {sparkmirror.__version__}")
        raise typer.Exit


def legacy(
    *,
    consumer_config: Annotated[
        Text,
        typer.Option("--consumer.config", metavar="FILE", help="The source: consumer settings."),
    ] = None,
    producer_config: Annotated[
        Text,
        typer.Option("--producer.config", metavar="FILE", help="The target: producer settings."),
    ] = None,
    include: Annotated[
        Text,
        typer.Option(
            "--include", metavar="REGEX", help="Topics: a Java regular expression; a comma means |."
        ),
    ] = None,
    whitelist: Annotated[
        Text,
        typer.Option("--whitelist", metavar="REGEX", help="The same; --include takes precedence."),
    ] = None,
    num_streams: Annotated[
        str, typer.Option("--num.streams", metavar="N", help="Number of tasks that copy.")
    ] = "1",
    abort_on_send_failure: Annotated[
        str,
        typer.Option(
            "--abort.on.send.failure",
            metavar="true|false",
            help="If the target rejects a record: true fails its task, false skips the record.",
        ),
    ] = "true",
    offset_commit_interval_ms: Annotated[
        str,
        typer.Option(
            "--offset.commit.interval.ms",
            metavar="MS",
            help="How often to commit the group's offsets.",
        ),
    ] = "60000",
    message_handler: Annotated[
        Text, typer.Option("--message.handler", metavar="CLASS", help="Rejected, with the reason.")
    ] = None,
    message_handler_args: Annotated[
        Text, typer.Option("--message.handler.args", metavar="TEXT", help="Rejected too.")
    ] = None,
    rebalance_listener: Annotated[
        Text,
        typer.Option(
            "--consumer.rebalance.listener", metavar="CLASS", help="Rejected, with the reason."
        ),
    ] = None,
    rebalance_listener_args: Annotated[
        Text, typer.Option("--rebalance.listener.args", metavar="TEXT", help="Rejected too.")
    ] = None,
    new_consumer: Annotated[
        bool, typer.Option("--new.consumer", help="No effect, as in Kafka 2.0 and later.")
    ] = False,
    to_mm2: Annotated[
        bool,
        typer.Option("--to-mm2", help="Print an mm2.properties that copies the same, and exit."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --to-mm2: print JSON.")] = False,
    log_level: Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    log_format: LogFormatOption = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Replace MirrorMaker 1 (kafka-mirror-maker.sh), with its options and its two files.

    Starts where the consumer group (group.id of the consumer's file) stopped, and commits offsets
    that the target has confirmed to it, so MirrorMaker 1 can continue later. Runs until SIGTERM or
    Ctrl-C. Stop all MirrorMaker 1 processes of the group first: it does not start beside them.

    One difference: a record keeps its partition number, where MirrorMaker 1 places it by its key.
    With as many partitions on both clusters, keys that Java producers wrote stay where they are; a
    topic that has fewer partitions on the target is rejected.

    Exits with 0 if stopped with all offsets committed; 1 if MirrorMaker 1 runs, a cluster cannot be
    used or offsets are not committed; 2 if an option or a setting is wrong.
    """
    options = LegacyOptions(
        consumer_config=consumer_config,
        producer_config=producer_config,
        include=include,
        whitelist=whitelist,
        num_streams=num_streams,
        abort_on_send_failure=abort_on_send_failure,
        offset_commit_interval_ms=offset_commit_interval_ms,
        new_consumer=new_consumer,
        others={
            "--message.handler": message_handler,
            "--message.handler.args": message_handler_args,
            "--consumer.rebalance.listener": rebalance_listener,
            "--rebalance.listener.args": rebalance_listener_args,
        },
    )
    if not to_mm2:
        set_up_log(log_level, log_format)
    config = load_legacy(options)
    if to_mm2:
        _print(config, as_json)
    elif as_json:
        raise ConfigError("--json", None, "prints data of --to-mm2 only", "add --to-mm2")
    else:
        _mirror(config)


def _print(config: LegacyConfig, as_json: bool) -> None:
    if as_json:
        shown = {
            "settings": shown_settings(config),
            "notes": list(NOTES),
            "warnings": list(shown_warnings(config)),
        }
        echo(json.dumps(shown, indent=2))
        return
    echo(mm2_text(config))
    for warning in shown_warnings(config):
        echo(warning, err=True)


def _mirror(config: LegacyConfig) -> None:
    from sparkmirror.connect.legacy.legacy_mirror import LegacyMirror, identify

    java_program()  # checked now: Spark would fail without it only after topics are created
    stop = stop_on_signals()
    for warning in config.warnings:
        log.warning("%s", warning)
    asked = Background(lambda: identify(config))
    if not asked.wait(stop):
        return
    if not run_until(stop, LegacyMirror(config, asked.result)):
        raise typer.Exit(EXIT_UNCLEAN)
