"""Checks a request's media types and reads its body within limits.

Runs on: worker, in the event loop of the REST server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus

import anyio
from starlette.requests import Request

from sparkmirror.connect.entities import RequestError
from sparkmirror.rest.exception_mapper import BadUri, Unmatched
from sparkmirror.rest.routes import Route

# Only a few bodies above this size are read at a time, so that they cannot fill the memory. The
# settings of a connector take a few kilobytes.
_LARGE_BYTES = 256 * 1024
_LARGE_AT_ONCE = 2
_DRAIN_SECONDS = 5.0
_JSON = "application/json"
_MATCHING_JSON = (_JSON, "application/*", "*/*", "")


def check_media_types(headers: Mapping[str, str], route: Route, url: str) -> None:
    """Check that the body is declared as JSON and the client accepts JSON.

    Raises Unmatched or BadUri.
    """
    content_type = _media_type(headers.get("content-type", ""))
    if content_type and "/" not in content_type:
        raise BadUri("Bad Request", url)
    if route.consumes_json and content_type not in _MATCHING_JSON:
        raise Unmatched(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    accepted = headers.get("accept", "").split(",")
    if route.produces_json and not any(_media_type(part) in _MATCHING_JSON for part in accepted):
        raise Unmatched(HTTPStatus.NOT_ACCEPTABLE)


def check_entity(headers: Mapping[str, str], route: Route, body: bytes) -> None:
    """A wildcard type is enough to find a method, but not to read a body."""
    if route.body and body and _media_type(headers.get("content-type", "")) != _JSON:
        raise RequestError(415, str(Unmatched(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)))


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


class BodyReader:
    """Reads bodies up to a limit; larger ones are rejected (413).

    A rejected body is still read, up to twice the limit, and dropped: a client that is still
    sending would not read its response.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._large = anyio.CapacityLimiter(_LARGE_AT_ONCE)

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """The whole body. A large one occupies its slot until the block ends."""
        async with AsyncExitStack() as stack:
            chunks: list[bytes] = []
            size = 0
            async for chunk in request.stream():
                if size <= _LARGE_BYTES < size + len(chunk):
                    await stack.enter_async_context(self._large)
                size += len(chunk)
                if size <= self._limit_bytes:
                    chunks.append(chunk)
                elif size > 2 * self._limit_bytes:
                    break
            if size > self._limit_bytes:
                raise RequestError(413, str(Unmatched(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)))
            body = b"".join(chunks)
            chunks.clear()
            yield body

    async def drain(self, request: Request) -> None:
        """Read and drop an unwanted body, so that the client reads its response."""
        if "expect" in request.headers:
            return  # the client sends the body only when asked for it
        size = 0
        with anyio.move_on_after(_DRAIN_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > self._limit_bytes:
                    return
