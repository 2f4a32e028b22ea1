"""The REST API of a node of dedicated mode: Connect's own, below `/<source>/<target>`.

Runs on: worker, in the event loop of the REST server. Mirrors:
org.apache.kafka.connect.mirror.rest.MirrorRestServer (KIP-710), which has only what nodes need of
each other; here the states of connectors and tasks, restarts, pauses and offsets are there too.
Connectors themselves come from the mm2 file, so requests that would change their settings fail.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Protocol, cast
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sparkmirror.config.worker.inter_worker import InterWorkerConfig
from sparkmirror.connect.entities import Herder, Json
from sparkmirror.connect.group.session_keys import SessionKey
from sparkmirror.rest.connect_api import ConnectApi
from sparkmirror.rest.exception_mapper import NOT_FOUND, BadUri
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.signatures import RequestSigner
from sparkmirror.rest.transport.uris import split_path
from sparkmirror.rest.views.static_files import UI
from sparkmirror.types import FlowName

_HEALTH = ("unhealthy", "starting", "healthy")


class HerderOfPair(Protocol):
    """A pair of clusters; its herder may be replaced until it has started."""

    @property
    def name(self) -> FlowName: ...
    @property
    def herder(self) -> Herder: ...
    @property
    def inter_worker(self) -> InterWorkerConfig: ...
    def session_keys(self) -> Sequence[SessionKey]:
        """Keys with which the pair's nodes sign what they send to each other."""


class MirrorApi:
    """An ASGI application. It may be called in one event loop only."""

    def __init__(self, pairs: Sequence[HerderOfPair], options: RestOptions) -> None:
        self._options = options
        self._pairs = {(each.name.source, each.name.target): each for each in pairs}
        self._node = ConnectApi(cast("Herder", _Node(pairs)), options)
        self._apis: dict[FlowName, tuple[Herder, ConnectApi]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app(Request(scope))
        if app is None:
            body = {"error_code": int(HTTPStatus.NOT_FOUND), "message": NOT_FOUND}
            response = Response(json.dumps(body), HTTPStatus.NOT_FOUND)
            await response(scope, receive, send)
        else:
            await app(scope, receive, send)

    def _app(self, request: Request) -> ConnectApi | None:
        raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
        try:
            segments = split_path(raw.decode("latin-1").partition("?")[0])
        except BadUri:
            return self._node
        if segments in ((), ("",), ("health",), ("metrics",)):
            return self._node
        pair = self._pairs.get((segments[0], segments[1])) if len(segments) > 1 else None
        if pair is not None:
            return self._api_of(pair)
        return self._node if segments[0] in (UI, "sparkmirror") else None

    def _api_of(self, pair: HerderOfPair) -> ConnectApi:
        herder, api = self._apis.get(pair.name, (None, None))
        if herder is not pair.herder or api is None:
            herder = pair.herder
            prefix = f"/{quote(pair.name.source, safe='')}/{quote(pair.name.target, safe='')}"
            signer = RequestSigner(pair.inter_worker, pair.session_keys)
            options = replace(
                self._options, signer=signer, prefix=prefix, metrics=None, streams=None, files=None
            )
            api = ConnectApi(herder, options)
            self._apis[pair.name] = herder, api
        return api


class _Node:
    """What `/` and `/health` say of all pairs."""

    def __init__(self, pairs: Sequence[HerderOfPair]) -> None:
        self._pairs = pairs

    def root(self) -> Json:
        first = self._pairs[0].herder.root()
        own = {name: first[name] for name in ("version", "commit")}
        return {**own, "flows": [str(pair.name) for pair in self._pairs]}

    def health(self) -> tuple[str, str]:
        """The worst of all."""
        found = [pair.herder.health() for pair in self._pairs]
        return min(found, key=lambda each: _HEALTH.index(each[0]))
