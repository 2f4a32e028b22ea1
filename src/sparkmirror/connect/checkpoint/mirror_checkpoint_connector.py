"""Creates the checkpoints topic, and assigns the source's groups to tasks.

Runs on: worker, the leader, one thread per flow. The tasks read and write checkpoints.
Mirrors: org.apache.kafka.connect.mirror.MirrorCheckpointConnector.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.checkpoint.group_discovery import GroupDiscovery
from sparkmirror.connect.checkpoint.mirror_checkpoint_task import PREPARE_SECONDS
from sparkmirror.connect.checkpoint.topic_creation import create_checkpoints_topic
from sparkmirror.connect.connector import ConnectorContext
from sparkmirror.connect.forwarded_admin import forwarded
from sparkmirror.connect.scheduler import Job, Scheduler
from sparkmirror.mirror.filters import make_topic_filter
from sparkmirror.mirror.task_configs import TaskSettings, checkpoint_tasks
from sparkmirror.wire.admin.admin import open_admins
from sparkmirror.wire.admin.group_admin import GroupAdmin

log = logging.getLogger(__name__)

# How long a user's request waits for a refresh of the source's groups.
REFRESH_SECONDS = 55.0


class MirrorCheckpointConnector:
    """Looks for groups periodically, and reconfigures the tasks when they change."""

    task_class = "MirrorCheckpointTask"

    def __init__(self, spec: ConnectorSpec[CheckpointConfig]) -> None:
        self._config = spec.config
        self._flow = spec.flow
        self.notice = spec.elsewhere
        self._groups = GroupDiscovery(spec.flow, spec.config, make_topic_filter(spec.config))
        self._scheduler = Scheduler(f"{spec.flow}|{spec.name} groups")
        self._admins: list[GroupAdmin] = []
        self._job: Job | None = None
        self._has_topic = False

    @property
    def last_error(self) -> str:
        """Why the last refresh of groups failed, or the creation of the topic."""
        return self._scheduler.last_error

    def connect(self) -> None:
        """Open the admin connections; changes nothing.

        Raises:
            KafkaError: which clusters cannot be reached, and why.
        """
        if self._config.is_on and not self._admins:
            clients = [self._config.source_client, self._config.target_client]
            open_admins(GroupAdmin, clients, self._config.admin_timeout_ms, self._admins)
            self._admins = [forwarded(admin, self._config) for admin in self._admins]

    def start(self, context: ConnectorContext) -> None:
        """Create the topic and look for groups now, then at every interval."""
        if not self._config.is_on:
            if not self._config.has_syncs:
                log.info("[%s] no checkpoints: emit.offset-syncs.enabled=false", self._flow)
            context.request_task_reconfiguration()
            return

        def look() -> None:
            self._groups.refresh(self._admins[0])
            context.request_task_reconfiguration()

        self._scheduler.repeat(
            "creating the checkpoints topic", PREPARE_SECONDS, self._create_topic
        )
        self._job = self._scheduler.repeat(
            "refreshing groups",
            self._config.refresh_groups_interval_seconds,
            look,
            enabled=self._config.refresh_groups_enabled,
        )
        self._scheduler.run_soon(self._job)
        self._scheduler.start()

    def _create_topic(self) -> None:
        """Also for a flow without groups, as MirrorMaker 2 does; later the tasks recreate it."""
        if not self._has_topic:
            create_checkpoints_topic(self._admins[1], self._config, is_missing=False)
            self._has_topic = True

    def refresh(self) -> str:
        """Look for groups now; return what failed."""
        return "" if self._job is None else self._scheduler.run_and_wait(self._job, REFRESH_SECONDS)

    def refresh_soon(self, topics: Sequence[str]) -> None:
        """The tasks recreate their topics themselves."""

    def task_configs(self) -> list[TaskSettings] | None:
        """The groups, divided equally among the tasks."""
        if not self._config.is_on:
            return []
        if not self._groups.is_known:
            return None
        return checkpoint_tasks(sorted(self._groups.names), self._config.tasks_max)

    def stop(self) -> None:
        """Stop looking for groups."""
        self._scheduler.stop()

    def join(self, seconds: float) -> bool:
        """Wait for the refresh in progress."""
        has_ended = self._scheduler.join(seconds)
        if has_ended:  # its thread may be using the connection otherwise
            for admin in self._admins:
                admin.close()
        return has_ended
