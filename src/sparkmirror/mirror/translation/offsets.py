"""Value types for offsets of copied records, without behaviour. Runs on: worker and executor."""

from __future__ import annotations

from typing import NamedTuple


class OffsetPair(NamedTuple):
    """The offsets of one record, on the source and on the target."""

    upstream: int
    downstream: int
