"""A worker without Kafka that does as a test wants it, and the commands that are tried on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sparkmirror.cli import main as cli
from sparkmirror.config.validation.connector_validation import validate_connector
from sparkmirror.connect.entities import ConnectorInfo, ConnectorStatus, Json, RequestError, State
from tests.config.worker_files import worker_file
from tests.rest.fake_herder import FakeHerder

MIRROR = "org.apache.kafka.connect.mirror."
CLASSES = {"cpc": "Checkpoint", "hbc": "Heartbeat", "msc": "Source"}
WRITES = ("create", "put_config", "delete", "patch_config")


class Worker(FakeHerder):
    """Validates like a worker; rejects, fails and is busy as a test configures it."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, tuple[State, str]] = {}
        self.refused: dict[str, RequestError] = {}
        self.looks = -1  # how many times `states` are shown; below 0: always
        self.busy = 0
        self.without_tasks = False

    @property
    def writes(self) -> list[str]:
        return [name for name in self.asked if name in WRITES]

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> Json:
        return validate_connector(plugin, config, worker_file())

    def put_config(self, name: str, config: Mapping[str, str | None]) -> tuple[bool, ConnectorInfo]:
        if self.busy:
            self.busy -= 1
            raise RequestError(409, "Cannot complete request because of a rebalance")
        if name in self.refused:
            self.asked.append("put_config")
            raise self.refused[name]
        return super().put_config(name, config)

    def connector_status(self, name: str) -> ConnectorStatus:
        found = super().connector_status(name)
        state, trace = self._shown(name) or (found.state, "")
        tasks = () if self.without_tasks else found.tasks
        return replace(found, state=state, trace=trace, tasks=tasks)

    def _shown(self, name: str) -> tuple[State, str] | None:
        if name not in self.states or not self.looks:
            return None
        self.looks -= 1
        return self.states[name]


@dataclass
class Shell:
    """`sparkmirror VERB CLUSTER` against a worker, in a folder with the three files."""

    worker: Worker
    url: str
    folder: Path
    capture: pytest.CaptureFixture[str]
    out: str = field(default="", init=False)
    err: str = field(default="", init=False)

    def __call__(self, verb: str, *words: str, cluster: str = "eu") -> int | str | None:
        line = [verb, cluster, "--dir", str(self.folder), "--url", self.url, *words]
        with pytest.raises(SystemExit) as ended:
            cli.main(line)
        self.out, self.err = self.capture.readouterr()
        return ended.value.code

    def write(self, kind: str, **changes: object) -> Path:
        """A file with these settings instead (underscores for dots); None takes one away."""
        changed = settings(kind) | {k.replace("_", "."): v for k, v in changes.items()}
        kept = {key: value for key, value in changed.items() if value is not None}
        return self.write_text(kind, json.dumps(kept))

    def write_text(self, kind: str, text: str) -> Path:
        path = self.folder / f"mm2-{kind}-eu.json"
        path.write_text(text, "utf-8")
        return path


def settings(kind: str) -> dict[str, object]:
    shared = {
        "name": f"mm2-{kind}-eu",
        "connector.class": f"{MIRROR}Mirror{CLASSES[kind]}Connector",
        "source.cluster.alias": "eu",
        "target.cluster.alias": "centre",
        "source.cluster.bootstrap.servers": "source-kafka:9092",
        "target.cluster.bootstrap.servers": "target-kafka:9092",
    }
    source = {"topics": "test", "sync.topic.acls.enabled": False, "tasks.max": 2}
    return shared | (source if kind == "msc" else {})
