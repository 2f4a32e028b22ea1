"""Small blocking requests to servers that give credentials: token endpoints, AWS.

Runs on: threads of `renewing`, never on an event loop's. Redirects are not followed, because the
request carries secrets. HTTP proxies are those of the environment, except for link-local servers.
"""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import socket
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from typing import IO, Any

from sparkmirror.errors import AuthenticationError, TransportError

MOST_BYTES = 1 << 20
TIMEOUT_SECONDS = 10.0
# A socket's own timeout is for one read: a server that sends a byte now and then would block all
# that wait for the credential, for ever. The whole exchange has so many of them.
MOST_TIMEOUTS = 3.0


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The response; `date` is the server's clock in seconds since 1970, if it was sent."""

    status: int
    body: bytes = field(repr=False)
    date: float | None = None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is a response like others."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Watch:
    """Hangs up when a whole exchange takes too long."""

    def __init__(self, seconds: float) -> None:
        self._line: socket.socket | None = None
        self._is_late = False
        self._timer = threading.Timer(seconds, self._hang_up)
        self._timer.daemon = True
        self._timer.start()

    def follow(self, line: socket.socket | None) -> None:
        """The exchange goes over this socket."""
        self._line = line
        self.check()

    def check(self) -> None:
        """Raise TimeoutError when it is too late: a connection cut by us looks like an end."""
        if self._is_late:
            raise TimeoutError

    def end(self) -> None:
        """All has come."""
        self._timer.cancel()

    def _hang_up(self) -> None:
        self._is_late = True
        if self._line is not None:
            # Not SSLSocket's own, which takes the connection apart under its reader.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._line, socket.SHUT_RDWR)


class _Connection(http.client.HTTPConnection):
    """One that is watched. TLS handshakes have a deadline of their own."""

    def __init__(self, watch: _Watch, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._watch = watch

    def connect(self) -> None:
        super().connect()
        self._watch.follow(self.sock)

    def _tunnel(self) -> None:  # to a proxy, whose response may drip too
        self._watch.follow(self.sock)
        super()._tunnel()  # type: ignore[misc]


class _TlsConnection(_Connection, http.client.HTTPSConnection):
    """The same over TLS."""


class _Web(urllib.request.HTTPHandler):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._watch = watch

    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(partial(_Connection, self._watch), request)


class _TlsWeb(urllib.request.HTTPSHandler):
    def __init__(self, watch: _Watch, context: ssl.SSLContext | None) -> None:
        super().__init__(context=context)
        self._watch, self._own_context = watch, context

    def https_open(self, request: urllib.request.Request) -> Any:
        make = partial(_TlsConnection, self._watch)
        return self.do_open(make, request, context=self._own_context)


def ask(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    timeout: float = TIMEOUT_SECONDS,
    context: ssl.SSLContext | None = None,
    proxies: bool = True,
) -> HttpResponse:
    """Send a request and read the response, whatever its status.

    Raises:
        AuthenticationError: the address is invalid.
        TransportError: nothing responds there.
    """
    where = address(url)
    watch = _Watch(timeout * MOST_TIMEOUTS)
    handlers: list[Any] = [_NoRedirect(), _Web(watch), _TlsWeb(watch, context)]
    if not proxies:
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    # `address` has rejected everything but http and https.
    request = urllib.request.Request(url, body, dict(headers), method=method)  # noqa: S310
    try:
        return _exchange(opener, request, timeout, watch)
    except urllib.error.URLError as error:
        raise TransportError(f"{where}: {_cause(error.reason)}") from error
    except (OSError, http.client.HTTPException) as error:
        raise TransportError(f"{where}: {_cause(error)}") from error
    finally:
        watch.end()


def address(url: str) -> str:
    """The part of a URL that may be printed: no user, no password, no query."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise AuthenticationError("a URL that cannot be read; check it") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AuthenticationError(f"'{parts.scheme}:' is no URL of a web server; use https://...")
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def _exchange(
    opener: urllib.request.OpenerDirector,
    request: urllib.request.Request,
    timeout: float,
    watch: _Watch,
) -> HttpResponse:
    try:
        with opener.open(request, timeout=timeout) as response:
            return _read(response.status, response.headers, response, watch)
    except urllib.error.HTTPError as response:
        with response:
            return _read(response.code, response.headers, response, watch)


def _read(status: int, headers: Message, response: IO[bytes], watch: _Watch) -> HttpResponse:
    body = response.read(MOST_BYTES)
    watch.check()
    return HttpResponse(status, body, _date(headers.get("Date")))


def _date(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _cause(error: object) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, TimeoutError):
        return "no response in time"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
