"""Deploys the connectors of one source cluster to a worker, all or none, and removes them.

Runs on: any machine, against the REST API of a worker. Progress is reported line by line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from sparkmirror.config.keys.plugins import CONNECTOR_CLASS, connector_class
from sparkmirror.connect.entities import RequestError
from sparkmirror.connect.start_checks import WARNING
from sparkmirror.errors import ConfigError, ConfigErrors, MirrorError
from sparkmirror.tools.deploy.connector_files import CLASSES, SOURCE_ALIAS, ConnectorFile
from sparkmirror.tools.deploy.rest_client import (
    RUNNING,
    ConnectClient,
    DeployedStatus,
    Part,
    WorkerUnreachable,
)

Print = Callable[[str], None]

# States that do not change without an operator.
FINAL = ("FAILED", "PAUSED", "STOPPED")
# How long a final state from before this deployment may still be shown.
STALE_SECONDS = 5.0
# Tasks appear after their connector; a connector without work never has any.
NO_TASK_SECONDS = 10.0
_POLL_SECONDS = 0.3


class DeployError(MirrorError):
    """Connectors that are not in the requested state. Operator action: the message names them."""


@dataclass(frozen=True, slots=True)
class DeployedConnector:
    """A connector that this deployment created, or whose settings it replaced."""

    name: str
    former: Mapping[str, str | None] | None


class Deployment:
    """The connectors of one source cluster; the patience of `client` is per step."""

    def __init__(self, client: ConnectClient, show: Print, warn: Print) -> None:
        self._client = client
        self._print = show
        self._warn = warn
        self._stale: frozenset[Part] = frozenset()

    def validate(self, files: Iterable[ConnectorFile]) -> None:
        """Let the worker validate the files. Raises ConfigErrors with all errors of all files."""
        self._client.check()
        errors = [error for file in files for error in self._validate(file)]
        if errors:
            raise ConfigErrors(errors)

    def deploy(self, files: Sequence[ConnectorFile]) -> None:
        """Send those that are not RUNNING, and wait until all are."""
        statuses = {file.name: self._client.status(file.name) for file in files}
        self._stale = _final_parts(statuses.values())
        sent: list[DeployedConnector] = []
        for file in files:
            if _state(statuses[file.name]) == RUNNING:
                self._skip(file)
            else:
                sent.append(self._send(file, sent))
        self._wait_running([file.name for file in files], {each.name for each in sent})

    def undeploy(self, names: Iterable[str]) -> None:
        """Delete connectors, and wait until they are gone: leftovers would mislead `deploy`."""
        deleted = [name for name in names if self._delete(name)]
        while left := [name for name in deleted if self._is_there(name)]:
            if not self._client.seconds_left:
                raise DeployError(f"deleted, but still listed by the worker: {', '.join(left)}")
            time.sleep(_POLL_SECONDS)

    def warn_of_others(self, aliases: Container[str | None]) -> None:
        """Warn about remaining connectors of these source clusters, whose name no file has."""
        for name, config in self._client.configs().items():
            kind = connector_class(config.get(CONNECTOR_CLASS) or "")
            if kind in CLASSES.values() and config.get(SOURCE_ALIAS) in aliases:
                self._warn(
                    f"{name}: stays on the worker and also mirrors from '{config[SOURCE_ALIAS]}': "
                    "no file has this name"
                )

    def _validate(self, file: ConnectorFile) -> list[ConfigError]:
        where = str(file.path)
        try:
            found = self._client.validate(file.plugin, file.body)
        except RequestError as error:
            return [ConfigError("", None, f"rejected by the worker: {error}", where=where)]
        for key, text in found:
            if text.startswith(WARNING):
                self._warn(f"{where}: {key}: {text.removeprefix(WARNING)}")
        return [
            ConfigError(key, None, text, where=where)
            for key, text in found
            if not text.startswith(WARNING)
        ]

    def _skip(self, file: ConnectorFile) -> None:
        self._print(f"{file.name}: already RUNNING, skipped")
        running = self._client.config(file.name)
        if running is not None and running != file.config:
            keys = _differences(running, file.config)
            self._warn(
                f"{file.name} runs with settings that differ from {file.path} ({keys}); redeploy "
                "to use the file's"
            )

    def _send(self, file: ConnectorFile, before: Sequence[DeployedConnector]) -> DeployedConnector:
        former = self._client.config(file.name)
        try:
            is_new = self._client.put_config(file.name, file.body)
        except RequestError as error:
            in_doubt = [DeployedConnector(file.name, former)] if error.status >= 500 else []
            reason = f"{file.name}: rejected by the worker: {error}"
            raise self._undone(reason, before, in_doubt) from error
        except WorkerUnreachable as error:
            raise self._undone(
                str(error), before, [DeployedConnector(file.name, former)]
            ) from error
        self._print(f"{file.name}: {'created' if is_new else 'settings replaced'}")
        return DeployedConnector(file.name, former)

    def _undone(
        self,
        reason: str,
        before: Sequence[DeployedConnector],
        in_doubt: Sequence[DeployedConnector],
    ) -> DeployError:
        """Undo what was sent; returns the error to raise."""
        self._client.renew_patience()
        lines = [reason]
        for sent in (*in_doubt, *reversed(before)):
            try:
                lines.append(self._undo(sent))
            except (RequestError, WorkerUnreachable) as error:
                lines.append(f"{sent.name}: could not be undone: {error}")
        return DeployError("\n".join([*lines, "nothing was deployed"]))

    def _undo(self, sent: DeployedConnector) -> str:
        if sent.former is None:
            self._client.delete(sent.name)
            return f"{sent.name}: removed again"
        self._client.put_config(sent.name, json.dumps(sent.former).encode())
        return f"{sent.name}: previous settings restored"

    def _delete(self, name: str) -> bool:
        try:
            was_there = self._client.delete(name)
        except RequestError as error:
            raise DeployError(f"{name}: the worker rejects its deletion: {error}") from error
        if was_there:
            self._print(f"{name}: deleted")
        else:
            self._warn(f"{name}: not found, so not deleted")
        return was_there

    def _is_there(self, name: str) -> bool:
        return self._client.config(name) is not None or self._client.status(name) is not None

    def _wait_running(self, names: Sequence[str], new: Set[str]) -> None:
        self._client.renew_patience()
        began = time.monotonic()
        shown: list[str] = []
        while True:
            statuses = {name: self._client.status(name) for name in names}
            seconds = time.monotonic() - began
            shown = self._print_changes(statuses, shown)
            if hopeless := self._hopeless(statuses, seconds):
                raise DeployError("\n".join(hopeless))
            awaited = list(_awaited(statuses, new if seconds < NO_TASK_SECONDS else ()))
            if not awaited:
                self._warn_of_notices(statuses.values())
                self._print(f"{len(names)} connectors RUNNING after {seconds:.1f} s")
                return
            if not self._client.seconds_left:
                raise DeployError(f"not RUNNING after {seconds:.0f} s: {'; '.join(awaited)}")
            time.sleep(_POLL_SECONDS)

    def _print_changes(
        self, statuses: Mapping[str, DeployedStatus | None], shown: list[str]
    ) -> list[str]:
        lines = [f"{name}: {summary(status)}" for name, status in statuses.items()]
        for line in lines:
            if line not in shown:
                self._print(line)
        return lines

    def _warn_of_notices(self, statuses: Iterable[DeployedStatus | None]) -> None:
        """Warn about running connectors with a trace: they may not do what the user expects."""
        for status in statuses:
            if status and status.connector.reason:
                self._warn(f"{status.connector.connector}: {status.connector.reason}")

    def _hopeless(self, statuses: Mapping[str, DeployedStatus | None], seconds: float) -> list[str]:
        final = _final_parts(statuses.values())
        if seconds < STALE_SECONDS:
            final -= self._stale
        lines = (f"{part}: {part.reason}" if part.reason else str(part) for part in final)
        return sorted(lines)


def summary(status: DeployedStatus | None) -> str:
    """The state of a connector and how many of its tasks run, in one line."""
    if status is None:
        return "no status yet"
    if not status.tasks:
        return f"{status.connector.state}, no tasks"
    running = sum(task.state == RUNNING for task in status.tasks)
    return f"{status.connector.state}, {running} of {len(status.tasks)} tasks RUNNING"


def _awaited(statuses: Mapping[str, DeployedStatus | None], new: Container[str]) -> Iterable[str]:
    """What is not running yet; `new` connectors may still get tasks."""
    for name, status in statuses.items():
        if status is None:
            yield f"{name} has no status"
        elif not status.is_running:
            yield from (str(part) for part in status.parts if part.state != RUNNING)
        elif not status.tasks and name in new:
            yield f"{name} has no tasks"


def _final_parts(statuses: Iterable[DeployedStatus | None]) -> frozenset[Part]:
    found = [part for status in statuses if status for part in status.parts]
    return frozenset(part for part in found if part.state in FINAL)


def _state(status: DeployedStatus | None) -> str | None:
    return status.connector.state if status else None


def _differences(running: Mapping[str, str | None], file: Mapping[str, str | None]) -> str:
    """The keys that differ, without values, which may be secret."""
    keys = running.keys() | file.keys()
    return ", ".join(sorted(key for key in keys if running.get(key) != file.get(key)))
