"""python -m tests.failover: the table of docs/failover.md, measured anew."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from sparkmirror.demo.mirror_process import ENGINES
from tests.failover.figures import render_figures
from tests.failover.groups import Move
from tests.failover.worlds import ROWS, Worlds, mirrored_worlds


def main() -> None:
    """Run both engines on the same input; the table goes to stdout."""
    with (
        tempfile.TemporaryDirectory(prefix="sparkmirror-failover-") as folder,
        mirrored_worlds(Path(folder)) as worlds,
    ):
        sys.stdout.write(render_figures(_rows(worlds)) + "\n")


def _rows(worlds: Worlds) -> list[tuple[str, str, list[Move]]]:
    selections = {f"{row.name}: {row.shows}": {row.name} for row in ROWS}
    selections["all of them"] = {row.name for row in ROWS}
    return [
        (
            shown,
            ENGINES[engine].title,
            [move for move in world.moves if move.tp.topic in topics],
        )
        for shown, topics in selections.items()
        for engine, world in worlds.targets.items()
    ]


if __name__ == "__main__":
    main()
