"""The walks of ARCHITECTURE.md name modules and functions that exist."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[1] / "ARCHITECTURE.md"
# The hops of one walk: everything between two fences.
WALK = re.compile(r"^```walk\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# One module and the functions of it that follow each other.
HOP = re.compile(r"([a-z_0-9]+(?:/[a-z_0-9]+)*):(\w+(?:\u2192\w+)*)")
MOST_LINES = 150
MOST_COLUMNS = 120


def _hops() -> list[tuple[str, str]]:
    walks = WALK.findall(DOCUMENT.read_text("utf-8"))
    assert len(walks) == 3
    found = [
        (module, name)
        for walk in walks
        for module, names in HOP.findall(walk)
        for name in names.split("\u2192")
    ]
    # Every arrow leads to a name, and every line of a thread begins with one.
    arrows = sum(walk.count("\u2192") for walk in walks)
    threads = sum(walk.count("[") for walk in walks)
    assert len(found) == arrows + threads
    return sorted(set(found))


@pytest.mark.parametrize(("module", "name"), _hops())
def test_every_hop_exists(module: str, name: str) -> None:
    found = importlib.import_module(f"sparkmirror.{module.replace('/', '.')}")
    classes = [each for _, each in inspect.getmembers(found, inspect.isclass)]
    own = [each for each in classes if each.__module__ == found.__name__]
    assert any(name in vars(place) for place in (found, *own))


def test_the_page_stays_short() -> None:
    lines = DOCUMENT.read_text("utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    too_long = [line for line in lines if len(line) > MOST_COLUMNS and not line.startswith("|")]
    assert too_long == []
