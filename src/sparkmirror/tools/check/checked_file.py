"""The file of `sparkmirror check`: an mm2 file, a worker's file, or a connector's settings.

Runs on: any machine. All three become connectors, each with its worker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparkmirror.config.clients import BOOTSTRAP_SERVERS, CLUSTER_KEYS
from sparkmirror.config.connector_spec import AnySpec, ConnectorConfig, parse_connector
from sparkmirror.config.expansion import CLUSTERS
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.keys.plugins import CONNECTOR_CLASS
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.worker.worker_file import WorkerFile, load_worker, parse_worker_file
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.start_checks import POLICY_KEY, policy_problem
from sparkmirror.errors import ConfigError, MirrorError
from sparkmirror.foreign_json import read_json_object
from sparkmirror.types import FlowName

TARGET_CLUSTER = "target.cluster."
NO_WORKER = (
    "no worker's file was given: assuming a worker on the target cluster with the login for the "
    "target; name the real one with --worker"
)
# Placeholders for the group and topics of an unknown worker.
SOME_WORKER = {
    "group.id": "connect-cluster",
    "offset.storage.topic": "connect-offsets",
    "config.storage.topic": "connect-configs",
    "status.storage.topic": "connect-status",
}


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """`worker` is set when its own permissions are to be checked too.

    `groups` are the flows whose processes coordinate through a group.
    """

    kind: str
    connectors: tuple[AnySpec, ...]
    worker: WorkerConfig | None = None
    warnings: tuple[str, ...] = ()
    groups: tuple[tuple[FlowName, WorkerConfig], ...] = ()
    # Settings that cannot work on any cluster.
    problems: tuple[str, ...] = ()


def load_checked(path: Path, worker: Path | None = None) -> CheckedFile:
    """Read a file of any of the three kinds; `worker` is the file of a connector's worker.

    Raises:
        ConfigErrors, ConfigError: everything that is wrong with the file.
    """
    props = load_json_settings(path) if path.suffix == ".json" else load_properties(path)
    if CONNECTOR_CLASS in props:
        return _of_connector(props, worker, path)
    if worker is not None:
        reason = "only a connector's settings need a worker's file"
        raise ConfigError("--worker", worker, reason, "remove the option")
    if CLUSTERS in props:
        return _of_mm2(path)
    return _of_worker(load_worker(path))


def _of_mm2(path: Path) -> CheckedFile:
    file = load_mm2(path)
    found: list[AnySpec] = []
    for flow in file.flows:
        found += [flow.spec(flow.source), flow.spec(flow.checkpoint)]
    found += file.heartbeats
    groups = {pair.name: pair.worker.worker for pair in file.pairs}
    return CheckedFile("mm2 file", tuple(found), None, file.warnings, tuple(groups.items()))


def _of_worker(file: WorkerFile) -> CheckedFile:
    return CheckedFile("worker file", (), file.worker, file.warnings)


def _of_connector(
    props: Mapping[str, str | None], worker_path: Path | None, path: Path
) -> CheckedFile:
    if worker_path is not None:
        worker, own = load_worker(worker_path), True
    else:
        worker, own = assumed_worker(props), False
    connector = parse_connector(props, worker)
    warnings = connector.warnings if own else (NO_WORKER, *connector.warnings)
    problem = policy_problem(connector.config, connectors_beside(path, worker))
    problems = (f"{POLICY_KEY}: {problem}",) if problem else ()
    if own:
        return CheckedFile("connector", (connector,), worker.worker, warnings, problems=problems)
    # The worker's topic is unknown, so it cannot be checked.
    nameless = replace(connector.worker, offset_storage_topic="")
    return CheckedFile(
        "connector", (replace(connector, worker=nameless),), None, warnings, problems=problems
    )


def connectors_beside(path: Path, worker: WorkerFile) -> Iterator[ConnectorConfig]:
    """The connectors in the same folder, where `deploy` expects them."""
    for other in sorted(path.parent.glob("*.json")):
        if other == path:
            continue
        with suppress(MirrorError):
            yield parse_connector(load_json_settings(other), worker).config


def assumed_worker(props: Mapping[str, str | None]) -> WorkerFile:
    """A worker on the target cluster, as most users have it."""
    own = {
        name: value
        for name in CLUSTER_KEYS
        if (value := props.get(f"{TARGET_CLUSTER}{name}")) is not None
    }
    as_producer = {f"producer.{name}": value for name, value in own.items()}
    policy = {"connector.client.config.override.policy": "All"}
    settings = {BOOTSTRAP_SERVERS: "", **SOME_WORKER, **own, **as_producer, **policy}
    return parse_worker_file(settings, Path("the worker"))


def load_json_settings(path: Path) -> dict[str, str | None]:
    """The settings, also from the body of a POST /connectors."""
    _, members = read_json_object(path)
    if isinstance(members.get("config"), dict):
        members = {"name": members.get("name"), **members["config"]}
    if CONNECTOR_CLASS not in members:
        remedy = "name an mm2 file, a worker's file or a connector's settings"
        raise ConfigError(CONNECTOR_CLASS, None, "is missing", remedy, str(path))
    return {key: _text(value) for key, value in members.items()}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
