"""Something that a cluster was asked for: the last answer, its time, and why there is no newer one.

Runs on: worker. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
NOT_YET = "not asked yet"


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """`value` is None until there was an answer. `error`: why the last attempt failed, or "".

    `since_ms`: when it began to fail.
    """

    value: T | None = None
    at_ms: int | None = None
    error: str = NOT_YET
    since_ms: int | None = None

    @property
    def is_current(self) -> bool:
        """Whether the last attempt succeeded."""
        return not self.error

    @property
    def is_asked(self) -> bool:
        """Whether there was any attempt."""
        return self.error != NOT_YET

    def succeeded(self, value: T, now_ms: int) -> Known[T]:
        """With an answer."""
        return Known(value, now_ms, "")

    def failed(self, error: str, now_ms: int) -> Known[T]:
        """Without one: the last answer stays, for those who want it."""
        since = self.since_ms if self.error and self.error != NOT_YET else now_ms
        return Known(self.value, self.at_ms, error, since)
