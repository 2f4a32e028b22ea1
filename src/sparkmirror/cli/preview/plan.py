"""`sparkmirror plan FILE`: what `run` would create and change, like a diff; nothing is written."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.cluster_words import ClustersCommand
from sparkmirror.cli.tables import echo
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError

EXIT_PROBLEMS = 1
EXIT_CHANGES = 2


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", cls=ClustersCommand)(plan)


def plan(
    file: Annotated[
        Path,
        typer.Argument(
            help="An mm2 file, a worker's file, or a connector's settings (JSON or properties).",
            metavar="FILE",
        ),
    ],
    clusters: Annotated[
        list[str] | None,
        typer.Option(
            "--clusters", metavar="ALIAS...", help="Only the flows into these clusters, as in run."
        ),
    ] = None,
    worker: Annotated[
        Path | None,
        typer.Option("--worker", metavar="FILE", help="The file of the connector's worker."),
    ] = None,
    detailed_exitcode: Annotated[
        bool,
        typer.Option(
            "--detailed-exitcode", help="Exit with 2 if there are changes, with 1 for any error."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what `run` would create and change on the clusters of FILE; write nothing.

    Topics, partitions, topic settings, ACLs, and the groups whose offsets would be written.
    Exits with 0; with 1 if a cluster cannot be reached or a change cannot be made.
    """
    from sparkmirror.tools.preview.planned_file import load_planned
    from sparkmirror.tools.preview.planning import plan_file

    logging.getLogger("sparkmirror").setLevel(logging.CRITICAL)  # the plan has all of it
    try:
        found = plan_file(load_planned(file, worker, tuple(clusters or ())))
    except (ConfigError, ConfigErrors) as error:
        if detailed_exitcode:  # 2 means changes
            raise MirrorError(str(error)) from error
        raise
    if as_json:
        echo(json.dumps(found.as_json(), indent=2))
    else:
        for line in found.lines():
            echo(line)
    if found.problems:
        raise typer.Exit(EXIT_PROBLEMS)
    raise typer.Exit(EXIT_CHANGES if detailed_exitcode and found.change_count else 0)
