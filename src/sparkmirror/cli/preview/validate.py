"""`sparkmirror validate FILE...`: everything that is wrong with files, with line numbers."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparkmirror.cli.tables import echo

if TYPE_CHECKING:
    from sparkmirror.tools.validate.validation import FileReport

EXIT_PROBLEMS = 2


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate")(validate)


def validate(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="mm2 files, workers' files, or connectors' settings (JSON or properties).",
            metavar="FILE...",
        ),
    ],
    worker: Annotated[
        Path | None,
        typer.Option("--worker", metavar="FILE", help="The file of the connectors' worker."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 2 for warnings, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Report all problems of FILE at once, with line numbers; connects to nothing.

    Errors keep `run` and `worker` from starting. Warnings are about what works otherwise than it
    looks: unknown and misplaced keys, which MirrorMaker 2 ignores silently, and settings without
    effect. Exits with 0 if there are no errors, else with 2.
    """
    from sparkmirror.tools.validate.validation import validate_file

    logging.getLogger("sparkmirror").setLevel(logging.CRITICAL)  # the report has all of it
    reports = [validate_file(file, worker) for file in files]
    if as_json:
        found = [report.as_json() for report in reports]
        echo(json.dumps(found[0] if len(found) == 1 else found, indent=2))
    else:
        for report in reports:
            _print(report)
    is_ok = all(report.is_ok(strict=strict) for report in reports)
    raise typer.Exit(0 if is_ok else EXIT_PROBLEMS)


def _print(report: FileReport) -> None:
    for each in report.problems:
        place = f"{report.path}:{each.line}" if each.line else str(report.path)
        echo(f"{place}: {each.severity.value}: {each.text}")
    echo(f"{report.path} ({report.kind}): {_summary(report)}")


def _summary(report: FileReport) -> str:
    from sparkmirror.tools.validate.validation import Severity

    errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
    if not errors and not warnings:
        return "no problems"
    counts = [
        f"{count} {word if count == 1 else f'{word}s'}"
        for count, word in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return " and ".join(counts)
