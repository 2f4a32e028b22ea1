"""One worker of one group: its membership, the topics that all workers share, and what it runs.

Runs on: worker. A Connect worker has one. A process of dedicated mode has one for each
source->target pair, as in MirrorMaker 2, and all of them use one Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparkmirror.config.connector_spec import AnySpec, parse_connector
from sparkmirror.config.keys.plugins import CONNECT_VERSION
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect.connector import Connector, Task, TaskConfigs
from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.connect.group.connect_protocol import Assignment, MemberState
from sparkmirror.connect.group.worker_group_member import (
    OCCUPIED,
    PROTOCOL,
    STOP_SECONDS,
    WorkerGroupMember,
)
from sparkmirror.connect.runtime.connector_factory import ConnectorFactory
from sparkmirror.connect.runtime.herder_loop import HerderLoop
from sparkmirror.connect.runtime.status_publisher import WorkerIdentity
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.start_checks import Partners
from sparkmirror.connect.start_counts import StartCounts
from sparkmirror.connect.storage.all_offsets import AllOffsets
from sparkmirror.connect.storage.backing_stores import (
    ConfigBackingStore,
    StatusBackingStore,
    Stores,
)
from sparkmirror.connect.storage.config_backing_store import KafkaConfigBackingStore
from sparkmirror.connect.storage.status_backing_store import (
    FLUSH_SECONDS,
    KafkaStatusBackingStore,
)
from sparkmirror.connect.storage.storage_topics import configs_topic, statuses_topic
from sparkmirror.connect.thread_task import ThreadTask
from sparkmirror.logs.places import place_of
from sparkmirror.mirror.permissions import READ, Feature, ResourceKind, consequence_without
from sparkmirror.spark.link.lease import Lender, is_over


@dataclass(frozen=True, slots=True)
class Role:
    """What differs between a Connect worker and one of dedicated mode.

    Only members with the same `protocol` share a group; `occupied` explains why this worker was
    rejected. `feature` and `group`: what a denied request was for. `flow`: the worker's name in the
    log, if the process has several. `file`: the connectors that the leader writes to the config
    topic; None: users send them. `release_spark`: see `HerderLoop`. `awaits_heartbeats`: see
    `MirrorSourceConnector`.
    """

    protocol: str = PROTOCOL
    occupied: str = OCCUPIED
    feature: Feature = Feature.WORKER
    group: ResourceKind = ResourceKind.MEMBERS
    flow: str = ""
    file: Mapping[str, ConnectorProps] | None = None
    release_spark: Callable[[], object] | None = None
    awaits_heartbeats: bool = False


class ClusterWorker:
    """`own_url` identifies this worker to the others, `worker_id` in statuses."""

    def __init__(
        self,
        file: WorkerFile,
        spark: Worker,
        own_url: str,
        worker_id: str,
        role: Role | None = None,
    ) -> None:
        role = role or Role()
        worker, group = file.worker, file.group
        self.file = file
        self.spark, self.worker_id = spark, worker_id
        self.task_starts = StartCounts()
        self._role = role
        self._stop_seconds = worker.task_shutdown_graceful_timeout_ms / 1000
        self.configs = self.make_configs()
        self.member = WorkerGroupMember(
            worker.client,
            group.group_id,
            session_timeout_ms=group.session_timeout_ms,
            heartbeat_interval_ms=group.heartbeat_interval_ms,
            rebalance_timeout_ms=group.rebalance_timeout_ms,
            own_url=own_url,
            protocol=role.protocol,
            occupied=role.occupied,
            denied=consequence_without(role.feature, role.group, READ),
            describe=self.describe,
            plan=self.plan,
            has_claim=self.configs.is_still_claimed,
        )
        self.statuses = self.make_statuses()
        self.offsets = AllOffsets(worker, self._parse)
        self.stores = Stores(self.configs, self.statuses, self.offsets, self.member)
        self.connectors = self.make_factory(spark)
        self.loop = HerderLoop(
            self.stores,
            WorkerIdentity(worker_id, CONNECT_VERSION),
            self,
            spark,
            self._stop_seconds,
            flow=role.flow,
            file=role.file,
            release_spark=role.release_spark,
        )

    # -- parts: `legacy` has others ----------------------------------------------------------------

    def make_configs(self) -> ConfigBackingStore:
        """The store of connector and task configurations."""
        return KafkaConfigBackingStore(
            self.file.worker.client,
            configs_topic(self.file.worker),
            group_id=self.file.worker.group_id,
            term=lambda: self.member.term,
            feature=self._role.feature,
        )

    def make_statuses(self) -> StatusBackingStore:
        """The store of connector and task states."""
        return KafkaStatusBackingStore(
            self.file.worker.client, statuses_topic(self.file.worker), self._role.feature
        )

    def make_factory(self, spark: Worker) -> ConnectorFactory:
        """Makes connectors and the work of tasks."""
        problem_of = Partners(self.configs, self.file).problem_of
        return ConnectorFactory(
            self.file,
            spark,
            problem_of,
            awaits_heartbeats=self._role.awaits_heartbeats,
            is_warned=self._role.file is not None,
        )

    # -- lifecycle ---------------------------------------------------------------------------------

    def open(self) -> None:
        """Create or check the config and status topics, and read them.

        Raises:
            ConfigError: a topic cannot be used.
            KafkaError: a topic can neither be created nor read.
        """
        self.configs.start()
        self.statuses.start()

    def close(self, leave_seconds: float = STOP_SECONDS) -> None:
        """Leave the group and stop following the topics; `loop` must have stopped.

        If tasks did not end in time, the other workers wait until their lease ends.
        """
        self.statuses.stop(min(leave_seconds, FLUSH_SECONDS))
        self.configs.stop()
        self.member.stop(leave_seconds)

    # -- the group, on its member's thread ---------------------------------------------------------

    def describe(self) -> MemberState:
        """What the leader must know about this worker."""
        return self.loop.describe()

    def plan(self, members: Mapping[str, MemberState]) -> Mapping[str, Assignment]:
        """As the leader: what each member must run."""
        return self.loop.plan(members)

    def _parse(self, name: str) -> AnySpec | None:
        config = self.configs.snapshot().connectors.get(name)
        return None if config is None else parse_connector(config, self.file)

    # -- what the herder makes ---------------------------------------------------------------------

    def make_connector(self, props: ConnectorProps) -> Connector:
        """A connector that has not started, possibly one that is connected already."""
        return self.connectors.make_connector(props)

    def make_task(self, name: str, configs: TaskConfigs, lease: Lender) -> Task:
        """A task that has not started."""
        flow = f"{self._role.flow}|" if self._role.flow else ""
        return ThreadTask(
            f"{flow}{name}-{min(configs)}",
            configs,
            lambda wanted: self.connectors.make_work(wanted, self.loop.refresh_soon, lease),
            lambda: not is_over(lease),
            self._stop_seconds,
            place=place_of(name, configs[min(configs)], min(configs)),
            starts=self.task_starts,
        )
