"""Which partitions there should be figures of: those that the config topic assigns to tasks.

Runs on: worker, any thread. What no worker tells of must not vanish from the sums: it is unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from sparkmirror.config.config_def import BadValue
from sparkmirror.connect.entities import RequestError, State, TargetState
from sparkmirror.connect.runtime.assigned_tasks import stored_tasks, target_state
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.task_configs import assigned_partitions
from sparkmirror.monitoring.clusters.flow_specs import FlowSpecs
from sparkmirror.types import TopicPartition

Shares = Sequence[Sequence[TopicPartition]]


class Expected:
    """Remembers what it has parsed: of thousands of partitions that takes a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shares: dict[tuple[str, str], tuple[Sequence[Mapping[str, str]], Shares]] = {}
        self._remotes: dict[tuple[str, str], dict[str, str]] = {}

    def shares(self, specs: FlowSpecs, name: str) -> Shares:
        """The partitions of each task of a source connector; empty for others."""
        group = specs.group
        tasks = stored_tasks(group.cluster.configs.snapshot(), name)
        key = group.prefix, name
        with self._lock:
            known = self._shares.get(key)
            if known is not None and known[0] == tasks:
                return known[1]
        found = [_parsed(task) for task in tasks]
        with self._lock:
            self._shares[key] = tasks, found
        return found

    def remote(self, specs: FlowSpecs, topic: str) -> str:
        """The name of the topic on the target; "" if no settings tell."""
        if specs.source is None:
            return ""
        with self._lock:
            names = self._remotes.setdefault((specs.group.prefix, specs.flow), {})
            if topic not in names:
                try:
                    policy = flow_policy(specs.source.config)
                    alias = specs.source.config.source_alias
                    names[topic] = policy.format_remote_topic(alias, topic)
                except (MirrorError, BadValue):
                    return ""
            return names[topic]


def _parsed(task: Mapping[str, str]) -> list[TopicPartition]:
    try:
        return assigned_partitions(task)
    except ValueError:  # of another version; its own worker names it
        return []


def task_places(specs: FlowSpecs, name: str) -> tuple[dict[int, str], str]:
    """The worker of each task by its status, and "paused" if the connector is, else ""."""
    wanted = target_state(specs.group.cluster.configs.snapshot(), name)
    rests = wanted in (TargetState.PAUSED, TargetState.STOPPED)
    try:
        status = specs.group.herder.connector_status(name)
    except RequestError:
        return {}, "paused" if rests else ""
    workers = {task.id: task.worker_id for task in status.tasks}
    rests = rests or status.state in (State.PAUSED, State.STOPPED)
    return workers, "paused" if rests else ""
