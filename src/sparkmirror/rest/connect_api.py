"""The REST API as an ASGI application: from a request to its response.

Runs on: worker. The event loop reads and writes; the herder's methods block, so they run on
threads. Reads, writes and health checks have separate threads, so that writes waiting for Kafka do
not block reads.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from sparkmirror.connect.entities import Herder, NotLeader, RequestError
from sparkmirror.events import EventKind, event
from sparkmirror.rest.body_reader import BodyReader, check_entity, check_media_types
from sparkmirror.rest.entities.request_bodies import encode_json
from sparkmirror.rest.exception_mapper import TIMED_OUT, BadUri, Unmatched, error_of
from sparkmirror.rest.guard import USER, Guard
from sparkmirror.rest.openapi import describe
from sparkmirror.rest.pages import bad_uri_page
from sparkmirror.rest.request import RestOptions, RestRequest, RestResponse
from sparkmirror.rest.request_forwarder import Forwarded, ForwardedRequest, forward
from sparkmirror.rest.routes import FIGURES, Match, Route, Router
from sparkmirror.rest.signatures import SIGNATURE
from sparkmirror.rest.transport.headers import CrossOrigin, apply_rules, safe_headers
from sparkmirror.rest.transport.uris import check_path, parse_query, split_path
from sparkmirror.rest.views.static_files import UI, StaticFiles
from sparkmirror.rest.worker_resource import health_response

log = logging.getLogger(__name__)

_THREADS = 32
_HEALTH_THREADS = 4
_UNHEALTHY = "Worker was unable to handle this request and may be unable to handle other requests."
_LOOK_SECONDS = 0.05


def make_app(herder: Herder, options: RestOptions | None = None) -> ConnectApi:
    """The application for RestServer."""
    return ConnectApi(herder, options or RestOptions())


class ConnectApi:
    """An ASGI application. It may be called in one event loop only."""

    def __init__(self, herder: Herder, options: RestOptions) -> None:
        self._herder = herder
        self._options = options
        self._router = Router(options)
        self._cors = CrossOrigin(options.allow_origin, options.allow_methods)
        self._guard = Guard(options, self._cors)
        self._reader = BodyReader(options.max_body_bytes)
        self._description = encode_json(describe(options))
        self._is_ready = False
        self._thread_limits = {
            "health": anyio.CapacityLimiter(_HEALTH_THREADS),
            "read": anyio.CapacityLimiter(_THREADS),
            "write": anyio.CapacityLimiter(_THREADS),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except ClientDisconnect:
            return
        await self._asgi_response(request, response)(scope, receive, send)

    def _asgi_response(self, request: Request, response: RestResponse) -> Response:
        content = _encoded(response).raw
        headers = list(response.headers.items())
        own = {name.lower() for name in response.headers}
        safe = safe_headers(request.scope["scheme"], self._options.users is not None)
        headers += [each for each in safe if each[0].lower() not in own]
        if (content or response.stream) and response.content_type:
            headers.append(("Content-Type", response.content_type))
        headers += self._cors.headers(request.method, request.headers)
        result = Response(content, response.status)
        if response.stream is not None and request.method != "HEAD":
            result = StreamingResponse(response.stream, response.status)
        for name, value in apply_rules(self._options.response_headers, headers):
            result.headers.append(name, value)
        return result

    async def _respond(self, request: Request) -> RestResponse:
        """Every failure becomes a response here: this is the boundary of the REST API."""
        try:
            check_path(_raw_path(request))
            refusal = None if self._is_peer(request) else await self._guard.refusal(request)
            if refusal is None:
                return await self._route(request)
        except BadUri as error:
            await self._reader.drain(request)
            return bad_uri_page(error)
        except Unmatched as error:
            await self._reader.drain(request)
            return _error_response(error.status, str(error), content_type="")
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001  the boundary
            return _failure(error, request.scope["path"])
        await self._reader.drain(request)
        return refusal

    async def _route(self, request: Request) -> RestResponse:
        segments = split_path(_raw_path(request).removeprefix(self._options.prefix))
        if segments == ("openapi.json",) and request.method in ("GET", "HEAD"):
            return RestResponse(raw=self._description)
        if segments[:1] == (UI,) and self._options.files is not None:
            return self._file(request, segments[1:], self._options.files)
        match = self._router.match(segments)
        if request.method == "OPTIONS" and "OPTIONS" not in match.routes:
            return _allowed_response(match, request.headers.get("accept", ""))
        route = match.route(request.method)
        check_media_types(request.headers, route, _base_url(request) + _raw_path(request))
        return await self._within_time(request, route, match.params)

    def _is_peer(self, request: Request) -> bool:
        """Whether another worker asks for figures: its signature replaces a login.

        Raises RequestError for a signature that does not fit.
        """
        signer, path = self._options.signer, f"{self._options.prefix}{FIGURES}"
        if signer is None or SIGNATURE not in request.headers or _raw_path(request) != path:
            return False
        signer.check(request.method, _target(request), b"", request.headers)
        return request.method == "GET"

    def _file(self, request: Request, segments: Sequence[str], files: StaticFiles) -> RestResponse:
        if request.method not in ("GET", "HEAD"):
            raise Unmatched(HTTPStatus.METHOD_NOT_ALLOWED)
        has_slash = _raw_path(request) != f"{self._options.prefix}/{UI}"
        found = files.respond(segments or ("",) if has_slash else (), request.headers)
        return RestResponse(
            found.status,
            raw=found.content,
            content_type=found.content_type,
            headers=found.headers,
        )

    async def _within_time(
        self, request: Request, route: Route, params: Mapping[str, str]
    ) -> RestResponse:
        health = route.path == "/health"
        limit = (
            self._options.health_timeout_seconds
            if health
            else self._options.request_timeout_seconds
        )
        try:
            async with asyncio.timeout(limit), self._reader.read(request) as body:
                check_entity(request.headers, route, body)
                return await self._ask(request, route, self._call(request, params, body))
        except TimeoutError as error:
            if health:
                return health_response("unhealthy", _UNHEALTHY)
            raise RequestError(500, TIMED_OUT) from error

    def _call(self, request: Request, params: Mapping[str, str], body: bytes) -> RestRequest:
        return RestRequest(
            self._herder,
            self._options,
            params,
            parse_query(_query(request)),
            body,
            _base_url(request) + self._options.prefix,
            "x-connect-authorization" in request.headers,
            request.scope.get(USER),
        )

    async def _ask(self, request: Request, route: Route, call: RestRequest) -> RestResponse:
        kind = "health" if route.path == "/health" else "read" if route.reads else "write"
        result = await anyio.to_thread.run_sync(
            functools.partial(self._work, request, route, call),
            abandon_on_cancel=True,
            limiter=self._thread_limits[kind],
        )
        if isinstance(result, RestResponse):
            return result
        limit = self._options.request_timeout_seconds
        outgoing = _outgoing(request, call.body)
        forwarded = await forward(
            outgoing,
            result.leader_url,
            limit,
            self._options.client_tls,
            self._options.signer,
        )
        return _forwarded_response(forwarded, call)

    def _work(self, request: Request, route: Route, call: RestRequest) -> RestResponse | NotLeader:
        """The part of a request that runs on a thread, including encoding and error handling.

        An error that crossed to the event loop would keep the body in a cycle of references.
        """
        try:
            if not self._is_ready and not route.is_early:
                self._wait_ready()
            self._check_sender(request, route, call.body)
            response = _encoded(route.handler(call))
        except NotLeader as error:
            return NotLeader(error.leader_url)
        except Exception as error:  # noqa: BLE001  the boundary
            return _failure(error, route.path)
        _note_action(route, call)
        return response

    def _check_sender(self, request: Request, route: Route, body: bytes) -> None:
        """Check the signature of a request that claims to come from another worker.

        `forward=false` alone is no such claim: as in Connect, users may ask this worker only.
        The internal endpoints check signatures themselves.
        """
        signer = self._options.signer
        if signer is None or route.reads or route.is_internal:
            return
        hops = parse_query(_query(request)).get("forward", [""])
        if hops[0].lower() == "true" or SIGNATURE in request.headers:
            signer.check(request.method, _target(request), body, request.headers)

    def _wait_ready(self) -> None:
        """Wait: a worker that has not read its topics does not know which connectors exist."""
        deadline = time.monotonic() + self._options.request_timeout_seconds
        while self._herder.health()[0] == "starting":
            if time.monotonic() > deadline:
                raise RequestError(500, TIMED_OUT)
            time.sleep(_LOOK_SECONDS)
        self._is_ready = True


def _note_action(route: Route, call: RestRequest) -> None:
    """Who changed something: an event, on the worker that did it."""
    if route.reads or call.user is None:
        return
    name, task = call.params.get("connector", ""), call.params.get("task", "")
    about = f": {name}{f' task {task}' if task else ''}" if name else ""
    log.info(
        "%s over REST: %s%s",
        call.user.name,
        f"{route.summary[0].lower()}{route.summary[1:]}",
        about,
        extra=event(EventKind.ACTION, connector=name, task=task, user=call.user.name),
    )


def _encoded(response: RestResponse) -> RestResponse:
    if response.body is None:
        return response
    return replace(response, body=None, raw=encode_json(response.body))


def _raw_path(request: Request) -> str:
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return raw.decode("latin-1").partition("?")[0].partition("#")[0]


def _query(request: Request) -> str:
    raw: bytes = request.scope["query_string"]
    return raw.decode("latin-1")


def _target(request: Request) -> bytes:
    """Path and query as they were sent."""
    return f"{_raw_path(request)}?{_query(request)}".encode("latin-1")


def _base_url(request: Request) -> str:
    """As the client spelled it; starlette's own rejects some Host headers."""
    host, port = request.scope["server"]
    return f"{request.scope['scheme']}://{request.headers.get('host', f'{host}:{port}')}"


def _outgoing(request: Request, body: bytes) -> ForwardedRequest:
    return ForwardedRequest(
        request.method,
        _raw_path(request),
        _query(request),
        request.headers,
        body,
        is_https=request.scope["scheme"] == "https",
    )


def _failure(error: Exception, what: str) -> RestResponse:
    known = error_of(error, what)
    return _error_response(known.status, known.text)


def _error_response(
    status: int, message: str, content_type: str = "application/json"
) -> RestResponse:
    body = {"error_code": int(status), "message": message}
    return RestResponse(int(status), body, content_type=content_type)


def _allowed_response(match: Match, accept: str) -> RestResponse:
    """The methods as text; in the header only if the client asks for another type."""
    methods = match.allowed
    allow = {"Allow": ",".join(methods)}
    wanted = accept.partition(",")[0].partition(";")[0].strip()
    if wanted in ("", "*/*", "text/*", "text/plain"):
        return RestResponse(
            raw=", ".join(methods).encode(), content_type="text/plain", headers=allow
        )
    return RestResponse(headers={**allow, "Content-Type": wanted})


def _forwarded_response(forwarded: Forwarded, call: RestRequest) -> RestResponse:
    """The leader's response; Location names the worker that the client contacted."""
    if forwarded.status == HTTPStatus.CREATED:
        name = json.loads(forwarded.body)["name"]
        return RestResponse(201, raw=forwarded.body, headers=call.location(name))
    return RestResponse(forwarded.status, raw=forwarded.body)
