"""The views of the page, `top` and the other commands: GET /sparkmirror/...

Runs on: worker, on threads of the REST API. Everything here only reads, so read-only users may.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from urllib.parse import unquote

from sparkmirror.connect.entities import RequestError
from sparkmirror.monitoring.views.rows.common import Requester
from sparkmirror.monitoring.views.views import Views
from sparkmirror.monitoring.views.wording.paging import USUAL_ROWS, BadQuery, NotThere, Query
from sparkmirror.rest.exception_mapper import NOT_FOUND
from sparkmirror.rest.request import ResourceMethod, RestRequest, RestResponse
from sparkmirror.rest.views.event_stream import RETRY_AFTER_SECONDS

OPERATOR, VIEWER = "operator", "viewer"
FULL = "Too many pages are open at this worker; close one, or open the page at another worker."
MOST_DIGITS = 9
_View = Callable[[RestRequest, Views], object]


def _view(handler: _View) -> ResourceMethod:
    """The response of a view, or what is wrong with the request."""

    @wraps(handler)
    def respond(call: RestRequest) -> RestResponse:
        views = call.options.views
        if views is None:
            raise RequestError(HTTPStatus.NOT_FOUND, NOT_FOUND)
        try:
            found = handler(call, views)
        except NotThere as error:
            raise RequestError(HTTPStatus.NOT_FOUND, str(error)) from error
        except BadQuery as error:
            raise RequestError(HTTPStatus.BAD_REQUEST, str(error)) from error
        return RestResponse(body=found, headers={"Cache-Control": "no-store"})

    return respond


def requester_of(call: RestRequest) -> Requester:
    """Who asks, and whether they may change something."""
    user = call.user
    if user is None:
        return Requester("", OPERATOR, not call.options.is_open)
    return Requester(user.name, OPERATOR if user.may_write else VIEWER, True)


def _text(call: RestRequest, name: str) -> str:
    return call.text(name) or ""


def _needed(call: RestRequest, name: str) -> str:
    value = _text(call, name)
    if not value:
        raise BadQuery(f"the parameter {name} is missing")
    return value


def _number(call: RestRequest, name: str, usual: int) -> int:
    text = _text(call, name)
    if not text:
        return usual
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS:
        raise BadQuery(f"{name}={text[:100]}: use a whole number")
    return int(text)


def _query(call: RestRequest, limit: int = USUAL_ROWS) -> Query:
    return Query(
        _text(call, "flow"),
        _text(call, "q"),
        _text(call, "state"),
        _text(call, "sort"),
        _text(call, "dir"),
        _number(call, "offset", 0),
        _number(call, "limit", limit),
    )


@_view
def show_overview(call: RestRequest, views: Views) -> object:
    return views.overview(requester_of(call))


@_view
def show_flows(call: RestRequest, views: Views) -> object:
    return views.flows(requester_of(call))


@_view
def show_flow(call: RestRequest, views: Views) -> object:
    return views.flow(requester_of(call), _needed(call, "flow"))


@_view
def show_history(call: RestRequest, views: Views) -> object:
    return views.history(requester_of(call), _needed(call, "flow"), _text(call, "range"))


@_view
def show_topics(call: RestRequest, views: Views) -> object:
    return views.topics(requester_of(call), _query(call))


@_view
def show_lag(call: RestRequest, views: Views) -> object:
    return views.lag(requester_of(call), _query(call))


@_view
def show_partitions(call: RestRequest, views: Views) -> object:
    return views.partitions(requester_of(call), _needed(call, "flow"), _needed(call, "topic"))


@_view
def show_unmirrored(call: RestRequest, views: Views) -> object:
    return views.unmirrored(requester_of(call), _query(call))


@_view
def show_groups(call: RestRequest, views: Views) -> object:
    return views.groups(requester_of(call), _query(call))


@_view
def show_group(call: RestRequest, views: Views) -> object:
    return views.group(requester_of(call), _needed(call, "flow"), _needed(call, "group"))


@_view
def show_all_connectors(call: RestRequest, views: Views) -> object:
    return views.connectors(requester_of(call), _text(call, "flow"))


@_view
def show_one_connector(call: RestRequest, views: Views) -> object:
    return views.connector(requester_of(call), _text(call, "prefix"), _needed(call, "name"))


@_view
def show_events(call: RestRequest, views: Views) -> object:
    kinds = [kind for kind in _text(call, "kind").split(",") if kind]
    return views.events(requester_of(call), _query(call, 500), kinds, _text(call, "since"))


@_view
def show_failover(call: RestRequest, views: Views) -> object:
    return views.failover(requester_of(call), _needed(call, "source"), _needed(call, "target"))


@_view
def show_figures(call: RestRequest, views: Views) -> object:
    """For the other workers of the group."""
    return views.figures(unquote(call.options.prefix))


def open_stream(call: RestRequest) -> RestResponse:
    """Server-sent events; the event loop writes them."""
    streams = call.options.streams
    if streams is None:
        raise RequestError(HTTPStatus.NOT_FOUND, NOT_FOUND)
    if streams.is_full:
        body = {"error_code": int(HTTPStatus.SERVICE_UNAVAILABLE), "message": FULL}
        retry = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        return RestResponse(HTTPStatus.SERVICE_UNAVAILABLE, body, headers=retry)
    return RestResponse(
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        stream=streams.stream(requester_of(call)),
    )
