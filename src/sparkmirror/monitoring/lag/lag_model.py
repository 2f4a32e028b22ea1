"""The lag of all partitions that this process copies, and (on a leader) of those that wait.

Runs on: worker; for any thread. Figures of running tasks come with their reports, once a second.
Of tasks that do not run, a thread of its own reads stored positions and asks the source.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.monitoring.lag.flow_lag import FlowLag
from sparkmirror.monitoring.lag.partition_lag import PartitionLag
from sparkmirror.monitoring.monitored import Monitored


class LagModel:
    """`start` once, before the others; `stop` at the end."""

    def __init__(self, monitored: Monitored) -> None:
        self._monitored = monitored

    def start(self) -> None:
        """Begin to look at rates, retention, and at partitions of tasks that do not run."""

    def stop(self) -> None:
        """End that."""

    def partitions(self) -> Sequence[PartitionLag]:
        """All of them, by connector, topic and partition."""
        return ()

    def flows(self) -> Sequence[FlowLag]:
        """Every source connector of which this process knows partitions."""
        return ()
