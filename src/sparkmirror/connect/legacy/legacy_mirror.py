"""MirrorMaker 1's work: one flow that keeps topic names, and its consumer group on the source.

Runs on: worker. Unlike dedicated mode it has only the source connector: no heartbeats, checkpoints
or offset syncs, and none of their topics. Configurations and statuses are kept in memory instead of
topics, so of several processes with the same group one copies, and the others stand by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.legacy.mirror_maker_1 import LegacyConfig
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.config.mm2 import MirrorMakerConfig, PairConfig
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect.connector import ConnectorContext
from sparkmirror.connect.dedicated.mirror_herder import MirrorHerder
from sparkmirror.connect.dedicated.mirror_maker import MirrorMaker
from sparkmirror.connect.group.connect_protocol import Assignment, MemberState
from sparkmirror.connect.legacy.legacy_group import LegacyGroup
from sparkmirror.connect.runtime.cluster_worker import ClusterWorker, Role
from sparkmirror.connect.runtime.connector_factory import ConnectorFactory
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.connect.storage.backing_stores import ConfigBackingStore, StatusBackingStore
from sparkmirror.connect.storage.memory_stores import (
    MemoryConfigBackingStore,
    MemoryStatusBackingStore,
)
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.positions.group_positions import group_name
from sparkmirror.wire.admin.admin import Admin, open_admins

SOURCE = "MirrorSourceConnector"
MOST_REPLICAS = 3
# The first release that creates topics with its own default number of replicas (KIP-464).
DEFAULT_REPLICAS = (2, 4)
COMMIT_SECONDS = 5.0

MakeGroup = Callable[[MirrorSourceConnector], LegacyGroup]


class LegacySource(MirrorSourceConnector):
    """The source connector, which begins where the consumer group stopped."""

    def __init__(self, spec: ConnectorSpec[SourceConfig], make_group: MakeGroup) -> None:
        super().__init__(spec)
        self.group = make_group(self)

    @property
    def last_error(self) -> str:
        return super().last_error or self.group.last_error

    def connect(self) -> None:
        """Check both clusters and the group; changes nothing. Raises KafkaError."""
        if not self.is_connected:
            super().connect()
            self.group.connect()

    def start(self, context: ConnectorContext) -> None:
        """Take over the group's offsets before any task starts."""
        self.group.start()
        super().start(context)

    def stop(self) -> None:
        """Stop refreshing; the last commit follows when the tasks have ended."""
        super().stop()
        self.group.stop()


class LegacyFactory(ConnectorFactory):
    """Makes `LegacySource`s."""

    def __init__(self, file: WorkerFile, spark: Worker, make_group: MakeGroup) -> None:
        super().__init__(file, spark, lambda _: "", is_warned=True)
        self._make_group = make_group

    def make_source(self, spec: ConnectorSpec[SourceConfig]) -> MirrorSourceConnector:
        return LegacySource(spec, self._make_group)


class LegacyWorker(ClusterWorker):
    """A worker without config and status topics, so the leader runs all tasks."""

    def __init__(  # noqa: PLR0917
        self,
        pair: PairConfig,
        spark: Worker,
        own_url: str,
        worker_id: str,
        role: Role,
        config: LegacyConfig,
    ) -> None:
        self._config = config
        self.groups: list[LegacyGroup] = []
        super().__init__(pair.worker, spark, own_url, worker_id, role)

    def make_configs(self) -> ConfigBackingStore:
        return MemoryConfigBackingStore()

    def make_statuses(self) -> StatusBackingStore:
        return MemoryStatusBackingStore()

    def make_factory(self, spark: Worker) -> ConnectorFactory:
        return LegacyFactory(self.file, spark, self._make_group)

    def describe(self) -> MemberState:
        """Without a config offset: each worker counts records in its own memory."""
        return replace(super().describe(), config_offset=-1)

    def plan(self, members: Mapping[str, MemberState]) -> Mapping[str, Assignment]:
        own = self.member.own_url
        return super().plan(
            {
                name: state if state.url == own else replace(state, slots=0)
                for name, state in members.items()
            }
        )

    def _make_group(self, source: MirrorSourceConnector) -> LegacyGroup:
        config = self._config
        group = LegacyGroup(
            source.spec, lambda: source.assignment, config.group_id, config.commit_interval_ms
        )
        self.groups.append(group)
        return group


class LegacyHerder(MirrorHerder):
    """The one pair of a `LegacyMirror`."""

    follows = "stands by: {leader} copies this flow; this process takes over when it ends"

    def __init__(
        self, pair: PairConfig, spark: Worker, url: str, worker_id: str, config: LegacyConfig
    ) -> None:
        self._config = config
        super().__init__(
            replace(pair, connectors={SOURCE: pair.connectors[SOURCE]}), spark, url, worker_id
        )

    def make_worker(self, role: Role) -> LegacyWorker:
        self._legacy = LegacyWorker(self.pair, self._spark, *self._addresses, role, self._config)
        return self._legacy

    def look(self) -> None:
        """As in dedicated mode; also raises when MirrorMaker 1 has been started."""
        for group in self._legacy.groups:
            if group.failure is not None:
                raise group.failure
        super().look()
        if self.has_joined and not self.leads:
            self._spark.close_if_elsewhere()

    def stop(self, seconds: float) -> None:
        """Also commit the last positions for the group; only then is the end clean."""
        active = self._active_group()
        super().stop(seconds)
        for group in self._legacy.groups:
            if group is not active:
                group.disconnect()
        if active is not None:
            self.is_clean = active.join(COMMIT_SECONDS) and self.is_clean

    def _active_group(self) -> LegacyGroup | None:
        found = (each for each in self.connectors().values() if isinstance(each, LegacySource))
        return next((source.group for source in found), None)


class LegacyMirror(MirrorMaker):
    """The flow of one MirrorMaker 1."""

    def __init__(self, config: LegacyConfig, mirror: MirrorMakerConfig) -> None:
        """`mirror` is what `identify` made of `config`."""
        self._config = config
        super().__init__(mirror)

    def make_herder(self, pair: PairConfig, *, awaits_heartbeats: bool) -> MirrorHerder:
        del awaits_heartbeats
        return LegacyHerder(pair, self._spark, *self._addresses, self._config)


def identify(config: LegacyConfig) -> MirrorMakerConfig:
    """Complete the flow's settings with facts from both clusters; changes nothing.

    Raises:
        KafkaError: which clusters cannot be reached, and why; or both are the same.
    """
    (flow,) = config.mirror.flows
    admins: list[Admin] = []
    try:
        clients = [flow.source.source_client, flow.source.target_client]
        open_admins(Admin, clients, flow.source.admin_timeout_ms, admins)
        source, target = admins
        source_id = source.cluster_id()
        if source_id == target.cluster_id():
            raise KafkaError(
                "both files name the same cluster: topics keep their names, so every record would "
                "be copied back to its own topic, for ever; check bootstrap.servers"
            )
        replicas = min(MOST_REPLICAS, target.broker_count())
        name = group_name(config.group_id, source_id)
        return config.with_identity(name, replicas, has_default=target.release >= DEFAULT_REPLICAS)
    finally:
        for admin in admins:
            admin.close()
