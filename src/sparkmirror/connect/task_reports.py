"""How tasks that are threads of this process say how they are. Runs on: worker. Pure."""

from __future__ import annotations

from sparkmirror.connect.connector import TaskReport
from sparkmirror.connect.states import TaskEvent


def report_of(blocked: str) -> TaskReport:
    """It runs, unless something keeps it from its work."""
    return TaskReport(TaskEvent.RAISED, blocked) if blocked else TaskReport(TaskEvent.CALLED_IN)


class WrittenTopic:
    """Whether a topic was written since the last look."""

    def __init__(self) -> None:
        self._seen = 0

    def take(self, topic: str, records: int) -> set[str]:
        """`topic`, if there are more `records` than last time."""
        seen, self._seen = self._seen, records
        return {topic} if records > seen else set()
