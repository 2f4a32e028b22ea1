"""Small blocking requests to servers that give credentials: token endpoints, AWS.

Runs on: threads of `renewing`, never on an event loop's. Redirects are not followed, because the
request carries secrets. HTTP proxies are those of the environment, except for link-local servers.
"""

from __future__ import annotations

import email.utils
import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import IO, Any

from sparkmirror.errors import AuthenticationError, TransportError

MOST_BYTES = 1 << 20
TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said; `date` is its clock in seconds since 1970, if it tells."""

    status: int
    body: bytes = field(repr=False)
    date: float | None = None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like others."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def ask(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    timeout: float = TIMEOUT_SECONDS,
    context: ssl.SSLContext | None = None,
    proxies: bool = True,
) -> Answer:
    """Send a request and read the answer, whatever its status.

    Raises:
        AuthenticationError: the address is none.
        TransportError: nobody answers there.
    """
    where = address(url)
    handlers: list[Any] = [_NoRedirect()]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    if not proxies:
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    # `address` has refused everything but http and https.
    request = urllib.request.Request(url, body, dict(headers), method=method)  # noqa: S310
    try:
        with opener.open(request, timeout=timeout) as answer:
            return _read(answer.status, answer.headers, answer)
    except urllib.error.HTTPError as answer:
        with answer:
            return _read(answer.code, answer.headers, answer)
    except urllib.error.URLError as error:
        raise TransportError(f"{where}: {_cause(error.reason)}") from error
    except (OSError, http.client.HTTPException) as error:
        raise TransportError(f"{where}: {_cause(error)}") from error


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


def _read(status: int, headers: Message, answer: IO[bytes]) -> Answer:
    return Answer(status, answer.read(MOST_BYTES), _date(headers.get("Date")))


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
        return "no answer in time"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
