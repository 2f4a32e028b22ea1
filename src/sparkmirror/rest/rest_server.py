"""Serves an application on the worker's listeners, with uvicorn on a separate thread.

Runs on: worker.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import socket
import ssl
import threading
from collections.abc import Sequence

import uvicorn
from starlette.types import ASGIApp

from sparkmirror.errors import AddressTaken, ConfigError, LocalProtocolError, MirrorError
from sparkmirror.rest.transport.connections import IDLE_SECONDS, GuardedProtocol, guarded_protocol
from sparkmirror.retry import wait_for

log = logging.getLogger(__name__)

_BACKLOG = 2048
_START_SECONDS = 10.0
# uvicorn waits this long for pending responses when it stops.
_GRACE_SECONDS = 1
_STOP_SECONDS = 5.0

# Temporary: another process may end, or a network come up, so a service manager should retry.
PASSING = (errno.EADDRINUSE, errno.EADDRNOTAVAIL)


class RestServer:
    """Listens on some addresses (host, port); port 0 is any free one, see `ports`.

    `tls` has the TLS context of each address, or None for a plain one; empty: all are plain.
    `bind` binds the sockets, so that the worker knows its own URL before it has a herder; `start`
    serves. A server is used once. A client that keeps the server waiting for `idle_seconds` is
    disconnected.
    """

    def __init__(
        self,
        addresses: Sequence[tuple[str, int]],
        tls: Sequence[ssl.SSLContext | None] = (),
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._addresses = tuple(addresses)
        self._tls = tuple(tls) or (None,) * len(self._addresses)
        self._idle_seconds = idle_seconds
        self._sockets: list[socket.socket] = []
        self.ports: list[int] = []  # the actual ones, in the order of the addresses
        self._servers: list[uvicorn.Server] = []
        self._thread: threading.Thread | None = None

    def bind(self) -> RestServer:
        """Take the addresses.

        Raises:
            AddressTaken: one cannot be had now.
            ConfigError: one can never be had.
        """
        if not self._sockets:
            try:
                for host, port in self._addresses:
                    self._sockets.append(_bound(host, port))
            except MirrorError:
                self._close_sockets()
                raise
            self.ports = [sock.getsockname()[1] for sock in self._sockets]
        return self

    def start(self, app: ASGIApp) -> RestServer:
        """Serve; returns when the server accepts requests."""
        if self._servers:
            raise LocalProtocolError("a REST server can be started only once")
        self.bind()
        protocol = guarded_protocol(self._idle_seconds)
        self._servers = [uvicorn.Server(_settings(app, protocol, tls)) for tls in self._tls]
        self._thread = threading.Thread(target=self._run, name="rest", daemon=True)
        self._thread.start()
        wait_for(
            lambda: all(each.started for each in self._servers) or not self._is_alive(),
            within=_START_SECONDS,
            describe="the REST server responds",
        )
        if not self._is_alive():
            raise LocalProtocolError("the REST server ended while it was starting; see the log")
        return self

    def stop(self) -> None:
        """Close the listeners, give pending responses a second, and end."""
        for server in self._servers:
            server.should_exit = True
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
            if self._is_alive():
                log.warning("the REST server has not ended within %s s", _STOP_SECONDS)
        self._close_sockets()

    def __enter__(self) -> RestServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        """One loop for all listeners: a uvicorn server has one kind of listener."""
        pairs = zip(self._servers, self._sockets, strict=True)
        await asyncio.gather(*(server.serve([sock]) for server, sock in pairs))

    def _is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _close_sockets(self) -> None:
        for sock in self._sockets:
            sock.close()


def _settings(
    app: ASGIApp, protocol: type[GuardedProtocol], tls: ssl.SSLContext | None
) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        log_level=logging.WARNING,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=math.ceil(protocol.idle_seconds),
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    config.load()
    config.ssl = tls
    return config


def _bound(host: str, port: int) -> socket.socket:
    address = f"{host or '*'}:{port}"
    try:
        family = socket.getaddrinfo(host or None, port, flags=socket.AI_PASSIVE)[0][0]
        if not host:
            family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
        dual = family == socket.AF_INET6 and not host
        return socket.create_server(
            (host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual
        )
    except OSError as error:
        if error.errno in PASSING:
            raise AddressTaken(
                f"listeners: cannot listen at {address}: {error}; stop the process that uses it, "
                "or use a free address"
            ) from error
        raise ConfigError(
            "listeners", address, f"cannot listen there: {error}", "use a free address"
        ) from error
