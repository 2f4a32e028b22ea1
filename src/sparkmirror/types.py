"""Value types that every layer shares: no behaviour, no I/O."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic, on whichever cluster the context names."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class FlowName(NamedTuple):
    """A source cluster and the target cluster its topics are copied to."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


class ConnectorTaskId(NamedTuple):
    """One task of one connector."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"
