"""What may be written to the config topic, as records; stores differ in where these go.

Runs on: worker. Mirrors: org.apache.kafka.connect.storage.ConfigBackingStore.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.connect.storage.config_records import (
    KeyValue,
    RestartRequest,
    connector_records,
    deletion_records,
    logger_record,
    restart_record,
    target_state_record,
    task_records,
)


class ConfigWriter(ABC):
    """The writes of a `ConfigBackingStore`."""

    @abstractmethod
    def _write(self, rows: Sequence[KeyValue]) -> None:
        """Write, and return when the records have been read back."""

    def put_connector(
        self, name: str, config: ConnectorProps, target_state: str | None = None
    ) -> None:
        """Create the connector or replace its settings."""
        self._write(connector_records(name, config, target_state))

    def delete_connector(self, name: str) -> None:
        """Delete the connector, its tasks and its target state."""
        self._write(deletion_records(name))

    def put_target_state(self, name: str, state: str) -> None:
        """Set the target state: STARTED, PAUSED or STOPPED (KIP-875)."""
        self._write([target_state_record(name, state)])

    def put_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Replace all tasks of the connector."""
        self._write(task_records(name, configs))

    def put_restart(self, name: str, include_tasks: bool, only_failed: bool) -> None:
        """Make all workers restart their parts of the connector (KIP-745)."""
        self._write([restart_record(RestartRequest(name, include_tasks, only_failed))])

    def put_logger(self, name: str, level: str) -> None:
        """Set a logger's level on all workers (KIP-976)."""
        self._write([logger_record(name, level)])
