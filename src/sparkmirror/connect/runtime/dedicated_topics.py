"""The config and status topics that MirrorMaker 2 has on the target in dedicated mode.

Runs on: worker, on a thread of its own. sparkmirror keeps nothing in them: they are there for those
who look for them, and with the settings that MirrorMaker 2 would give them, so that it can take
over again. Nothing waits for them, and what cannot be created is only told.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.scheduler import Scheduler
from sparkmirror.connect.storage.storage_topics import (
    ADMIN_TIMEOUT_MS,
    StorageTopic,
    bring_up_storage_topic,
    configs_topic,
    statuses_topic,
)
from sparkmirror.connect.warn_once import WarnOnce
from sparkmirror.errors import ConfigError, KafkaError
from sparkmirror.wire.admin.admin import Admin

AGAIN_SECONDS = 600.0
LAST_REQUEST_SECONDS = 0.5
NOT_NEEDED = "sparkmirror does not need it, so all else goes on"


class DedicatedTopics:
    """Creates what is missing of the topics of these workers, on the cluster of each."""

    name = "mm2-configs, mm2-status"
    # Never: nothing that sparkmirror does depends on them.
    last_error = ""

    def __init__(self, workers: Iterable[WorkerConfig]) -> None:
        # Several pairs may share a worker's cluster; of its two topics each is created once.
        self._workers = {(each.client.alias, each.config_storage_topic): each for each in workers}
        self._complaints = WarnOnce("dedicated mode")
        self._ticker = Scheduler("dedicated mode")
        self._ticker.repeat("creating mm2-configs and mm2-status", AGAIN_SECONDS, self.create)

    def connect(self) -> None:
        """Other connectors say of each of these clusters why it cannot be reached."""

    def disconnect(self) -> None:
        """Nothing was opened."""

    def start(self) -> None:
        """Begin to create."""
        self._ticker.start()

    def stop(self) -> None:
        """Begin nothing new."""
        self._ticker.stop()

    def join(self, seconds: float) -> bool:
        """Wait for a request under way, but not long: nothing is lost with it."""
        return self._ticker.join(min(seconds, LAST_REQUEST_SECONDS))

    def create(self) -> None:
        """One round: create what is missing, and say what cannot be."""
        wrong: dict[str, str] = {}
        for worker in self._workers.values():
            wrong |= _create(worker)
        self._complaints.report(wrong)


def _create(worker: WorkerConfig) -> dict[str, str]:
    """What is wrong, by topic."""
    topics = (configs_topic(worker), statuses_topic(worker))
    alias = worker.client.alias
    try:
        admin = Admin(worker.client, ADMIN_TIMEOUT_MS)
    except KafkaError as error:
        return {alias: f"'{topics[0].name}' and '{topics[1].name}': {error}; {NOT_NEEDED}"}
    try:
        found = {topic.name: _bring_up(admin, topic) for topic in topics}
    finally:
        admin.close()
    return {
        f"{alias} {name}": f"topic '{name}' of '{alias}': {why}; {NOT_NEEDED}"
        for name, why in found.items()
        if why
    }


def _bring_up(admin: Admin, topic: StorageTopic) -> str:
    """Why it cannot be had; empty if it is there."""
    try:
        bring_up_storage_topic(admin, topic)
    except (KafkaError, ConfigError) as error:
        return str(error)
    return ""
