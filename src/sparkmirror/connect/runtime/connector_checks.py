"""What the REST API reports about plugins and settings, independent of what runs.

Runs on: worker, on threads of the REST API.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.config.keys.plugins import (
    UnknownConnectorClass,
    UnknownPlugin,
    UnusableConnector,
    WrongPlugin,
    plugins,
)
from sparkmirror.config.validation.connector_validation import error_summary, validate_connector
from sparkmirror.config.validation.definitions import plugin_definitions
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect import entities
from sparkmirror.connect.entities import ConnectorProps, Json, RequestError
from sparkmirror.connect.start_checks import validate_on_worker
from sparkmirror.connect.storage.backing_stores import ConfigBackingStore


class ConnectorChecks:
    """The plugins and validations of one worker."""

    def __init__(self, worker: WorkerFile, configs: ConfigBackingStore) -> None:
        self._worker = worker
        self._configs = configs

    def plugins(self, *, connectors_only: bool) -> Sequence[Json]:
        return plugins(connectors_only=connectors_only)

    def plugin_definitions(self, plugin: str, version: str | None) -> Sequence[Json]:
        try:
            return plugin_definitions(plugin, version)
        except UnknownPlugin as error:
            raise RequestError(404, str(error)) from error

    def validate(self, plugin: str, config: ConnectorProps) -> Json:
        try:
            return validate_on_worker(plugin, config, self._worker, self._configs)
        except WrongPlugin as error:
            raise RequestError(400, str(error)) from error
        except UnusableConnector as error:
            raise RequestError(500, f"{entities.BAD_REQUEST}: {error}") from error

    def _check_config(self, config: ConnectorProps) -> None:
        try:
            infos = validate_connector(None, config, self._worker)
        except UnknownConnectorClass as error:
            raise RequestError(400, f"{entities.CONNECT_EXCEPTION}: {error}") from error
        except UnusableConnector as error:
            raise RequestError(400, str(error)) from error
        if (refused := error_summary(infos)) is not None:
            raise RequestError(400, refused)
