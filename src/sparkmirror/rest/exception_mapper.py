"""The error table: the response to each failure.

Runs on: worker. Every error is `{"error_code": status, "message": text}`. Those found before a
method of a resource is chosen (no such path, wrong method, wrong content type) come without a
Content-Type, as Jersey sends them.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from sparkmirror.config.masking import mask
from sparkmirror.connect.entities import RequestError
from sparkmirror.errors import ConfigErrors, MirrorError

log = logging.getLogger(__name__)

NOT_FOUND = "HTTP 404 Not Found"
# What Jetty writes instead of a URI that it does not repeat.
BAD_URI = "/badURI"
BAD_MESSAGE = "/badMessage"
TIMED_OUT = "Request timed out"
NO_LEADER = (
    "Cannot complete request momentarily due to no known leader URL, "
    "likely because a rebalance was underway."
)
TOO_MANY_HOPS = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
NOT_FORWARDED = "IO Error trying to forward REST request: %s"
OTHER_USERS = "The leading worker rejects this user: give all workers the same file of users."
ODD_LEADER = (
    "Cannot forward the request: the leader's URL '%s' is not of the form http://host:port/ or "
    "https://host:port/; correct rest.advertised.* in the leader's file."
)
PLAIN_LEADER = (
    "Cannot forward a request that came over https to the leader at '%s', which would send it "
    "unencrypted; give all workers https listeners, or set rest.advertised.listener=https."
)
BAD_TARGET = "Cannot forward the request: its path does not start with a single slash."
ODD_FORWARD = "Unexpected status code when handling forwarded request: %s"


class Unmatched(MirrorError):
    """A request that no method of a resource accepts: its response has no Content-Type."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return f"HTTP {int(self.status)} {_PHRASES.get(self.status, self.status.phrase)}"


_PHRASES = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Request Entity Too Large"}


class BadUri(MirrorError):
    """A request that Jetty itself rejects, with an HTML page that names `uri`."""

    def __init__(self, reason: str, uri: str = BAD_URI) -> None:
        super().__init__(reason, uri)
        self.reason = reason
        self.uri = uri


class JsonError(MirrorError):
    """A body that Jackson rejects; the text is Jackson's."""


# The first matching row decides the status, and whether the failure is a bug of ours.
_STATUSES: tuple[tuple[type[Exception], int, bool], ...] = (
    (JsonError, 500, False),
    (ConfigErrors, 400, False),
    (Exception, 500, True),
)


def error_of(error: Exception, what: str) -> RequestError:
    """The response to any failure, with the failure's text. Logs our own bugs with their trace."""
    if isinstance(error, RequestError):
        return error
    status, ours = next(row[1:] for row in _STATUSES if isinstance(error, row[0]))
    if ours:
        log.error("Uncaught exception in REST call to %s", what, exc_info=error)
    return RequestError(status, mask(str(error)) or type(error).__name__)
