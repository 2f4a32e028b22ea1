"""Prints lines and tables on a terminal, without secrets."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from sparkmirror.config.log_lines import without_controls
from sparkmirror.config.masking import mask


def echo(text: str, *, err: bool = False) -> None:
    """Print text that may contain words from files, brokers or other sources."""
    typer.echo(without_controls(mask(text)), err=err)


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns as wide as needed; None is shown as a dash."""
    lines = [list(header), *(["-" if cell is None else str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        echo("  ".join(cells).rstrip())
