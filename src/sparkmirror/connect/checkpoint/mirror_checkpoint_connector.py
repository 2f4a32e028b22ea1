"""Creates the checkpoints topic, and decides which task follows which groups of the source.

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

# What a look at the source's groups may take, for a user who waits for it.
REFRESH_SECONDS = 55.0


class MirrorCheckpointConnector:
    """Looks for groups again and again, and says when they are others."""

    task_class = "MirrorCheckpointTask"

    def __init__(self, spec: ConnectorSpec[CheckpointConfig]) -> None:
        self._config = spec.config
        self._flow = spec.flow
        self.notice = spec.elsewhere
        self._groups = GroupDiscovery(spec.flow, spec.config, make_topic_filter(spec.config))
        self._ticker = Scheduler(f"{spec.flow}|{spec.name} groups")
        self._admins: list[GroupAdmin] = []
        self._job: Job | None = None
        self._has_topic = False

    @property
    def last_error(self) -> str:
        """Why the groups are not known."""
        return self._ticker.last_error

    def connect(self) -> None:
        """Open the admin connections; nothing is changed anywhere.

        Raises:
            KafkaError: says of both clusters, if need be, why they cannot be reached.
        """
        if self._config.is_on and not self._admins:
            clients = [self._config.source_client, self._config.target_client]
            open_admins(GroupAdmin, clients, self._config.admin_timeout_ms, self._admins)
            self._admins = [forwarded(admin, self._config) for admin in self._admins]

    def start(self, context: ConnectorContext) -> None:
        """Create the topic and look for groups at once, and then at every interval."""
        if not self._config.is_on:
            if not self._config.has_syncs:
                log.info("[%s] no checkpoints: emit.offset-syncs.enabled=false", self._flow)
            context.request_task_reconfiguration()
            return

        def look() -> None:
            self._groups.refresh(self._admins[0])
            context.request_task_reconfiguration()

        self._ticker.repeat("creating the checkpoints topic", PREPARE_SECONDS, self._create_topic)
        self._job = self._ticker.repeat(
            "refreshing groups",
            self._config.refresh_groups_interval_seconds,
            look,
            enabled=self._config.refresh_groups_enabled,
        )
        self._ticker.run_soon(self._job)
        self._ticker.start()

    def _create_topic(self) -> None:
        """Also for a flow without groups, as in MirrorMaker 2; later the tasks look after it."""
        if not self._has_topic:
            create_checkpoints_topic(self._admins[1], self._config, is_missing=False)
            self._has_topic = True

    def refresh(self) -> str:
        """Look for groups now; what failed."""
        return "" if self._job is None else self._ticker.run_and_wait(self._job, REFRESH_SECONDS)

    def refresh_soon(self, topics: Sequence[str]) -> None:
        """The tasks create their topics again by themselves."""

    def task_configs(self) -> list[TaskSettings] | None:
        """In equal shares."""
        if not self._config.is_on:
            return []
        if not self._groups.is_known:
            return None
        return checkpoint_tasks(sorted(self._groups.names), self._config.tasks_max)

    def stop(self) -> None:
        """Look no more."""
        self._ticker.stop()

    def join(self, seconds: float) -> bool:
        """Wait for the look that is under way."""
        has_ended = self._ticker.join(seconds)
        if has_ended:  # its thread may be using the connection otherwise
            for admin in self._admins:
                admin.close()
        return has_ended
