"""What genuine MirrorMaker 2 exports, as far as names, types and labels go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).parent / "strimzi_rules.txt"


@dataclass(frozen=True, slots=True)
class Fact:
    """One metric; `labels` has the label names of its series, of all kinds of series."""

    name: str
    type: str
    labels: frozenset[frozenset[str]]


def _read() -> Mapping[str, Fact]:
    facts = {}
    for line in _FILE.read_text("ascii").splitlines():
        if line.startswith("#"):
            continue
        name, kind, sets = line.split(" ", 2)
        labels = (each.split(",") if each != "-" else () for each in sets.split(" | "))
        facts[name] = Fact(name, kind, frozenset(map(frozenset, labels)))
    return facts


FACTS = _read()
