"""Key stores, keytabs and the like on their way to tasks: executors have none of them.

Runs on: worker (`SecretFileSender`) and executor (`provide_files`). They travel over the control
link, in the task's start message and again when they change, and stay in memory over there.
"""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Hashable, Iterable

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.wire import secret_files
from sparkmirror.wire.security import Security

log = logging.getLogger(__name__)

# The type of the message that brings files to a running task, and their key in the start message.
FILES = "files"


def clients_of_tasks(connector: SourceConfig, worker: WorkerConfig) -> tuple[ClientConfig, ...]:
    """The clients of a copy task."""
    return (
        connector.consumer.client,
        connector.producer.client,
        connector.offset_syncs_producer.client,
        worker.producer.client,
    )


class SecretFileSender:
    """The files that the tasks of one flow need; for any thread."""

    def __init__(self, clients: Iterable[ClientConfig]) -> None:
        self._clients = tuple(clients)
        self._lock = threading.Lock()
        self._stamps: dict[str, Hashable] = {}

    def all(self) -> LinkMessage:
        """Every file there is, for the start message."""
        paths = self._paths()
        with self._lock:
            for path in paths:
                self._stamps.setdefault(path, secret_files.stamp(path))
        return {FILES: self._encode(paths)}

    def take_changed(self) -> LinkMessage | None:
        """The message for running tasks; None when nothing has changed since the last call."""
        with self._lock:
            stamps = {path: secret_files.stamp(path) for path in self._paths()}
            changed = [path for path in stamps if self._stamps.get(path) != stamps[path]]
            files = self._encode(changed)
            self._stamps |= {path: stamps[path] for path in files}
        return {"type": FILES, FILES: files} if files else None

    def _paths(self) -> list[str]:
        return sorted({path for client in self._clients for path in Security.of(client).files()})

    @staticmethod
    def _encode(paths: Iterable[str]) -> dict[str, str]:
        files = {}
        for path in paths:
            try:
                files[path] = base64.b64encode(secret_files.read_file(path)).decode()
            except OSError as error:
                # The next call sends a file that is being replaced; a missing one fails the login.
                log.debug("%s is not sent: %s", path, error)
        return files


def provide_files(message: LinkMessage) -> None:
    """The task's side: these take the place of what is on its disk."""
    for path, data in message.get(FILES, {}).items():
        secret_files.provide(path, base64.b64decode(data))
