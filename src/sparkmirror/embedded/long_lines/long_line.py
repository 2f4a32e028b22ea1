"""A simulated line to a broker across an ocean, which fails on command.

For tests and the benchmark. The broker needs a listener that advertises the line's port:

    with LongLine(folder) as line:
        with KafkaCluster("far", listeners={LINE: "PLAINTEXT"}, advertised_ports={LINE: line.port}):
            line.connect(cluster)
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sparkmirror.embedded.kafka_cluster import KafkaCluster
from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.process import ManagedProcess, log_tail
from sparkmirror.errors import LocalProtocolError

LINE = "LINE"
_START_SECONDS = 30.0
_ORDER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LineStats:
    """Counts of a line; bytes are those delivered, up is towards the broker."""

    accepted: int
    refused: int
    up: int
    down: int
    # The most bytes in flight in one direction of one connection so far.
    most_in_flight: int
    open: int
    frozen: int
    cpu_seconds: float


class _Relay(ManagedProcess):
    """The line's own process, and the connection for commands to it."""

    def __init__(self, port: int, control_port: int, server_host: str, folder: Path) -> None:
        words = [sys.executable, "-m", "sparkmirror.embedded.long_lines.line_relay"]
        where = [str(port), str(control_port), server_host]
        super().__init__(f"line {port}", folder / f"line-{port}.log", [*words, *where])
        self._control_port = control_port
        self.control: socket.socket | None = None

    def try_ready(self) -> bool:
        """Connect to it; whether that succeeded."""
        try:
            self.control = socket.create_connection((HOST, self._control_port), _ORDER_SECONDS)
        except ConnectionRefusedError:
            return False
        return True

    def kill(self) -> None:
        """End it; a line needs no orderly end."""
        if self.control is not None:
            self.control.close()
        super().kill()


class LongLine:
    """One line to one broker, for use in a `with` block; at first without delay and window."""

    def __init__(self, folder: Path | None = None, *, server_host: str = HOST) -> None:
        """`folder` is for the log of its process; `server_host`: the address it leads to."""
        self._folder = folder
        self._server_host = server_host
        self._reserved = ReservedPort()
        self.port = self._reserved.number
        self._relay: _Relay | None = None

    @property
    def address(self) -> str:
        """The bootstrap.servers for clients."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._relay is not None, "the line is not started"
        return self._relay.pid

    def __enter__(self) -> Self:
        folder = self._folder or Path(tempfile.mkdtemp(prefix="sparkmirror-line-"))
        with ReservedPort() as control:
            self._relay = _Relay(self.port, control.number, self._server_host, folder)
            self._relay.start()
            self._relay.wait_ready(_START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        if self._relay is not None:
            self._relay.kill()
        self._reserved.close()

    def connect(self, cluster: KafkaCluster) -> None:
        """Lead to the broker of a cluster, to its listener for this line."""
        self.connect_port(cluster.brokers[0].other_ports[LINE])

    def connect_port(self, port: int) -> None:
        """Lead to a port of this machine."""
        self._order(f"to {port}")

    def stretch(self, *, delay_seconds: float, window_bytes: int = 0) -> None:
        """Set the one-way delay, and the bytes in flight per connection; 0: no limit."""
        self._order(f"delay {delay_seconds}")
        self._order(f"window {window_bytes}")

    def stall(self) -> None:
        """Deliver nothing; connections stay open, and attempts to connect get no response."""
        self._order("stall")

    def resume(self) -> None:
        """End the stall; waiting data is delivered."""
        self._order("resume")

    def cut(self) -> None:
        """Reset all connections; new ones are rejected."""
        self._order("cut")

    def mend(self) -> None:
        """End the cut: new connections are accepted."""
        self._order("mend")

    def freeze(self, after_bytes: int = 0) -> None:
        """Silence the connections that are open now; later ones work.

        Each first delivers `after_bytes` more to its client.
        """
        self._order(f"freeze {after_bytes}")

    def thaw(self) -> None:
        """End the silence; waiting data is delivered."""
        self._order("thaw")

    def stats(self) -> LineStats:
        """The counts so far."""
        return LineStats(**self._order("stats"))

    def _order(self, text: str) -> Any:
        assert self._relay is not None, "the line is not started"
        control = self._relay.control
        assert control is not None, "the line is not started"
        control.sendall(text.encode() + b"\n")
        response = bytearray()
        while not response.endswith(b"\n"):
            part = control.recv(4096)
            if not part:
                log = log_tail(self._relay.log_path)
                raise LocalProtocolError(f"command '{text}': the line has ended\n{log}")
            response += part
        return json.loads(response)
