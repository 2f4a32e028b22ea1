"""Distributed mode: one worker of a Connect cluster, from its file to its end.

Runs on: worker. Mirrors: org.apache.kafka.connect.cli.ConnectDistributed.
"""

from __future__ import annotations

import logging
import time
from urllib.parse import urlsplit

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect.group.session_keys import SessionKeyRotation
from sparkmirror.connect.runtime.cluster_worker import ClusterWorker
from sparkmirror.connect.runtime.herder import DistributedHerder
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.errors import MirrorError
from sparkmirror.wire.admin.admin import Admin

log = logging.getLogger(__name__)

# To commit, drain and stop: from SIGTERM to exit takes less than ten seconds in all.
STOP_SECONDS = 8.0
ADMIN_TIMEOUT_MS = 60_000
KEY_CHECK_SECONDS = 0.5
KEY_SECONDS = 1.0


class ConnectDistributed:
    """Everything of a worker except its REST server, which calls `herder`.

    `own_url`: the address of that server for other workers and users, http://host:port/.
    """

    def __init__(self, file: WorkerFile, own_url: str) -> None:
        """Create or check the offsets topic; `start` does everything else.

        Raises:
            ConfigError: the offsets topic cannot be used.
            KafkaError: the worker's cluster cannot be reached.
        """
        self._spark = Worker(file.spark)
        self.cluster = ClusterWorker(file, self._spark, own_url, urlsplit(own_url).netloc)
        self.cluster.offsets.prepare()
        rotation = SessionKeyRotation(
            file.inter_worker, self.cluster.configs, self.cluster.loop.leads
        )
        self._scheduler = Scheduler("worker")
        self._scheduler.repeat("renewing the session key", KEY_CHECK_SECONDS, rotation.renew)
        self.herder = DistributedHerder(
            file, self.cluster.stores, self.cluster.loop, _cluster_id(file.worker.client)
        )

    def start(self) -> None:
        """Create and read the topics, then join the group; its leader starts the connectors.

        Raises:
            ConfigError: a topic cannot be used.
            KafkaError: a topic can neither be created nor read.
        """
        self.cluster.open()
        self.herder.start()
        self.cluster.member.start()
        self.cluster.loop.start()
        self._scheduler.start()

    def check_alive(self) -> None:
        """Raise MirrorError if this worker can no longer run tasks: Spark is gone."""
        if self.cluster.loop.problem:
            raise MirrorError(self.cluster.loop.problem)

    def stop(self) -> bool:
        """Stop connectors and tasks, and leave the group; return whether all was stored."""
        deadline = time.monotonic() + STOP_SECONDS
        self._scheduler.stop()
        is_clean = self.cluster.loop.stop(STOP_SECONDS)
        self._spark.close()
        # A session key that is being written takes a moment; after that, nothing needs it.
        self._scheduler.join(KEY_SECONDS)
        self.cluster.close()
        log.info("the worker has ended, %.1f s before its time", deadline - time.monotonic())
        return is_clean


def _cluster_id(client: ClientConfig) -> str:
    admin = Admin(client, ADMIN_TIMEOUT_MS)
    try:
        return admin.cluster_id()
    finally:
        admin.close()
