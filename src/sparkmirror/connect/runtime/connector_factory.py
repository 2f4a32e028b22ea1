"""Makes the connectors and tasks of a worker from their settings.

Runs on: worker. Settings are parsed when a connector or task is made, so that errors in them become
its state.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from sparkmirror.config.connector_spec import (
    NAME,
    AnySpec,
    ConnectorConfig,
    ConnectorSpec,
    parse_connector,
)
from sparkmirror.config.mirror_configs import CheckpointConfig, HeartbeatConfig, SourceConfig
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect.checkpoint.mirror_checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.checkpoint.mirror_checkpoint_task import MirrorCheckpointTask
from sparkmirror.connect.connector import Connector, TaskConfigs, TaskWork
from sparkmirror.connect.entities import ConnectorProps
from sparkmirror.connect.heartbeat.mirror_heartbeat_connector import MirrorHeartbeatConnector
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.connect.source.mirror_source_task import MirrorSourceTask, SourceTaskSettings
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.errors import MirrorError
from sparkmirror.logs.places import at_place, current_place, place_of
from sparkmirror.mirror.task_configs import assigned_groups, assigned_partitions, connector_settings
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.lease import Lender
from sparkmirror.spark.task_runner import TaskRunner

log = logging.getLogger(__name__)

OnMissing = Callable[[str, list[str]], None]
"""Called with a connector's name and the target topics that one of its tasks cannot find."""


class ConnectorFactory:
    """The factory of one worker; for any thread.

    `problem_of` returns how a connector differs from its partner in the same Connect cluster.
    """

    def __init__(
        self,
        file: WorkerFile,
        spark: Worker,
        problem_of: Callable[[ConnectorConfig], str],
        *,
        awaits_heartbeats: bool = False,
        is_warned: bool = False,
    ) -> None:
        """`is_warned`: the warnings about all settings have been logged already."""
        self._file = file
        self._is_warned = is_warned
        self._awaits_heartbeats = awaits_heartbeats
        self._spark = spark
        self._problem_of = problem_of
        self._lock = threading.Lock()
        # By the connectors' names.
        self._source_settings: dict[str, tuple[Mapping[str, str], SourceTaskSettings]] = {}
        self._connected: list[tuple[ConnectorProps, Connector]] = []

    def connect(self, props: ConnectorProps) -> None:
        """Make and connect a connector; the next `make_connector` with these settings returns it.

        Raises KafkaError, and what `make_connector` raises.
        """
        with at_place(place_of(props.get(NAME) or "", props)):
            connector = self._make(props)
            try:
                connector.connect()
            except MirrorError:
                _close(connector)
                raise
        with self._lock:
            self._connected.append((props, connector))

    def connected(self) -> list[Connector]:
        """The connectors that `connect` made and that are not in use yet."""
        with self._lock:
            return [connector for _, connector in self._connected]

    def disconnect(self) -> None:
        """Close these connectors: another worker leads, or this one ends."""
        with self._lock:
            unused, self._connected = self._connected, []
        for _, connector in unused:
            _close(connector)

    def make_connector(self, props: ConnectorProps) -> Connector:
        """The connector that these settings describe, not started yet.

        Raises:
            ConfigErrors: everything that is wrong with the settings.
            UnusableConnector: they do not name a usable connector class.
        """
        with self._lock:
            found = next((each for each in self._connected if dict(each[0]) == dict(props)), None)
            if found is not None:
                self._connected.remove(found)
        return self._make(props) if found is None else found[1]

    def _make(self, props: ConnectorProps) -> Connector:
        spec = parse_connector(props, self._file)
        for warning in () if self._is_warned else spec.warnings:
            log.warning("%s", warning)
        if source := spec.narrowed(SourceConfig):
            if source.config.enabled:
                self._spark.begin()
            return self.make_source(source)
        if checkpoint := spec.narrowed(CheckpointConfig):
            return MirrorCheckpointConnector(checkpoint)
        return MirrorHeartbeatConnector(_heartbeat(spec))

    def make_source(self, spec: ConnectorSpec[SourceConfig]) -> MirrorSourceConnector:
        """The source connector of one flow."""
        return MirrorSourceConnector(spec, awaits_heartbeats=self._awaits_heartbeats)

    def make_work(self, configs: TaskConfigs, on_missing: OnMissing, lease: Lender) -> TaskWork:
        """The work of tasks with these settings; raises what `make_connector` raises.

        `lease` returns for how many seconds they may still write.
        """
        number, task = next(iter(configs.items()))
        settings = connector_settings(task)
        spec = parse_connector(settings, self._file)
        if checkpoint := spec.narrowed(CheckpointConfig):
            return MirrorCheckpointTask(
                checkpoint,
                partner_problem=lambda: self._problem_of(spec.config),
                groups=assigned_groups(configs.values()),
                lease=lease,
            )
        if source := spec.narrowed(SourceConfig):
            with at_place(current_place().of_connector):
                shared = self._shared_settings(settings, source)

            def make_runner(name: str, make_message: Callable[[], LinkMessage]) -> TaskRunner:
                def miss(topics: list[str]) -> None:
                    on_missing(spec.name, topics)

                return TaskRunner(*self._spark.get(), name, make_message, miss, lease=lease)

            shared.note_stale(task)
            return MirrorSourceTask(shared, number, assigned_partitions(task), make_runner)
        return MirrorHeartbeatTask(_heartbeat(spec), lease)

    def _shared_settings(
        self, settings: Mapping[str, str], spec: ConnectorSpec[SourceConfig]
    ) -> SourceTaskSettings:
        """One object for all tasks of a connector that have the same settings."""
        with self._lock:
            known = self._source_settings.get(spec.name)
            if known is not None and known[0] == settings:
                return known[1]
            store = KafkaOffsetBackingStore.of(spec.worker, spec.config)
            shared = SourceTaskSettings(spec, store)
            self._source_settings[spec.name] = settings, shared
            return shared


def _close(connector: Connector) -> None:
    connector.stop()
    connector.join(0.0)


def _heartbeat(spec: AnySpec) -> ConnectorSpec[HeartbeatConfig]:
    """The settings of the third kind, if they are of neither of the others."""
    found = spec.narrowed(HeartbeatConfig)
    assert found is not None
    return found
