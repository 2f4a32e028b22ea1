"""`sparkmirror groups`: offsets of consumer groups on the target, for migration and failover."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Protocol

import typer

from sparkmirror.cli.tables import echo, print_table
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.checkpoint.offset_translator import make_translator
from sparkmirror.connect.storage.log_reader import LogReader
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.checkpoints import CheckpointRules
from sparkmirror.mirror.filters import make_topic_filter
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.tools.groups.offset_sync import GroupTool, SyncOutcome, SyncRow, SyncSettings
from sparkmirror.tools.groups.offset_translation import (
    CATCH_UP_SECONDS,
    How,
    TranslatedRow,
    translate_group,
)
from sparkmirror.tools.groups.options import (
    SyncOptions,
    choose_checkpoints,
    read_sync_options,
)
from sparkmirror.types import FlowName
from sparkmirror.wire.admin.group_admin import GroupAdmin

EXIT_INCOMPLETE = 1
SYNC_HEADER = ("GROUP", "TOPIC", "PARTITION", "SOURCE", "BEFORE", "OFFSET", "RESULT")
TRANSLATE_HEADER = (
    "TOPIC",
    "PARTITION",
    "SOURCE",
    "TARGET TOPIC",
    "TARGET",
    "TRANSLATION",
    "READ AGAIN",
    "COMMITTED",
)
NO_TOPIC = (
    "--topic has no effect, as in the sample application: the offsets of all topics of the groups "
    "are synced"
)
HELP_NAMES = {"help_option_names": ["--help", "-h"]}

# The second long name and the short one of an option are those of the sample application that
# migration guides run beside MirrorMaker 2.
Properties = Annotated[
    Path,
    typer.Option(
        "--properties",
        "--propertiesFilePath",
        "-pfp",
        metavar="FILE",
        help="A client's properties file for the target cluster, or an mm2 file.",
    ),
]
Mm2File = Annotated[
    Path,
    typer.Option(
        "--properties",
        "--propertiesFilePath",
        "-pfp",
        metavar="FILE",
        help="The mm2 file of the mirror, or the settings of its checkpoint connector.",
    ),
]
Source = Annotated[
    str | None,
    typer.Option("--source", "--sourceCluster", "-src", help="Alias of the source cluster."),
]
TargetOption = Annotated[
    str | None,
    typer.Option(help="Alias of the target cluster, if an mm2 file has several."),
]
GroupsOption = Annotated[
    str,
    typer.Option(
        "--groups",
        "--consumerGroupID",
        "-cgi",
        metavar="LIST",
        help="Groups to sync: names or regular expressions, separated by commas.",
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        "--replicationPolicyClass",
        "-rpc",
        metavar="CLASS",
        help="Default, Identity, or a class, as in the mirror's settings.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        "--replicationPolicySeparator",
        "-rps",
        help="replication.policy.separator, as in the mirror's settings.",
    ),
]
RunFor = Annotated[
    float,
    typer.Option(
        "--run-for", "--runFor", "-rf", min=0.0, help="Seconds to run; 0: without a limit."
    ),
]
Tls = Annotated[
    bool,
    typer.Option(
        "--tls/", "--sslEnable/", "-ssl/", help="security.protocol=SSL for a client's file."
    ),
]
MutualTls = Annotated[
    bool,
    typer.Option(
        "--mutual-tls/",
        "--mTLSEnable/",
        "-mtls/",
        help="The same, with a client certificate from the file's key store.",
    ),
]
Topic = Annotated[
    str | None,
    typer.Option("--topic", "-t", help="No effect: all topics of the groups are synced."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one document per line.")]

groups_app = typer.Typer(
    name="groups",
    help="Move consumer group offsets to the target cluster.",
    no_args_is_help=True,
    context_settings=HELP_NAMES,
)


def register(app: typer.Typer) -> None:
    """Add `groups` to the command tree."""
    app.add_typer(groups_app)


@groups_app.command(context_settings=HELP_NAMES)
def sync(
    *,
    properties: Properties,
    groups: GroupsOption = ".*",
    source: Source = None,
    target: TargetOption = None,
    policy: Policy = None,
    separator: Separator = None,
    interval: Annotated[
        float, typer.Option("--interval", "-int", min=0.1, help="Seconds between two rounds.")
    ] = 5.0,
    run_for: RunFor = 0.0,
    tls: Tls = False,
    mutual_tls: MutualTls = False,
    topic: Topic = None,
    once: Annotated[bool, typer.Option("--once", help="Run one round and exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Run one round that writes nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Commit the checkpoints of a mirror as group offsets on the target, until stopped.

    Writes only groups without members, and never an earlier offset. Exits with 1 if the last round
    could not write something.
    """
    options = SyncOptions(
        groups, properties, source, target, policy, separator, tls=tls, mutual_tls=mutual_tls
    )
    settings = read_sync_options(options)
    if topic is not None:
        echo(f"sparkmirror: {NO_TOPIC}", err=True)
    with _connected(settings) as tool:
        if once or dry_run:
            complete = _show_round(tool.round(dry_run=dry_run), as_json)
        else:
            complete = repeat(tool, interval, _stop_after(run_for), as_json)
    raise typer.Exit(0 if complete else EXIT_INCOMPLETE)


@groups_app.command(context_settings=HELP_NAMES)
def translate(
    *,
    properties: Mm2File,
    group: Annotated[str, typer.Option("--group", help="Name of the group on the source.")],
    source: Source = None,
    target: TargetOption = None,
    worker: Annotated[
        Path | None,
        typer.Option("--worker", metavar="FILE", help="The file of the connector's worker."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show where a group would continue on the target, and what it would read again.

    Changes nothing. Exits with 1 if an offset cannot be translated.
    """
    config = choose_checkpoints(properties, source, target, worker)
    rows = _translate(config, group)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row.as_json()))
    else:
        print_table(TRANSLATE_HEADER, [_translate_cells(row) for row in rows])
        typer.echo(_translate_summary(config, group, rows))
    complete = all(row.target_offset is not None for row in rows)
    raise typer.Exit(0 if complete else EXIT_INCOMPLETE)


class Rounds(Protocol):
    """The part of a `GroupTool` that `repeat` needs."""

    def round(self) -> list[SyncRow]:
        """Read and write once."""


@contextmanager
def _connected(settings: SyncSettings) -> Iterator[GroupTool]:
    with (
        closing(GroupAdmin(settings.admin, settings.admin_timeout_ms)) as admin,
        closing(LogReader(settings.reader, settings.checkpoints_topic)) as reader,
    ):
        yield GroupTool(settings, admin, reader)


def repeat(tool: Rounds, interval: float, stop: threading.Event, as_json: bool) -> bool:
    """Run rounds until `stop`; returns whether the last one wrote everything."""
    known: Sequence[SyncRow] | str | None = None
    complete = False
    while not stop.is_set():
        try:
            rows = tool.round()
        except KafkaError as error:
            complete = False
            if known != str(error):
                echo(f"sparkmirror: {error}; retrying", err=True)
            known = str(error)
        else:
            complete = _is_complete(rows)
            failed = [row for row in rows if row.outcome is SyncOutcome.NOT_WRITTEN]
            has_written = any(row.outcome is SyncOutcome.WRITTEN for row in rows)
            if as_json or has_written or failed != known:
                _show_round(rows, as_json)
            known = failed
        stop.wait(interval)
    return complete


def _is_complete(rows: Sequence[SyncRow]) -> bool:
    return all(row.outcome is not SyncOutcome.NOT_WRITTEN for row in rows)


def _show_round(rows: Sequence[SyncRow], as_json: bool) -> bool:
    complete = _is_complete(rows)
    if as_json:
        found = [row.as_json() for row in rows]
        typer.echo(json.dumps({"complete": complete, "offsets": found}))
        return complete
    if rows:
        print_table(SYNC_HEADER, [_sync_cells(row) for row in rows])
    counts = {outcome: sum(row.outcome is outcome for row in rows) for outcome in SyncOutcome}
    shown = [f"{count} {outcome.value}" for outcome, count in counts.items() if count]
    groups = len({row.group for row in rows})
    typer.echo(f"{time.strftime('%H:%M:%S')} {_count(groups, 'group')}: {', '.join(shown) or '-'}")
    return complete


def _sync_cells(row: SyncRow) -> tuple[object, ...]:
    topic, partition = row.tp or (None, None)
    result = f"{row.outcome.value}: {row.reason}" if row.reason else row.outcome.value
    return row.group, topic, partition, row.upstream_offset, row.before, row.offset, result


def _translate(config: CheckpointConfig, group: str) -> list[TranslatedRow]:
    policy = flow_policy(config)
    rules = CheckpointRules(
        policy, make_topic_filter(config), config.source_alias, config.target_alias
    )
    timeout_ms = config.admin_timeout_ms
    with (
        closing(GroupAdmin(config.source_client, timeout_ms)) as source,
        closing(GroupAdmin(config.target_client, timeout_ms)) as target,
        closing(make_translator(config, policy, must_read_to_end=False)) as translator,
    ):
        translator.catch_up(CATCH_UP_SECONDS)
        return translate_group(group, rules, translator, source, target)


def _translate_cells(row: TranslatedRow) -> tuple[object, ...]:
    how = f"{row.how.value}: {row.reason}" if row.reason else row.how.value
    return (
        *row.upstream,
        row.source_offset,
        row.downstream.topic if row.downstream else None,
        row.target_offset,
        how,
        row.read_again,
        row.committed,
    )


def _translate_summary(config: CheckpointConfig, group: str, rows: Sequence[TranslatedRow]) -> str:
    exact = sum(row.how is How.EXACT for row in rows)
    again = sum(row.read_again or 0 for row in rows)
    flow = FlowName(config.source_alias, config.target_alias)
    return (
        f"group '{group}', {flow}: {_count(len(rows), 'partition')}, {exact} exact; a consumer "
        f"that continues there reads at most {_count(again, 'record')} again"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _stop_after(seconds: float) -> threading.Event:
    """An event that a signal sets, or the end of this time; 0: no limit."""
    stop = _stop_on_signals()
    if seconds > 0:
        timer = threading.Timer(seconds, stop.set)
        timer.daemon = True
        timer.start()
    return stop


def _stop_on_signals() -> threading.Event:
    """The first SIGTERM or Ctrl-C ends after the current round, the second at once."""
    stop = threading.Event()

    def on_signal(_: int, __: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
