"""What the work of checkpoint and heartbeat tasks has in common: one thread sends their records.

Runs on: worker. Such tasks are threads of this process; Spark has no part in them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from sparkmirror.connect.connector import TaskReport
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.states import TaskEvent
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.connect.storage.source_offsets import SourceOffsets


class ScheduledWork(ABC):
    """A part of `TaskWork`; `topic` gets the records that the scheduler's jobs send."""

    runner = None
    # All of it is in this process.
    is_released = True

    topic: str
    _scheduler: Scheduler
    _writer: RecordProducer
    _offsets: SourceOffsets
    # How many records were stored at the last call of `take_topics`.
    _records_seen = 0

    @property
    @abstractmethod
    def blocked(self) -> str:
        """Why it can send nothing; empty if only the network prevents it."""

    @property
    def records(self) -> int:
        """How many records were stored since the start."""
        return self._offsets.noted

    def look(self) -> None:  # noqa: B027  an empty part of the contract
        """Nothing to do: the scheduler's thread does all periodic work."""

    def restart(self) -> bool:
        """Restarting needs a new life."""
        return False

    def report(self) -> TaskReport:
        """FAILED as long as it cannot do its work."""
        if self.blocked:
            return TaskReport(TaskEvent.RAISED, self.blocked)
        return TaskReport(TaskEvent.CALLED_IN)

    def take_topics(self) -> set[str]:
        """`topic`, if records were stored since the last call (active topics, KIP-558)."""
        seen, self._records_seen = self._records_seen, self.records
        return {self.topic} if self.records > seen else set()

    def join(self, seconds: float) -> bool:
        """Wait until everything that was sent is stored; return whether it is."""
        deadline = time.monotonic() + seconds
        has_ended = self._scheduler.join(seconds)
        is_stored = has_ended and self._finish(deadline)
        self._writer.close()
        self._offsets.close()
        if has_ended:  # else its thread may still use the connections
            self.disconnect()
        return is_stored

    @abstractmethod
    def disconnect(self) -> None:
        """Close what `connect` opened."""

    def _finish(self, deadline: float) -> bool:
        """Store the offsets of the last records, as Connect does at a task's end."""
        if not self._writer.flush(max(0.0, deadline - time.monotonic())):
            return False
        self._commit()
        return self._offsets.flush(max(0.0, deadline - time.monotonic()))

    @abstractmethod
    def _commit(self) -> None:
        """Write the offsets of what was stored."""
