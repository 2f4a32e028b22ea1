"""The server itself: listeners, start, stop, many requests at once."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time

import httpx
import pytest

from sparkmirror.errors import AddressTaken, ConfigError, LocalProtocolError
from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestRequest
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.retry import wait_for
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import request


def test_ports_are_known_before_the_server_starts() -> None:
    with RestServer([("127.0.0.1", 0), ("127.0.0.1", 0)]).bind() as server:
        first, second = server.ports
        assert first != second
        server.start(make_app(FakeHerder()))
        assert server.ports == [first, second]
        for port in server.ports:
            assert request(f"http://127.0.0.1:{port}", "GET", "/connectors").json() == []


def test_empty_host_is_every_address() -> None:
    with RestServer([("", 0)]).start(make_app(FakeHerder())) as server:
        assert request(f"http://127.0.0.1:{server.ports[0]}", "GET", "/").status_code == 200


def test_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressTaken, match=rf"cannot listen at 127\.0\.0\.1:{port}: .*in use"):
            RestServer([("127.0.0.1", 0), ("127.0.0.1", port)]).bind()


def test_an_address_that_can_never_be_had_is_a_mistake_in_the_file() -> None:
    with pytest.raises(ConfigError, match=r"listeners=no\.such\.host\.invalid:0: cannot listen"):
        RestServer([("no.such.host.invalid", 0)]).bind()


def test_server_starts_only_once() -> None:
    app = make_app(FakeHerder())
    with (
        RestServer([("127.0.0.1", 0)]).start(app) as server,
        pytest.raises(LocalProtocolError, match="only once"),
    ):
        server.start(app)


def test_stop_does_not_wait_for_clients_that_stay_connected() -> None:
    before = set(threading.enumerate())
    herder = FakeHerder()
    server = RestServer([("127.0.0.1", 0)]).start(make_app(herder))
    with httpx.Client(
        base_url=f"http://127.0.0.1:{server.ports[0]}", trust_env=False, verify=False
    ) as client:
        assert client.get("/").status_code == 200  # the connection stays open
        server.stop()
    wait_for(
        lambda: set(threading.enumerate()) <= before,
        within=10,
        describe=lambda: f"no threads but those of before: {threading.enumerate()}",
    )
    with pytest.raises(httpx.TransportError):
        request(f"http://127.0.0.1:{server.ports[0]}", "GET", "/")


def test_stop_does_not_wait_for_a_herder_that_hangs() -> None:
    herder = FakeHerder()
    herder.gate.clear()
    server = RestServer([("127.0.0.1", 0)]).start(make_app(herder))
    url = f"http://127.0.0.1:{server.ports[0]}"
    hanging = threading.Thread(target=_ignore_errors, args=(url,))
    hanging.start()
    while not herder.asked:
        time.sleep(0.01)
    server.stop()
    assert not server._is_alive()
    herder.gate.set()
    hanging.join(10)


def _ignore_errors(url: str) -> None:
    try:
        request(url, "DELETE", "/connectors/x")
    except httpx.HTTPError:
        return


def test_a_thousand_requests_at_once(serve: Serve, herder: FakeHerder) -> None:
    url = httpx.URL(serve(herder))

    async def send_all() -> list[bytes]:
        # Plain sockets: the pool of an HTTP client is slow with this many.
        return await asyncio.gather(*(_status_line(url) for _ in range(1000)))

    assert set(asyncio.run(send_all())) == {b"HTTP/1.1 200 OK\r\n"}


async def _status_line(url: httpx.URL) -> bytes:
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(b"GET /connectors?expand=status HTTP/1.1\r\nHost: x\r\n\r\n")
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return line


def test_reads_and_health_continue_while_all_writes_wait(serve: Serve, herder: FakeHerder) -> None:
    herder.gate.clear()
    url = serve(herder)

    async def look() -> tuple[int, int]:
        async with httpx.AsyncClient(
            timeout=60, trust_env=False, verify=False, limits=_MANY
        ) as client:
            waiting = [asyncio.create_task(client.delete(f"{url}/connectors/x")) for _ in range(80)]
            while len(herder.asked) < 32:
                await asyncio.sleep(0.01)
            health = await client.get(f"{url}/health")
            names = await client.get(f"{url}/connectors")
            herder.gate.set()
            assert {response.status_code for response in await asyncio.gather(*waiting)} == {404}
            return health.status_code, names.status_code

    assert asyncio.run(look()) == (200, 200)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/connectors", 200), ("DELETE", "/connectors/x", 404), ("POST", "/connectors", 500)],
    ids=["good", "refused", "without a body"],
)
def test_nothing_of_a_request_is_kept(
    serve: Serve, herder: FakeHerder, method: str, path: str, status: int
) -> None:
    url = serve(herder)
    gc.collect()
    others = _calls()  # which log records of other tests keep, for instance
    gc.disable()  # it must not need to look for cycles: bodies can be large
    try:
        assert request(url, method, path).status_code == status
        wait_for(lambda: _calls() <= others, within=5, describe="the call is gone")
    finally:
        gc.enable()


def _calls() -> set[int]:
    return {id(kept) for kept in gc.get_objects() if isinstance(kept, RestRequest)}


_MANY = httpx.Limits(max_connections=100)
