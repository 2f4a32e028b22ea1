"""What fifty moves cost, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.tables import render_table
from tests.failover.groups import Move

HEAD_LINE = ["groups in", "engine", "read again", "missed", "groups that read again", "no offset"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums over moves; `without_offset` counts partitions in which a group has none."""

    groups: int
    again: int
    missed: int
    groups_again: int
    without_offset: int

    @classmethod
    def of(cls, moves: Iterable[Move]) -> Figures:
        """Add up."""
        found = list(moves)
        return cls(
            len({move.group for move in found}),
            sum(move.again for move in found),
            sum(move.missed for move in found),
            len({move.group for move in found if move.again}),
            sum(not move.has_offset for move in found),
        )


def render_figures(rows: Iterable[tuple[str, str, Sequence[Move]]]) -> str:
    """A Markdown table of (topic, engine, moves)."""
    return render_table(HEAD_LINE, [_cells(*row) for row in rows])


def _cells(topic: str, engine: str, moves: Sequence[Move]) -> list[str]:
    sums = Figures.of(moves)
    again = f"{sums.groups_again} of {sums.groups}"
    places = f"{sums.without_offset} of {len(moves)}"
    return [topic, engine, f"{sums.again:,}", f"{sums.missed:,}", again, places]
