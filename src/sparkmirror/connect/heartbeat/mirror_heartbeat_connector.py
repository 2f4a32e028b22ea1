"""Configures the heartbeats of a pair of clusters: one task, or none if they are disabled.

Runs on: worker, the leader. The task does all the work.
Mirrors: org.apache.kafka.connect.mirror.MirrorHeartbeatConnector.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.mirror_configs import HeartbeatConfig
from sparkmirror.connect.connector import ConnectorContext
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import emits
from sparkmirror.mirror.task_configs import TaskSettings


class MirrorHeartbeatConnector:
    """Has no periodic work, and so no thread."""

    task_class = "MirrorHeartbeatTask"
    last_error = ""

    def __init__(self, spec: ConnectorSpec[HeartbeatConfig]) -> None:
        self._config = spec.config
        self.notice = spec.elsewhere

    def connect(self) -> None:
        """The task connects, and reports its errors."""

    def start(self, context: ConnectorContext) -> None:
        context.request_task_reconfiguration()

    def refresh(self) -> str:
        return ""

    def refresh_soon(self, topics: Sequence[str]) -> None:
        """The task recreates its topics itself."""

    def task_configs(self) -> list[TaskSettings]:
        return [{}] if emits(self._config) else []

    def stop(self) -> None:
        """Nothing runs."""

    def join(self, seconds: float) -> bool:
        return seconds >= 0
