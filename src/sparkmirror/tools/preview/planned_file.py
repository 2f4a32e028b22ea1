"""The file of `sparkmirror plan`: an mm2 file, a connector's settings, or a worker's file.

Runs on: any machine. All three become workers with their connectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sparkmirror.config.connector_spec import AnySpec, parse_connector
from sparkmirror.config.expansion import CLUSTERS
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.keys.plugins import CONNECTOR_CLASS
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.worker.worker_file import load_worker
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.storage.storage_topics import (
    StorageTopic,
    configs_topic,
    offsets_topic,
    statuses_topic,
)
from sparkmirror.errors import ConfigError
from sparkmirror.tools.check.checked_file import NO_WORKER, assumed_worker, load_json_settings

OWN_TOPICS = (configs_topic, statuses_topic)


@dataclass(frozen=True, slots=True)
class PlannedWorker:
    """A worker and the connectors that it runs; `topics`: which storage topics it creates."""

    worker: WorkerConfig
    topics: Sequence[Callable[[WorkerConfig], StorageTopic]]
    connectors: Sequence[AnySpec] = ()


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """What a file describes; `flows` copy."""

    path: Path
    flows: tuple[str, ...]
    workers: tuple[PlannedWorker, ...]
    warnings: tuple[str, ...] = ()


def load_planned(
    path: Path, worker: Path | None = None, clusters: Sequence[str] = ()
) -> PlannedFile:
    """Read a file of any of the three kinds; with `clusters`, only the flows into one of them.

    `worker` is the file of a connector's worker.

    Raises:
        ConfigErrors, ConfigError: everything that is wrong with it.
    """
    props = load_json_settings(path) if path.suffix == ".json" else load_properties(path)
    if CONNECTOR_CLASS in props:
        own = load_worker(worker) if worker else assumed_worker(props)
        spec = parse_connector(props, own)
        if worker:
            planned = PlannedWorker(own.worker, OWN_TOPICS, (spec,))
            return PlannedFile(path, (str(spec.flow),), (planned,), spec.warnings)
        # The worker's topics are unknown.
        nameless = replace(own.worker, offset_storage_topic="")
        planned = PlannedWorker(nameless, (), (replace(spec, worker=nameless),))
        return PlannedFile(path, (str(spec.flow),), (planned,), (NO_WORKER, *spec.warnings))
    if worker is not None:
        reason = "only a connector's settings need a worker's file"
        raise ConfigError("--worker", worker, reason, "remove the option")
    if CLUSTERS in props:
        return _of_mm2(path, clusters)
    file = load_worker(path)
    planned = PlannedWorker(file.worker, (*OWN_TOPICS, offsets_topic))
    return PlannedFile(path, (), (planned,), file.warnings)


def _of_mm2(path: Path, clusters: Sequence[str]) -> PlannedFile:
    file = load_mm2(path, clusters)
    flows = {flow.name: flow for flow in file.flows}
    beating = {spec.flow: spec for spec in file.heartbeats}
    workers = []
    for pair in file.pairs:
        specs: list[AnySpec] = []
        if pair.name in beating:
            specs.append(beating[pair.name])
        if pair.name in flows:
            flow = flows[pair.name]
            specs += [flow.spec(flow.checkpoint), flow.spec(flow.source)]
        workers.append(PlannedWorker(pair.worker.worker, OWN_TOPICS, tuple(specs)))
    return PlannedFile(path, tuple(map(str, flows)), tuple(workers), file.warnings)
