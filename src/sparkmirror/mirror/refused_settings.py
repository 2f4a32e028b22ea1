"""Replaces settings of remote topics that the target does not know or does not accept.

Runs on: worker, when a topic is created and at each config sync. Pure. Releases differ: 4.0 removed
`message.downconversion.enable` (KIP-724) and raised the smallest `segment.bytes` (KIP-1030), and a
target that is older than the source lacks settings. A topic must be copied all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

# Brokers' messages, the same from 2.1 to 4.x.
UNKNOWN = re.compile(r"Unknown topic config name: ([\w.-]+)")
INVALID = re.compile(r"Invalid value .* for configuration ([\w.-]+): (.*)", re.DOTALL)
LIMIT = re.compile(r"Value must be (?:at least|no more than) (-?\d+)")
# Never omitted: without these the target could delete records that the source still has.
KEPT = frozenset({"cleanup.policy", "retention.ms", "retention.bytes"})


class Substitute(NamedTuple):
    """A rejected setting; `value` is what to set instead, None omits it.

    `is_unknown`: the target does not know the setting at all.
    """

    name: str
    refused: str
    value: str | None
    is_unknown: bool = False


def find_substitute(settings: Mapping[str, str], words: str) -> Substitute | None:
    """Find the rejected setting in a broker's error; None if there is no substitute."""
    if unknown := UNKNOWN.search(words):
        found = _substitute(settings, unknown[1], None)
        return found._replace(is_unknown=True) if found else None
    if invalid := INVALID.search(words):
        limit = LIMIT.search(invalid[2])
        return _substitute(settings, invalid[1], limit[1] if limit else None)
    return None


def _substitute(settings: Mapping[str, str], name: str, value: str | None) -> Substitute | None:
    refused = settings.get(name)
    if refused is None or refused == value or (value is None and name in KEPT):
        return None
    return Substitute(name, refused, value)
