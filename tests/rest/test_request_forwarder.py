"""Requests that only the leader may handle, sent to workers that do not lead."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sparkmirror.connect.entities import RequestError
from sparkmirror.rest.exception_mapper import NO_LEADER, OTHER_USERS, TOO_MANY_HOPS
from sparkmirror.rest.request_forwarder import (
    ForwardedRequest,
    WorkerAddress,
    forward,
    leader_address,
    next_hop,
    target_url,
)
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.security.users import Users
from tests.dripping import dripping
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import HEARTBEAT, NAME, request


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "forward=true"),
        ("forward=true", "forward=false"),
        ("includeTasks=true&onlyFailed=false", "includeTasks=true&onlyFailed=false&forward=true"),
        ("forward=TRUE&a=b", "a=b&forward=false"),
    ],
)
def test_next_hop_says_which_hop_it_is(query: str, expected: str) -> None:
    assert next_hop(query) == expected


@pytest.mark.parametrize("query", ["forward=false", "forward=banana", "forward="])
def test_third_hop_is_rejected(query: str) -> None:
    with pytest.raises(RequestError, match=r"conflicting operation") as caught:
        next_hop(query)
    assert (caught.value.status, caught.value.text) == (409, TOO_MANY_HOPS)


def test_follower_responds_like_the_leader(serve: Serve, herder: FakeHerder) -> None:
    leader = serve(herder)
    follower = serve(FakeHerder(leader))
    created = request(follower, "POST", "/connectors", {"name": NAME, "config": HEARTBEAT})
    assert created.status_code == 201
    assert created.headers["location"] == f"{follower}/connectors/a-%3Eb.h"
    assert created.json()["config"] == {**HEARTBEAT, "name": NAME}
    again = request(follower, "POST", "/connectors", {"name": NAME, "config": HEARTBEAT})
    assert (again.status_code, again.json()) == (
        409,
        {"error_code": 409, "message": f"Connector {NAME} already exists"},
    )
    paused = request(follower, "PUT", "/connectors/a-%3Eb.h/pause")
    assert (paused.status_code, paused.content) == (202, b"")
    restarted = request(follower, "POST", "/connectors/a-%3Eb.h/restart?includeTasks=true")
    assert restarted.status_code == 202
    assert "restart True False" in herder.asked
    assert request(follower, "DELETE", "/connectors/a-%3Eb.h").status_code == 204
    assert herder.connectors() == []


def test_names_reach_the_leader_as_they_were_sent(serve: Serve, herder: FakeHerder) -> None:
    follower = serve(FakeHerder(serve(herder)))
    config = {**HEARTBEAT, "name": "odd ?#; name"}
    put = request(follower, "PUT", "/connectors/odd%20%3F%23%3B%20name/config", config)
    assert put.status_code == 201
    assert herder.connectors() == ["odd ?#; name"]


def test_two_hops_are_the_limit(serve: Serve) -> None:
    first, second, third = FakeHerder(), FakeHerder(), FakeHerder()
    urls = [serve(first), serve(second), serve(third)]
    first.leader_url, second.leader_url, third.leader_url = urls[1], urls[2], urls[0]
    response = request(urls[0], "DELETE", "/connectors/x")
    assert response.status_code == 409
    assert response.json() == {"error_code": 409, "message": TOO_MANY_HOPS}
    assert [herder.asked for herder in (first, second, third)] == [["delete"]] * 3


@pytest.fixture
def stranger() -> Iterator[tuple[int, list[str]]]:
    """The port of a server that is no worker, and the paths it was asked for."""
    asked: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["raw_path"].decode())
        await Response(status_code=204)(scope, receive, send)

    with RestServer([("127.0.0.1", 0)]).start(app) as server:
        yield server.ports[0], asked


@pytest.mark.parametrize(
    "target",
    [
        "connectors;@127.0.0.1:{}/x/pause",
        "@127.0.0.1:{}/x/pause",
        ".127.0.0.1:{}/connectors/x/pause",
        "http://127.0.0.1:{}/connectors/x/pause",
        "/connectors;@127.0.0.1:{}/x/pause",
        "//127.0.0.1:{}/connectors/x/pause",
    ],
)
def test_no_path_leads_to_another_host(
    serve: Serve, herder: FakeHerder, stranger: tuple[int, list[str]], target: str
) -> None:
    port, asked = stranger
    follower = serve(FakeHerder(serve(herder)))
    status = _status_of_raw(follower, "PUT", target.format(port))
    assert asked == []
    # A leading slash makes it a path, with a parameter that no resource looks at.
    assert status == (404 if target.startswith("/c") else 400)


def _status_of_raw(url: str, method: str, target: str) -> int:
    """Sends the target as it is, which no HTTP library does."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        lines = f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        connection.sendall(lines.encode())
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize(
    "leader_url",
    [
        "ftp://127.0.0.1:{}/",
        "http://user@127.0.0.1:{}/",
        "http://127.0.0.1:{}/path",
        "http://127.0.0.1:{}/?query",
        "http://127.0.0.1:{}/#fragment",
        "http://127.0.0.1:notaport/",
        "http://127.0.0.1/",
        "127.0.0.1:{}",
    ],
)
def test_leader_is_asked_only_at_a_plain_address(
    serve: Serve, stranger: tuple[int, list[str]], leader_url: str
) -> None:
    port, asked = stranger
    follower = serve(FakeHerder(leader_url.format(port)))
    response = request(follower, "DELETE", "/connectors/x")
    assert (response.status_code, asked) == (500, [])
    assert "http://host:port/" in response.json()["message"]


def test_request_over_https_is_not_sent_on_in_the_clear() -> None:
    sent = ForwardedRequest("DELETE", "/connectors/x", "", {}, b"", is_https=True)
    with pytest.raises(RequestError, match="https") as caught:
        leader_address("http://leader:8083/", sent)
    assert caught.value.status == 500
    assert leader_address("https://[::1]:8443/", sent) == WorkerAddress("https", "::1", 8443)


def test_path_without_a_leading_slash_is_not_sent_on() -> None:
    sent = ForwardedRequest("DELETE", "connectors/x", "", {}, b"")
    with pytest.raises(RequestError) as caught:
        target_url(WorkerAddress("http", "leader", 8083), sent, "forward=true")
    assert caught.value.status == 400


def test_conflict_without_a_leader(serve: Serve) -> None:
    response = request(serve(FakeHerder("")), "DELETE", "/connectors/x")
    assert response.status_code == 409
    assert response.json() == {"error_code": 409, "message": NO_LEADER}


def test_error_says_so_when_the_leader_is_gone(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    response = request(serve(FakeHerder(f"http://127.0.0.1:{port}/")), "DELETE", "/connectors/x")
    assert response.status_code == 500
    assert response.json()["message"].startswith("IO Error trying to forward REST request: ")


def test_credentials_are_passed_on(serve: Serve) -> None:
    seen: list[dict[str, str]] = []

    async def leader(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await Response(status_code=204)(scope, receive, send)

    with RestServer([("127.0.0.1", 0)]) as server:
        server.start(leader)
        follower = serve(FakeHerder(f"http://127.0.0.1:{server.ports[0]}"))
        headers = {"Authorization": "Basic c2VjcmV0", "Cookie": "private"}
        response = request(follower, "DELETE", "/connectors/x", headers=headers)
    assert response.status_code == 204
    assert seen[0]["authorization"] == "Basic c2VjcmV0"
    assert "cookie" not in seen[0]


def test_leader_with_other_users_is_reported(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("admin: all-of-it\n")
    leader_url = serve(FakeHerder(), users=Users(file))
    response = request(serve(FakeHerder(leader_url)), "DELETE", "/connectors/x")
    assert response.status_code == 401
    assert response.json() == {"error_code": 401, "message": OTHER_USERS}


def test_leader_that_sends_a_byte_now_and_then_is_given_up() -> None:
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    outgoing = ForwardedRequest("DELETE", "/connectors/x", "", {}, b"")
    with dripping(start=start) as url, pytest.raises(RequestError) as caught:
        asyncio.run(forward(outgoing, url, timeout_seconds=0.3))
    assert caught.value.status == 500
    assert "did not end within 0.3 s" in str(caught.value)
