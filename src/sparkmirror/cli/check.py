"""`sparkmirror check FILE`: whether clusters are reachable and grant what FILE needs."""

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
    PermissionReport,
    Report,
    describe_names,
)

EXIT_MISSING = 1
CLUSTER_HEADER = ("CHECK", "RESULT", "DETAIL")
PERMISSION_HEADER = ("FOR", "CLUSTER", "PERMISSION", "ON", "RESULT")


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
    """Connect to every cluster of FILE and report what works: network, TLS, login, permissions.

    Changes nothing. Exits with 0 if everything that FILE asks for is possible; 1 if a cluster
    cannot be reached or a permission is missing; 2 if FILE is wrong.
    """
    from sparkmirror.tools.check.checked_file import load_checked
    from sparkmirror.tools.check.cluster_check import check_file

    # The report contains all findings.
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
    if checked := [row for row in report.permissions if not row.is_unchecked]:
        print_table(PERMISSION_HEADER, [_cells(row) for row in checked])
        echo("")
    unchecked = Counter(row.alias for row in report.permissions if row.is_unchecked)
    for alias, count in unchecked.items():
        echo(f"{count} permissions on cluster '{alias}' were not checked: no connection\n")
    missing = [row for row in report.permissions if row.denied and not row.is_ok]
    for row in missing:
        _print_missing(row)
    for problem in report.problems:
        echo(f"{problem}\n")
    echo(_summary(report))


def _print_cluster(cluster: ClusterReport) -> None:
    echo(f"cluster '{cluster.alias}' ({','.join(cluster.servers)}) as {cluster.principal}")
    rows = [(each.what, each.state.value, each.detail or None) for each in cluster.checks]
    print_table(CLUSTER_HEADER, rows)
    echo("")


def _cells(row: PermissionReport) -> Sequence[object]:
    feature = f"{row.flow}: {row.need.feature.value}"
    result = f"{row.state.value}: {row.detail}" if row.detail else row.state.value
    if row.denied and len(row.denied) < len(row.permissions):
        result = f"{result} (of {describe_names(row.denied)})"
    on = describe_names(row.permissions)
    return feature, row.alias, row.need.operation.name, on, result


def _print_missing(row: PermissionReport) -> None:
    what = f"{row.need.operation.name} on {describe_names(row.denied)}"
    echo(
        f"{row.principal} lacks {what} of cluster '{row.alias}', needed for: "
        f"{row.need.feature.value} ({row.need.why}). Without it: {row.need.without}."
    )
    for grant in row.grants:
        echo(f"  {grant}")
    if row.grants and len(row.grants) < len(row.denied):
        echo(f"  ... and so on for {len(row.denied) - len(row.grants)} more")
    echo("")


def _summary(report: Report) -> str:
    states = [row.state for row in report.permissions]
    unreachable = [cluster.alias for cluster in report.clusters if not cluster.is_ok]
    words = [
        f"{len(report.clusters)} logins, {len(unreachable)} with problems",
        f"{len(states)} permissions asked for, {states.count(CheckResult.NO)} missing",
        f"{states.count(CheckResult.WITHOUT)} missing but not required",
    ]
    if unknown := states.count(CheckResult.UNKNOWN):
        words.append(f"{unknown} unknown")
    if report.problems:
        words.append(f"settings that cannot work: {len(report.problems)}")
    verdict = "problems found"
    if report.is_ok:
        verdict = "no known permission is missing" if unknown else "all is well"
    return f"{report.file} ({report.kind}): {verdict}; {'; '.join(words)}"
