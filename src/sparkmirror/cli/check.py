"""`sparkmirror check FILE`: can every cluster be reached, and may we do what FILE asks for?"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.tables import echo, print_table
from sparkmirror.tools.check.check_report import (
    CheckResult,
    ClusterReport,
    Report,
    RightReport,
    describe_names,
)

EXIT_MISSING = 1
CLUSTER_HEADER = ("CHECK", "RESULT", "DETAIL")
RIGHT_HEADER = ("FOR", "CLUSTER", "RIGHT", "ON", "RESULT")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


def check(
    file: Annotated[
        Path,
        typer.Argument(
            help="An mm2 file, a worker's file, or a connector's settings (JSON or properties).",
            metavar="FILE",
        ),
    ],
    worker: Annotated[
        Path | None,
        typer.Option("--worker", metavar="FILE", help="The file of the connector's worker."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Connect to every cluster of FILE and tell what works: network, TLS, login, each right.

    Changes nothing anywhere. Ends with 0 when all that FILE asks for is possible; 1 when a cluster
    cannot be reached or a right is missing; 2 when FILE is wrong.
    """
    from sparkmirror.tools.check.checked_file import load_checked
    from sparkmirror.tools.check.cluster_check import check_file

    # What is found goes into the report.
    logging.getLogger("sparkmirror").setLevel(logging.CRITICAL)
    report = check_file(load_checked(file, worker), str(file))
    if as_json:
        echo(json.dumps(report.as_json(), indent=2))
    else:
        _print(report)
    raise typer.Exit(0 if report.is_ok else EXIT_MISSING)


def _print(report: Report) -> None:
    for warning in report.warnings:
        echo(f"warning: {warning}", err=True)
    for cluster in report.clusters:
        _print_cluster(cluster)
    if asked := [right for right in report.rights if not right.is_unasked]:
        print_table(RIGHT_HEADER, [_cells(right) for right in asked])
        echo("")
    unasked = Counter(right.alias for right in report.rights if right.is_unasked)
    for alias, count in unasked.items():
        echo(f"cluster '{alias}' cannot be asked about {count} rights: no connection\n")
    missing = [right for right in report.rights if right.denied and not right.is_ok]
    for right in missing:
        _print_missing(right)
    for problem in report.problems:
        echo(f"{problem}\n")
    echo(_summary(report))


def _print_cluster(cluster: ClusterReport) -> None:
    echo(f"cluster '{cluster.alias}' ({','.join(cluster.servers)}) as {cluster.principal}")
    rows = [(each.what, each.state.value, each.detail or None) for each in cluster.checks]
    print_table(CLUSTER_HEADER, rows)
    echo("")


def _cells(right: RightReport) -> Sequence[object]:
    feature = f"{right.flow}: {right.need.feature.value}"
    result = f"{right.state.value}: {right.detail}" if right.detail else right.state.value
    if right.denied and len(right.denied) < len(right.rights):
        result = f"{result} (of {describe_names(right.denied)})"
    on = describe_names(right.rights)
    return feature, right.alias, right.need.operation.name, on, result


def _print_missing(right: RightReport) -> None:
    what = f"{right.need.operation.name} on {describe_names(right.denied)}"
    echo(
        f"{right.principal} lacks {what} of cluster '{right.alias}', needed for: "
        f"{right.need.feature.value} ({right.need.why}). Without it: {right.need.without}."
    )
    for grant in right.grants:
        echo(f"  {grant}")
    if right.grants and len(right.grants) < len(right.denied):
        echo(f"  ... and so on for {len(right.denied) - len(right.grants)} more")
    echo("")


def _summary(report: Report) -> str:
    states = [right.state for right in report.rights]
    unreachable = [cluster.alias for cluster in report.clusters if not cluster.is_ok]
    words = [
        f"{len(report.clusters)} logins, {len(unreachable)} with problems",
        f"{len(states)} rights asked for, {states.count(CheckResult.NO)} missing",
        f"{states.count(CheckResult.WITHOUT)} missing that may be done without",
    ]
    if unknown := states.count(CheckResult.UNKNOWN):
        words.append(f"{unknown} unknown")
    if report.problems:
        words.append(f"settings that cannot work: {len(report.problems)}")
    verdict = "not all is well"
    if report.is_ok:
        verdict = "nothing is known to be missing" if unknown else "all is well"
    return f"{report.file} ({report.kind}): {verdict}; {'; '.join(words)}"
