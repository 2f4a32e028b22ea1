"""Ports chosen by the OS that stay ours while a broker is down.

A bound socket that does not listen lets a listener with SO_REUSEADDR (set by every Java server on
Linux) share the port, but keeps the kernel from giving the port away, as a free port or as the
local end of an outgoing connection. Without it, a broker that is killed and started again would
sometimes find its port taken by a client that was retrying.
"""

from __future__ import annotations

import socket

from sparkmirror.errors import MissingPart

HOST = "127.0.0.1"


class ReservedPort:
    """One port, reserved for this process until `close`."""

    def __init__(self, port: int | None = None) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port or 0))
        except OSError as error:
            self._socket.close()
            raise MissingPart(
                f"port {port} of {HOST} cannot be used ({error.strerror}): choose another one"
            ) from error
        self.number: int = self._socket.getsockname()[1]

    def close(self) -> None:
        """Release the port."""
        self._socket.close()

    def __enter__(self) -> ReservedPort:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
