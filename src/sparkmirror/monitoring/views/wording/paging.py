"""What a request selects of many rows: a filter by name, a state, an order, a page.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import re2

from sparkmirror.errors import MirrorError

LONGEST_FILTER = 1000
MOST_ROWS = 2000
USUAL_ROWS = 200
T = TypeVar("T")


class BadQuery(MirrorError):
    """A parameter of a request cannot be used. Operator action: the message names what can."""


class NotThere(MirrorError):
    """There is no such flow, topic, group or connector. Operator action: check the name."""


@dataclass(frozen=True, slots=True)
class Query:
    """Parameters, as they were sent; "" where they were not."""

    flow: str = ""
    q: str = ""
    state: str = ""
    sort: str = ""
    direction: str = ""
    offset: int = 0
    limit: int = USUAL_ROWS


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """`total` before the filter, `matching` after it; `counts` per state of what matches `q`."""

    rows: Sequence[T]
    counts: Mapping[str, int]
    total: int
    matching: int
    offset: int
    limit: int


def name_filter(text: str) -> Callable[[str], bool]:
    """For names: a part of them in any case, or `/re/`. Raises BadQuery."""
    if len(text) > LONGEST_FILTER:
        raise BadQuery(f"the filter has {len(text):,} characters; {LONGEST_FILTER:,} are allowed")
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        try:
            pattern: Any = re2.compile(text[1:-1], options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            shown = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise BadQuery(f"the filter {text} is no pattern: {shown}") from error
        return lambda name: pattern.search(name) is not None
    wanted = text.lower()
    return lambda name: wanted in name.lower()


def choice(value: str, allowed: Sequence[str], what: str) -> str:
    """The value, or the first of those that are allowed. Raises BadQuery."""
    if not value:
        return allowed[0]
    if value not in allowed:
        raise BadQuery(f"{what}={value[:100]}: use one of {', '.join(allowed)}")
    return value


def page(rows: Sequence[T], query: Query, counts: Mapping[str, int], total: int) -> Page[T]:
    """The part of sorted rows that was asked for."""
    limit = min(query.limit, MOST_ROWS)
    part = rows[query.offset : query.offset + limit]
    return Page(part, counts, total, len(rows), query.offset, limit)
