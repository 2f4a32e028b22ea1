"""A genuine distributed Kafka Connect worker with the three Mirror connectors on its class path.

Our worker must read what it writes to its topics, and the reverse.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkmirror.embedded.java import SERVER_JVM_ARGS, java_command, store_properties
from sparkmirror.embedded.kafka_jars import kafka_jars
from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.process import STOP_SECONDS, ManagedProcess
from sparkmirror.errors import LocalProtocolError

_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_DEFAULTS = {
    "key.converter": _BYTES,
    "value.converter": _BYTES,
    "header.converter": _BYTES,
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    # Scanning all jars for plugins takes a minute on two busy cores; their manifests are enough.
    "plugin.discovery": "service_load",
    # Do not wait for members that left.
    "scheduled.rebalance.max.delay.ms": "0",
}
_REQUEST_SECONDS = 90.0


class ConnectWorker(ManagedProcess):
    """One worker, for use in a `with` block; its file and log are in `folder`.

    `properties` name at least bootstrap.servers, group.id and the three storage topics.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        folder: Path,
        *,
        heap: str = "512m",
        jvm_args: Sequence[str] = SERVER_JVM_ARGS,
    ) -> None:
        super().__init__("a Connect worker", folder / "connect.log")
        self.properties = {**_DEFAULTS, **properties}
        self.folder = folder
        self._heap = heap
        self._jvm_args = jvm_args
        self._port: ReservedPort | None = None

    @property
    def url(self) -> str:
        """The address of its REST API."""
        if self._port is None:
            raise LocalProtocolError(f"the Connect worker in {self.folder} was not started")
        return f"http://{HOST}:{self._port.number}"

    def command(self) -> list[str | Path]:
        """The command; also writes the settings, with a port that is reserved until the stop."""
        self._port = self._port or ReservedPort()
        settings = self.folder / "connect.properties"
        store_properties(settings, {**self.properties, "listeners": self.url})
        return java_command(
            kafka_jars(),
            self.folder,
            "org.apache.kafka.connect.cli.ConnectDistributed",
            [settings],
            heap=self._heap,
            jvm_args=self._jvm_args,
        )

    def try_ready(self) -> bool:
        """Whether it has joined its group and responds."""
        try:
            status, _ = self.request("GET", "/health")
        except OSError:
            return False
        return status == 200

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send one REST request; returns the status and the response's value, None if empty."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - http, to loopback
        try:
            with urllib.request.urlopen(asked, timeout=_REQUEST_SECONDS) as response:  # noqa: S310
                return response.status, _content(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _content(error.read())

    def stop(self, within: float = STOP_SECONDS) -> float:
        """Shut down in an orderly way: source offsets are committed first."""
        seconds = super().stop(within)
        if self._port is not None:
            self._port.close()
            self._port = None
        return seconds


def _content(data: bytes) -> Any:
    """JSON as a value; anything else (the web server's page during its start) as text."""
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode(errors="replace")
