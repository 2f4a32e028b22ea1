"""GET /metrics: who may have it, on which listeners, and when the worker is not ready yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sparkmirror.rest.metrics_api import metrics_app
from sparkmirror.rest.mirror_api import MirrorApi
from sparkmirror.rest.request import RestOptions, RestResponse
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.security.users import Users
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import request
from tests.rest.security.test_users import basic, quick_hash

TEXT = b"# TYPE up gauge\nup 1.0\n"
# What Prometheus sends.
READER = {"authorization": basic("reader:a-look")}
ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"


def metrics() -> RestResponse:
    return RestResponse(raw=TEXT, content_type="text/plain; version=0.0.4; charset=utf-8")


@pytest.fixture
def users(tmp_path: Path) -> Users:
    path = tmp_path / "users.properties"
    path.write_text(f"admin: {quick_hash('all-of-it')}\nreader: a-look\n")
    return Users(path, ["reader"])


@pytest.fixture
def own_port(users: Users) -> Iterator[str]:
    with RestServer([("127.0.0.1", 0)]) as server:
        server.start(metrics_app(RestOptions(users=users, metrics=metrics)))
        yield f"http://127.0.0.1:{server.ports[0]}"


def test_metrics_are_text_also_while_the_worker_starts(serve: Serve, herder: FakeHerder) -> None:
    herder.health_answer = "starting", ""
    url = serve(herder, metrics=metrics)
    response = request(url, "GET", "/metrics", headers={"accept": ACCEPT})
    assert (response.status_code, response.content) == (200, TEXT)
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert herder.asked == []


def test_a_genuine_workers_port_has_no_metrics(serve: Serve, herder: FakeHerder) -> None:
    assert request(serve(herder), "GET", "/metrics").status_code == 404


def test_metrics_can_only_be_read(serve: Serve, herder: FakeHerder) -> None:
    assert request(serve(herder, metrics=metrics), "POST", "/metrics", "{}").status_code == 405


def test_readers_may_scrape_and_strangers_may_not(
    serve: Serve, herder: FakeHerder, users: Users, own_port: str
) -> None:
    for url in (serve(herder, users=users, metrics=metrics), own_port):
        assert request(url, "GET", "/metrics").status_code == 401
        for login in ("reader:a-look", "admin:all-of-it"):
            response = request(url, "GET", "/metrics", headers={"authorization": basic(login)})
            assert response.content == TEXT


def test_the_port_of_its_own_has_nothing_else(own_port: str) -> None:
    for path in ("/", "/connectors", "/health", "/admin/loggers", "/a/b/connectors"):
        response = request(own_port, "GET", path, headers=READER)
        assert response.status_code == 404, path


def test_a_node_of_dedicated_mode_has_one_page_for_all_pairs() -> None:
    with RestServer([("127.0.0.1", 0)]) as server:
        server.start(MirrorApi([], RestOptions(metrics=metrics)))
        url = f"http://127.0.0.1:{server.ports[0]}"
        assert request(url, "GET", "/metrics").content == TEXT
        assert request(url, "GET", "/a/b/metrics").status_code == 404


def test_a_scrape_that_takes_long_keeps_nobody_else_waiting(
    serve: Serve, herder: FakeHerder
) -> None:
    released = threading.Event()

    def slow() -> RestResponse:
        assert released.wait(30)
        return metrics()

    url = serve(herder, metrics=slow)
    found: list[httpx.Response] = []
    scrape = threading.Thread(target=lambda: found.append(request(url, "GET", "/metrics")))
    scrape.start()
    assert request(url, "GET", "/connectors").status_code == 200
    released.set()
    scrape.join()
    assert found[0].content == TEXT
