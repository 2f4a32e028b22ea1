"""Shortens long lists of names for the log. Runs on: worker."""

from __future__ import annotations

from collections.abc import Iterable

MOST_NAMES = 10


def some_names(things: Iterable[object]) -> str:
    """The first ten in sorted order, and how many more there are."""
    names = [str(thing) for thing in sorted(things)]  # type: ignore[type-var]
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
