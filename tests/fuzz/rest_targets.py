"""What clients of the REST API send: request_bodies, and whole requests."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from sparkmirror.connect.entities import RequestError, TargetState
from sparkmirror.errors import MirrorError
from sparkmirror.rest.connect_api import ConnectApi, make_app
from sparkmirror.rest.entities import request_bodies
from sparkmirror.rest.exception_mapper import JsonError
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.security.users import Users
from sparkmirror.tools.deploy.rest_client import ConnectClient
from tests.fuzz.target import Choices, Target
from tests.golden_rest.odd_requests import load_odd_requests
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import HEARTBEAT

PARSERS: tuple[Callable[[bytes], object], ...] = (
    request_bodies.parse_config,
    request_bodies.parse_patch,
    request_bodies.parse_create,
    request_bodies.parse_offsets,
    request_bodies.parse_level,
    request_bodies.check_task_configs,
)


def run_bodies(data: bytes) -> None:
    """A body of one of the kinds: read, or refused with a text that can be sent."""
    choices = Choices(data)
    parse = choices.pick(PARSERS)
    body = choices.rest()
    try:
        value = parse(body)
    except (JsonError, RequestError) as error:
        request_bodies.encode_json(str(error))
        return
    if parse is request_bodies.parse_config:
        assert isinstance(value, dict)
        assert all(isinstance(key, str) for key in value)
        assert all(each is None or isinstance(each, str) for each in value.values())
        assert value.keys() == json.loads(body.decode("utf-8-sig")).keys()


def bodies_seeds() -> Iterator[bytes]:
    offsets = b'[{"partition":{"t":[1,{"a":2.5}],"p":0},"offset":{"offset":12}},{"offset":null}]'
    texts = (
        b'{"name":"a","tasks.max":4,"x":true,"y":null,"z":1.5e3}',
        b'{"name":"a","config":{"connector.class":"x"},"initial_state":"PAUSED"}',
        b'{"offsets":' + offsets + b"}",
        b'{"level":"DEBUG"}',
        b'[{"a":"b"}]',
        b'\xef\xbb\xbf{"a":"\\u00e4\\ud83d\\ude00\xc3\xa4"}',
    )
    for number in range(len(PARSERS)):
        yield from (bytes((number,)) + text for text in texts)
    yield from (b"\0" + odd.data.partition(b"\r\n\r\n")[2] for odd in load_odd_requests())


# -- requests -------------------------------------------------------------------------------------


class _Errors(logging.Handler):
    """Makes a bug of what REST calls a fault of its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record)


_FOLDER = tempfile.TemporaryDirectory(prefix="sparkmirror-fuzz-")
_errors = _Errors()
_loop = asyncio.new_event_loop()


def run_requests(data: bytes) -> None:
    """A request as HTTP carries it: first line, headers, body."""
    log = logging.getLogger("sparkmirror.rest")
    if _errors not in log.handlers:
        log.addHandler(_errors)
        log.propagate = False
    scope, body = _scope(data)
    status, response = _loop.run_until_complete(_ask(scope, body))
    found, _errors.found = _errors.found, []
    for record in found:
        assert record.exc_info is not None
        error = record.exc_info[1]
        assert isinstance(error, BaseException)
        raise AssertionError(f"{scope['path']}: {status} {response[:200]!r}") from error
    assert 100 <= status < 600


def _scope(data: bytes) -> tuple[dict[str, Any], bytes]:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    method, _, target = first.partition(b" ")
    raw_path, _, query = target.partition(b" ")[0].partition(b"?")
    headers = [(name.strip().lower(), value.strip()) for name, _, value in _split(lines)]
    scope = {
        "type": "http", "http_version": "1.1", "scheme": "http",
        "method": method.decode("latin-1").upper() or "GET",
        "path": raw_path.decode(errors="replace"), "raw_path": b"/" + raw_path.lstrip(b"/"),
        "query_string": query, "headers": headers, "server": ("127.0.0.1", 8083),
        "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip
    return scope, body


def _split(lines: list[bytes]) -> Iterator[tuple[bytes, bytes, bytes]]:
    return (line.partition(b":") for line in lines if b":" in line)


async def _ask(scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    # With a header for it, also passwords are looked at.
    has_users = any(name in (b"authorization", b"origin") for name, _ in scope["headers"])
    herder, app = _app(has_users=has_users)
    herder.__init__()  # type: ignore[misc]  # as new: making an application takes long
    herder.create("h", {"name": "h", **HEARTBEAT}, TargetState.STOPPED)
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])


@functools.cache
def _app(*, has_users: bool) -> tuple[FakeHerder, ConnectApi]:
    path = Path(_FOLDER.name) / "users.properties"
    path.write_text("me: changeit\nreader: changeit\n")
    users = Users(path, ["reader"]) if has_users else None
    herder = FakeHerder()
    return herder, make_app(herder, RestOptions(allow_origin="https://page", users=users))


def requests_seeds() -> Iterator[bytes]:
    yield from (odd.data for odd in load_odd_requests())
    config = b'{"connector.class":"MirrorHeartbeatConnector"}'
    create = b'{"name":"h","config":' + config + b"}"
    head = b" HTTP/1.1\r\nHost: w\r\nContent-Type: application/json\r\n\r\n"
    yield b"POST /connectors" + head + create
    yield b"PUT /connectors/h/config?forward=false" + head + config
    yield b"PATCH /connectors/h/offsets" + head + b'{"offsets":[{"partition":{},"offset":{}}]}'
    yield b"POST /connectors/h/tasks/0/restart" + head
    yield b"PUT /admin/loggers/root?scope=cluster" + head + b'{"level":"INFO"}'
    for user in (b"Basic bWU6Y2hhbmdlaXQ=", b"Basic cmVhZGVyOmNoYW5nZWl0", b"Basic x"):
        login = b"\r\nAuthorization: " + user + b"\r\nOrigin: https://page\r\nHost: w\r\n\r\n"
        yield from (b"%s /connectors HTTP/1.1" % method + login for method in (b"GET", b"POST"))
    yield b"GET /connectors?expand=status&expand=info" + head


# -- responses of a worker -------------------------------------------------------------------------


def run_worker_responses(data: bytes) -> None:
    """What the deploy commands read: the server may be no worker at all."""
    choices = Choices(data)
    status, method = choices.pick((200, 201, 204, 302, 400, 401, 404, 500)), choices.number() % 5
    body = choices.rest()
    with ConnectClient("http://worker:8083", 0.0) as client:
        response = httpx.Response(status, content=body)
        client._http = httpx.Client(transport=httpx.MockTransport(lambda _: response))
        try:
            _ask_worker(client, method)
        except MirrorError as error:
            assert str(error)  # noqa: PT017


def _ask_worker(client: ConnectClient, method: int) -> None:
    if method == 0:
        client.check()
    elif method == 1:
        found = client.validate("x", b"{}")
        assert all(isinstance(each, str) for pair in found for each in pair)
    elif method == 2:
        status = client.status("x")
        for part in status.parts if status else ():
            assert isinstance(f"{part} {part.reason} {part.worker_id}", str)
    elif method == 3:
        config = client.config("x") or {}
        assert all(each is None or isinstance(each, str) for each in config.values())
    else:
        client.put_config("x", b"{}")
        client.delete("x")


def worker_responses_seeds() -> Iterator[bytes]:
    state = b'{"state":"FAILED","worker_id":"w:8083","trace":"Traceback \\n x"'
    bodies_ = (
        b'{"version":"4","commit":"c","kafka_cluster_id":"k"}',
        b'{"configs":[{"definition":{},"value":{"name":"a","errors":["no"]}}]}',
        b'{"name":"x","connector":' + state + b'},"tasks":[' + state + b',"id":0}]}',
        b'{"name":"x","tasks.max":"1"}',
        b'{"error_code":404,"message":"no"}',
    )
    for status in (0, 6, 7):
        yield from (bytes((status, at)) + body for at, body in enumerate(bodies_))


TARGETS = (
    Target("worker-responses", run_worker_responses, worker_responses_seeds),
    Target("bodies", run_bodies, bodies_seeds),
    Target("requests", run_requests, requests_seeds),
)
