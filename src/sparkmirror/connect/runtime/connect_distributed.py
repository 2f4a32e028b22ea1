"""Distributed mode: one worker of a Connect cluster, from its file to its end.

Runs on: worker. Mirrors: org.apache.kafka.connect.cli.ConnectDistributed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.connector_spec import ParsedConnector, parse_connector
from sparkmirror.config.keys.plugins import CONNECT_VERSION
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect.connector import Connector, Task, TaskConfigs
from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.connect.group.connect_protocol import Assignment, MemberState
from sparkmirror.connect.group.session_keys import SessionKeyRotation
from sparkmirror.connect.group.worker_group_member import WorkerGroupMember
from sparkmirror.connect.runtime.connector_factory import ConnectorFactory
from sparkmirror.connect.runtime.herder import DistributedHerder
from sparkmirror.connect.runtime.herder_loop import HerderLoop
from sparkmirror.connect.runtime.status_publisher import WorkerIdentity
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.start_checks import Partners
from sparkmirror.connect.storage.all_offsets import AllOffsets
from sparkmirror.connect.storage.backing_stores import Stores
from sparkmirror.connect.storage.config_backing_store import KafkaConfigBackingStore
from sparkmirror.connect.storage.status_backing_store import KafkaStatusBackingStore
from sparkmirror.connect.storage.storage_topics import (
    configs_topic,
    offsets_topic,
    prepare_storage_topic,
    statuses_topic,
)
from sparkmirror.connect.storage.stored_offsets import ConnectorOffsets
from sparkmirror.connect.thread_task import ThreadTask
from sparkmirror.errors import MirrorError
from sparkmirror.spark.link.lease import Lender, is_over
from sparkmirror.wire.admin.admin import Admin

log = logging.getLogger(__name__)

# Commit, drain and end: SIGTERM to exit takes less than ten seconds in all.
STOP_SECONDS = 8.0
ADMIN_TIMEOUT_MS = 60_000
KEY_CHECK_SECONDS = 0.5
KEY_SECONDS = 1.0


class ConnectDistributed:
    """Everything of a worker but its REST server, which asks `herder`.

    `own_url` is how other workers and users reach that server, http://host:port/.
    """

    def __init__(self, file: WorkerFile, own_url: str) -> None:
        """Create or check the offsets topic; `start` does all else.

        Raises:
            ConfigError: the offsets topic cannot be used.
            KafkaError: the worker's cluster cannot be reached.
        """
        worker, group = file.worker, file.group
        self._file = file
        self.membership = WorkerGroupMember(
            worker.client,
            group.group_id,
            session_timeout_ms=group.session_timeout_ms,
            heartbeat_interval_ms=group.heartbeat_interval_ms,
            rebalance_timeout_ms=group.rebalance_timeout_ms,
            own_url=own_url,
            describe=self._describe,
            plan=self._plan,
        )
        self.configs = KafkaConfigBackingStore(
            worker.client,
            configs_topic(worker),
            group_id=group.group_id,
            term=lambda: self.membership.term,
        )
        self._partners = Partners(self.configs, file)
        self.statuses = KafkaStatusBackingStore(worker.client, statuses_topic(worker))
        self._spark = Worker(file.spark)
        offsets = AllOffsets(worker, _offsets(file), self._parse)
        stores = Stores(self.configs, self.statuses, offsets, self.membership)
        self._connectors = ConnectorFactory(file, self._spark, self._partners.problem_of)
        self.crew = HerderLoop(
            stores,
            WorkerIdentity(urlsplit(own_url).netloc, CONNECT_VERSION),
            self,
            self._spark,
            worker.task_shutdown_graceful_timeout_ms / 1000,
        )
        rotation = SessionKeyRotation(file.inter_worker, self.configs, self.crew.leads)
        self._ticker = Scheduler("worker")
        self._ticker.repeat("renewing the session key", KEY_CHECK_SECONDS, rotation.renew)
        self.herder = DistributedHerder(file, stores, self.crew, _cluster_id(worker.client))

    def start(self) -> None:
        """Create and read the topics, then join the group; who leads it starts the connectors.

        Raises:
            ConfigError: a topic cannot be used.
            KafkaError: a topic can neither be created nor read.
        """
        self.configs.start()
        self.statuses.start()
        self.herder.start()
        self.membership.start()
        self.crew.start()
        self._ticker.start()

    def check_alive(self) -> None:
        """Raise MirrorError when this worker can do nothing any more: Spark is gone."""
        if self.crew.problem:
            raise MirrorError(self.crew.problem)

    def stop(self) -> bool:
        """End the connectors, say so, and leave the group; tells whether all ended in time."""
        deadline = time.monotonic() + STOP_SECONDS
        self._ticker.stop()
        has_ended = self.crew.stop(STOP_SECONDS)
        self._spark.close()
        self.statuses.stop()
        # A session key on its way is read back in a moment; if not, nobody needs it any more.
        self._ticker.join(KEY_SECONDS)
        self.configs.stop()
        # If tasks did not end in time, the others wait for the end of their lease.
        self.membership.stop()
        log.info("the worker has ended, %.1f s before its time", deadline - time.monotonic())
        return has_ended

    def _describe(self) -> MemberState:
        return self.crew.describe()

    def _plan(self, members: Mapping[str, MemberState]) -> Mapping[str, Assignment]:
        return self.crew.plan(members)

    def _parse(self, name: str) -> ParsedConnector | None:
        config = self.configs.snapshot().connectors.get(name)
        return None if config is None else parse_connector(config, self._file)

    # -- what the herder makes ---------------------------------------------------------------------

    def make_connector(self, props: ConnectorProps) -> Connector:
        """A connector that is not started yet."""
        return self._connectors.make_connector(props)

    def make_task(self, name: str, configs: TaskConfigs, lease: Lender) -> Task:
        """A task that is not started yet."""
        return ThreadTask(
            f"{name}-{min(configs)}",
            configs,
            lambda wanted: self._connectors.make_work(wanted, self.crew.refresh_soon, lease),
            lambda: not is_over(lease),
            self._file.worker.task_shutdown_graceful_timeout_ms / 1000,
        )


def _offsets(file: WorkerFile) -> ConnectorOffsets:
    worker = file.worker
    partitions = prepare_storage_topic(worker.client, offsets_topic(worker))
    return ConnectorOffsets(worker.client, worker.offset_storage_topic, partitions)


def _cluster_id(client: ClientConfig) -> str:
    admin = Admin(client, ADMIN_TIMEOUT_MS)
    try:
        return admin.cluster_id()
    finally:
        admin.close()
