"""How tasks that are threads of this process report their condition. Runs on: worker. Pure."""

from __future__ import annotations

from sparkmirror.connect.connector import TaskReport
from sparkmirror.connect.states import TaskEvent


def report_of(blocked: str) -> TaskReport:
    """Running, or failed if `blocked` names a reason."""
    return TaskReport(TaskEvent.RAISED, blocked) if blocked else TaskReport(TaskEvent.CALLED_IN)


class WrittenTopic:
    """Remembers whether a topic was written since the last call (active topics, KIP-558)."""

    def __init__(self) -> None:
        self._seen = 0

    def take(self, topic: str, records: int) -> set[str]:
        """`topic`, if there are more `records` than last time."""
        seen, self._seen = self._seen, records
        return {topic} if records > seen else set()
