"""What there is to monitor in this process: a worker's group, or the pairs of dedicated mode.

Runs on: worker. Types only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparkmirror.connect.runtime.cluster_worker import ClusterWorker
from sparkmirror.connect.runtime.herder import DistributedHerder


@dataclass(frozen=True, slots=True)
class MonitoredGroup:
    """A group of workers and this process's place in it.

    `prefix` is where its REST API begins: "" of a Connect worker, "/a/b" of a pair of an mm2 file.
    """

    prefix: str
    cluster: ClusterWorker
    herder: DistributedHerder


Monitored = Callable[[], Sequence[MonitoredGroup]]
"""The groups of this process; asked again each time, because a pair may get a new herder."""
