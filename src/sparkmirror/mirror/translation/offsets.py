"""Value types for offsets of copied records, without behaviour. Runs on: worker and executor."""

from __future__ import annotations

from typing import NamedTuple

"""(first upstream offset, count) of the records of a batch, where they have gaps."""


class OffsetPair(NamedTuple):
    """One place, on the source and on the target."""

    upstream: int
    downstream: int
