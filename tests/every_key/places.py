"""Where users write keys: in which file, under which prefix, and what that file becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sparkmirror.config.config_def import Definition
from sparkmirror.config.keys.client_keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from sparkmirror.config.keys.connector_keys import (
    CHECKPOINT_KEYS,
    COMMON_KEYS,
    FRAMEWORK_KEYS,
    HEARTBEAT_KEYS,
    SOURCE_KEYS,
)
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.config.mm2 import MirrorMakerConfig, load_mm2
from sparkmirror.config.mm2_keys import MM2_KEYS
from sparkmirror.config.worker.worker_file import WORKER_FILE_KEYS, WorkerFile, parse_worker_file
from sparkmirror.config.worker_config import WORKER_KEYS
from tests.config.worker_files import PATH, SMALLEST
from tests.every_key.proofs import PROOFS

MM2 = {
    "clusters": "a, b",
    "a.bootstrap.servers": "h:1",
    "b.bootstrap.servers": "h:2",
    "a->b.enabled": "true",
    "b->a.emit.heartbeats.enabled": "false",
}
Load = Callable[[Mapping[str, str], Path], Any]


class Where(NamedTuple):
    """Keys, how they are written in a file, and how that file is read.

    `root` is the part of the typed settings that the acting code has; empty: any.
    """

    title: str
    keys: Definition
    prefix: str
    load: Load
    root: str = ""


def mm2(props: Mapping[str, str], folder: Path) -> MirrorMakerConfig:
    path = folder / "mm2.properties"
    path.write_text("\n".join(f"{key} = {value}" for key, value in (MM2 | dict(props)).items()))
    return load_mm2(path)


def worker_file(props: Mapping[str, str], folder: Path) -> WorkerFile:
    del folder
    return parse_worker_file(SMALLEST | dict(props), PATH)


def _others(keys: Definition) -> Definition:
    """Without those that have proofs of their own, and security keys, which have other tests."""
    return Definition(
        *(key for key in keys if key.name not in SECURITY_KEYS and key.name not in PROOFS)
    )


PLACES = (
    Where("mm2", _others(MM2_KEYS), "", mm2),
    Where("connectors", _others(COMMON_KEYS + FRAMEWORK_KEYS), "a->b.", mm2),
    Where("source", SOURCE_KEYS, "a->b.", mm2, "source"),
    Where("checkpoint", CHECKPOINT_KEYS, "a->b.", mm2, "checkpoint"),
    Where("heartbeat", HEARTBEAT_KEYS, "a->b.", mm2, "heartbeat"),
    Where("flow's worker", WORKER_KEYS, "b.", mm2, "worker"),
    Where("consumer", _others(CONSUMER_KEYS), "a.consumer.", mm2),
    Where("producer", _others(PRODUCER_KEYS), "b.producer.", mm2),
    Where("override", _others(PRODUCER_KEYS), "a->b.producer.override.", mm2),
    Where("source admin", _others(ADMIN_KEYS), "a.admin.", mm2),
    Where("target admin", _others(ADMIN_KEYS), "b.admin.", mm2),
    Where("worker file", _others(WORKER_FILE_KEYS), "", worker_file),
    Where("worker client", _others(ADMIN_KEYS), "", worker_file),
)
