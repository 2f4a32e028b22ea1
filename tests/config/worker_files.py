"""Worker files for tests."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.config.worker.worker_file import WorkerFile, parse_worker_file

PATH = Path("connect-distributed.properties")
SMALLEST = {
    "bootstrap.servers": "target-kafka:9092",
    "group.id": "connect-cluster",
    "offset.storage.topic": "connect-offsets",
    "config.storage.topic": "connect-configs",
    "status.storage.topic": "connect-status",
}


def worker_file(**settings: str) -> WorkerFile:
    """The smallest file, with `settings` (whose names have underscores for dots)."""
    return worker_with({key.replace("_", "."): value for key, value in settings.items()})


def worker_with(settings: dict[str, str]) -> WorkerFile:
    """The same for names that cannot be written so."""
    return parse_worker_file(SMALLEST | settings, PATH)
