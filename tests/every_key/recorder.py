"""Notes which fields of typed settings the program reads outside its config package.

What `sparkmirror.config` reads of its own settings proves nothing: only reads by the code that acts
on them count, directly or through a property of the settings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any

from sparkmirror.config.checks.override_policy import OverridePolicy
from sparkmirror.config.clients import ClientConfig, ConsumerConfig, ProducerConfig
from sparkmirror.config.keys.group_keys import GroupConfig
from sparkmirror.config.mirror_configs import CheckpointConfig, HeartbeatConfig, SourceConfig
from sparkmirror.config.mm2 import MirrorMakerConfig
from sparkmirror.config.worker.inter_worker import InterWorkerConfig
from sparkmirror.config.worker.metrics_keys import MetricsConfig
from sparkmirror.config.worker.rest_keys import RestConfig
from sparkmirror.config.worker.rest_security import RestTls
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.config.worker_config import WorkerConfig

Path = tuple[str, ...]
CONFIG_CLASSES = (
    CheckpointConfig,
    ClientConfig,
    ConsumerConfig,
    GroupConfig,
    HeartbeatConfig,
    InterWorkerConfig,
    MetricsConfig,
    MirrorMakerConfig,
    OverridePolicy,
    ProducerConfig,
    RestConfig,
    RestTls,
    SourceConfig,
    WorkerConfig,
    WorkerFile,
)
# All settings as text. That somebody has them all is no proof that anybody reads one.
RAW = frozenset(("props", "raw_props", "worker_props", "connector_props", "providers"))
TEXT = "settings"
# What dataclasses compare, hash and print is not acted on.
GENERATED = frozenset(("__eq__", "__hash__", "__repr__"))


def leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Every single setting in a tree of typed settings, by its place."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, Mapping):
        parts = {str(key): part for key, part in value.items()}
    else:
        return {path: value}
    return {
        place: leaf
        for name, part in parts.items()
        if name not in RAW
        for place, leaf in leaves(part, (*path, name)).items()
    }


class Reads:
    """Fields that acting code has read, of objects that are named afterwards."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, str]] = set()
        # Kept, so that no later object gets the id of one that is gone.
        self._objects: dict[int, object] = {}
        self.paths: set[Path] = set()
        # Mappings that were read as a whole, with all that is in them.
        self._wholes: set[Path] = set()

    def note(self, owner: object, name: str) -> None:
        self._objects[id(owner)] = owner
        self._seen.add((id(owner), name))

    def name(self, owner: Any, path: Path) -> None:
        """What was read of `owner`, and of what it holds, was read at `path`."""
        for field in fields(owner):
            part = object.__getattribute__(owner, field.name)
            place = (*path, field.name)
            if (id(owner), field.name) in self._seen:
                self.paths.add(place)
                if isinstance(part, Mapping) and field.name != TEXT:
                    self._wholes.add(place)
            if isinstance(part, CONFIG_CLASSES):
                self.name(part, place)
            if isinstance(part, RecordedMapping):
                self.paths |= {(*place, key) for key in part.read}

    def has_read(self, path: Path) -> bool:
        """Whether the setting at `path` was read, itself or as part of a whole mapping."""
        parts = (path[:at] for at in range(1, len(path)))
        return path in self.paths or any(part in self._wholes for part in parts)


@contextmanager
def recorded() -> Iterator[Reads]:
    """Note the reads of everything that runs inside."""
    reads = Reads()

    def read(self: object, name: str) -> Any:
        if not name.startswith("__") and _is_acting(sys._getframe(1)):
            reads.note(self, name)
        return object.__getattribute__(self, name)

    for kind in CONFIG_CLASSES:
        kind.__getattribute__ = read  # type: ignore[method-assign]
    try:
        yield reads
    finally:
        for kind in CONFIG_CLASSES:
            del kind.__getattribute__


def _is_acting(frame: FrameType | None) -> bool:
    """Whether acting code asks, perhaps through a method of the settings themselves."""
    while frame is not None and isinstance(frame.f_locals.get("self"), CONFIG_CLASSES):
        if frame.f_code.co_name in GENERATED:
            return False
        frame = frame.f_back
    module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    return module.startswith("sparkmirror.") and not module.startswith("sparkmirror.config")


def record_text(owner: Any) -> None:
    """Note which of the settings that `owner` has as text are looked up."""
    object.__setattr__(owner, TEXT, RecordedMapping(getattr(owner, TEXT)))


class RecordedMapping(dict[str, Any]):
    """Settings by name that note which of them are looked up."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)
