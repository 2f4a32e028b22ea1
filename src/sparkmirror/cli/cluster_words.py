"""`--clusters A B`: one option with several words, as in connect-mirror-maker.sh.

Mirrors: the argument parser of org.apache.kafka.connect.mirror.MirrorMaker. Click supports
options with one word only, so the words become `--clusters A --clusters B` before it parses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

OPTION = "--clusters"


class ClustersCommand(TyperCommand):
    """A command whose `--clusters` takes one or more words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Called by Click with the command line."""
        return super().parse_args(ctx, spread_clusters(args))


def spread_clusters(words: Sequence[str]) -> list[str]:
    """The same words with the option before each cluster.

    The last word is FILE, not a cluster, if a file of that name exists and no other word names one.
    """
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word != OPTION:
            found.append(word)
            continue
        named = _take_words(rest)
        file = [named.pop()] if _is_file_last(found, named, rest) else []
        for alias in named or [""]:
            found += [OPTION, alias] if alias else [OPTION]
        found += file
    return found


def _take_words(rest: list[str]) -> list[str]:
    """Remove the words up to the next option from `rest`, and return them."""
    taken = []
    while rest and not rest[0].startswith("-"):
        taken.append(rest.pop(0))
    return taken


def _is_file_last(before: Sequence[str], named: Sequence[str], after: Sequence[str]) -> bool:
    has_file = any(_is_path(word) for word in (*before, *after))
    return len(named) > 1 and not has_file and _is_path(named[-1])


def _is_path(word: str) -> bool:
    return Path(word).is_file()
