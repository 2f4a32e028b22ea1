"""Makes foreign text safe for a log: it can neither start a new line nor control a terminal.

Names of connectors and topics, request paths, broker messages and traces come from others. A line
break in one of them could imitate a log entry, an escape sequence could hide one.
"""

from __future__ import annotations

import re

CONTINUATION = "\n    "
# Control characters except tab and newline, other line breaks, and marks that reverse text.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def as_one_entry(text: str) -> str:
    """`text` as one entry: its further lines are indented, unlike the start of an entry."""
    return without_controls(text.replace("\r\n", "\n")).replace("\n", CONTINUATION)


def without_controls(text: str) -> str:
    """`text` with control characters spelled out; tabs and newlines stay."""
    return _UNSEEN.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
