"""The interfaces of a worker's herder to the topics that keep its state, and to its group.

Runs on: worker. Types only; implemented by config_backing_store, status_backing_store, all_offsets
and group.worker_group_member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.connect.entities import ConnectorProps, Json, OnRestart
from sparkmirror.connect.group.group_place import GroupView
from sparkmirror.connect.group.session_keys import KeyTopic
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.types import ConnectorTaskId


class ConfigBackingStore(KeyTopic, Protocol):
    """The config topic. Writes return when they are stored; only the leader may write."""

    def start(self) -> None:
        """Create or check the topic, and read it to its end. Raises MirrorError."""

    def stop(self) -> None: ...
    def snapshot(self) -> ConfigSnapshot: ...
    def claim(self) -> None:
        """Fence earlier leaders, and read what they wrote."""

    def is_still_claimed(self) -> bool:
        """Whether no other worker has claimed since we did."""

    def on_change(self, callback: Callable[[], None]) -> None: ...
    def on_restart(self, callback: OnRestart) -> None: ...
    def put_connector(
        self, name: str, config: ConnectorProps, target_state: str | None = None
    ) -> None: ...
    def delete_connector(self, name: str) -> None: ...
    def put_target_state(self, name: str, state: str) -> None: ...
    def put_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None: ...
    def put_restart(self, name: str, include_tasks: bool, only_failed: bool) -> None: ...
    def put_logger(self, name: str, level: str) -> None: ...


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """A state, who wrote it, and in which generation of the group of workers."""

    state: str
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None


class StatusBackingStore(Protocol):
    """The status topic. Writes do not wait."""

    def start(self) -> None:
        """Create or check the topic, and read it to its end. Raises MirrorError."""

    def stop(self, seconds: float = ...) -> None:
        """Wait for writes for so many seconds at most, then close."""

    def connector(self, name: str) -> StoredStatus | None: ...
    def tasks(self, name: str) -> Mapping[int, StoredStatus]: ...
    def topics(self, name: str) -> set[str]: ...
    def put_connector(self, name: str, status: StoredStatus) -> None: ...
    def put_task(self, name: str, task: int, status: StoredStatus) -> None: ...
    def forget(self, name: str) -> None: ...
    def forget_task(self, name: str, task: int) -> None: ...
    def put_topic(self, topic: str, name: str, task: int, now_ms: int) -> None: ...
    def reset_topics(self, name: str) -> None: ...


class OffsetBackingStore(Protocol):
    """The offsets topic."""

    def list(self, connector: str) -> Sequence[tuple[Json, Json]]: ...
    def write(self, connector: str, rows: Sequence[tuple[Json, Json | None]]) -> None: ...


class GroupMembership(Protocol):
    """This worker's membership in the group of workers that share these topics."""

    @property
    def is_leader(self) -> bool: ...
    @property
    def leader_url(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def tenure(self) -> int | None: ...
    @property
    def membership(self) -> int | None: ...
    @property
    def view(self) -> GroupView: ...
    def lease_seconds(self) -> float: ...
    def lend_to(self, task: ConnectorTaskId, view: GroupView) -> Callable[[], float]: ...
    def on_change(self, callback: Callable[[], None]) -> None: ...
    def request_rejoin(self) -> None: ...
    def drain(self, seconds: float) -> bool: ...


@dataclass(frozen=True, slots=True)
class Stores:
    """All stores of one worker, and its group."""

    configs: ConfigBackingStore
    statuses: StatusBackingStore
    offsets: OffsetBackingStore
    group: GroupMembership
