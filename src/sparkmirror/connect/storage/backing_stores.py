"""What a worker's herder needs of the topics it keeps its state in, and of its group of workers.

Runs on: worker. Types only; the real ones are config_store, status_store, connector_offsets and
membership.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.connect.entities import Json

Settings = Mapping[str, str | None]
OnRestart = Callable[[str, bool, bool], None]


class Snapshot(Protocol):
    """The config topic as it was at one moment."""

    @property
    def connectors(self) -> Mapping[str, Settings]: ...
    @property
    def tasks(self) -> Mapping[str, Sequence[Mapping[str, str]]]: ...
    @property
    def target_states(self) -> Mapping[str, str]: ...
    @property
    def loggers(self) -> Mapping[str, str]: ...


class Configs(Protocol):
    """The config topic. Writes return when the topic has them; only the leader may write."""

    def snapshot(self) -> Snapshot: ...
    def claim(self) -> None:
        """From now on no earlier leader can write; what it wrote is read."""

    def on_change(self, callback: Callable[[], None]) -> None: ...
    def on_restart(self, callback: OnRestart) -> None: ...
    def put_connector(
        self, name: str, config: Settings, target_state: str | None = None
    ) -> None: ...
    def delete_connector(self, name: str) -> None: ...
    def put_target_state(self, name: str, state: str) -> None: ...
    def put_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None: ...
    def put_restart(self, name: str, include_tasks: bool, only_failed: bool) -> None: ...
    def put_logger(self, name: str, level: str) -> None: ...


class Stored(Protocol):
    """A status, as it is in the status topic."""

    @property
    def state(self) -> str: ...
    @property
    def worker_id(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def trace(self) -> str | None: ...
    @property
    def version(self) -> str | None: ...


class Statuses(Protocol):
    """The status topic. Writes do not wait."""

    def connector(self, name: str) -> Stored | None: ...
    def tasks(self, name: str) -> Mapping[int, Stored]: ...
    def topics(self, name: str) -> set[str]: ...
    def put_connector(  # noqa: PLR0917
        self,
        name: str,
        state: str,
        worker_id: str,
        generation: int,
        trace: str = "",
        version: str = "",
    ) -> None: ...
    def put_task(  # noqa: PLR0917
        self,
        name: str,
        task: int,
        state: str,
        worker_id: str,
        generation: int,
        trace: str = "",
        version: str = "",
    ) -> None: ...
    def forget(self, name: str) -> None: ...
    def forget_task(self, name: str, task: int) -> None: ...
    def put_topic(self, topic: str, name: str, task: int, now_ms: int) -> None: ...
    def reset_topics(self, name: str) -> None: ...


class Offsets(Protocol):
    """The offsets topic."""

    def list(self, connector: str) -> Sequence[tuple[Json, Json]]: ...
    def write(self, connector: str, rows: Sequence[tuple[Json, Json | None]]) -> None: ...


class Group(Protocol):
    """The workers that share these topics. One of them leads."""

    @property
    def is_leader(self) -> bool: ...
    @property
    def leader_url(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def tenure(self) -> int | None: ...
    def on_change(self, callback: Callable[[], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class Stores:
    """All of them, of one worker."""

    configs: Configs
    statuses: Statuses
    offsets: Offsets
    group: Group
