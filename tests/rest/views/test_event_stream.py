"""Server-sent events: an overview at once, then when it changes, and heartbeats between."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.views.rows.common import Requester
from sparkmirror.rest.views import event_stream
from sparkmirror.rest.views.event_stream import EventStreams
from tests.monitoring.views.fakes import Scene, lag
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder


class FakeOverview:
    """Counts how often it is made; `value` is what it says."""

    def __init__(self) -> None:
        self.made = 0
        self.value: object = 1
        self.stopping = threading.Event()

    def make(self, requester: Requester) -> dict[str, Any]:
        self.made += 1
        if isinstance(self.value, MirrorError):
            raise self.value
        return {"now_ms": 1000 + self.made, "value": self.value, "who": requester.name}


@pytest.fixture
def overview(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOverview]:
    monkeypatch.setattr(event_stream, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(event_stream, "_STOP_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(event_stream, "_HEARTBEAT_SECONDS", 0.3)
    made = FakeOverview()
    yield made
    made.stopping.set()


@contextmanager
def following(url: str) -> Iterator[Iterator[str]]:
    with (
        httpx.Client(base_url=url, timeout=20, trust_env=False, verify=False) as client,
        client.stream("GET", "/sparkmirror/stream", headers={"accept": "text/event-stream"}) as got,
    ):
        assert got.status_code == 200
        assert got.headers["content-type"].startswith("text/event-stream")
        yield got.iter_lines()


def serve_streams(serve: Serve, herder: FakeHerder, overview: FakeOverview, scene: Scene) -> str:
    streams = EventStreams(overview.make, overview.stopping.is_set)
    return serve(herder, views=scene.views, streams=streams)


def next_data(lines: Iterator[str]) -> dict[str, Any]:
    for line in lines:
        if line.startswith("data: "):
            found: dict[str, Any] = json.loads(line.removeprefix("data: "))
            return found
    raise AssertionError("the stream has ended")


def test_an_overview_at_once_and_again_only_when_it_changes(
    serve: Serve, herder: FakeHerder, overview: FakeOverview
) -> None:
    with following(serve_streams(serve, herder, overview, Scene())) as lines:
        assert next(lines) == "retry: 2000"
        assert next_data(lines)["value"] == 1
        heard = next(line for line in lines if line)
        assert heard == ": heartbeat"
        overview.value = 2
        assert next_data(lines)["value"] == 2


def test_many_pages_cost_hardly_more_than_one(
    serve: Serve, herder: FakeHerder, overview: FakeOverview
) -> None:
    url = serve_streams(serve, herder, overview, Scene())
    with following(url) as one, following(url) as two, following(url) as three:
        for lines in (one, two, three):
            next_data(lines)
        assert overview.made <= 4


def test_a_failure_is_told_and_the_stream_goes_on(
    serve: Serve, herder: FakeHerder, overview: FakeOverview
) -> None:
    overview.value = MirrorError("it cannot be told")
    with following(serve_streams(serve, herder, overview, Scene())) as lines:
        assert next_data(lines)["message"] == "it cannot be told"
        overview.value = 3
        assert next_data(lines)["value"] == 3


def test_streams_end_when_the_worker_stops(
    serve: Serve, herder: FakeHerder, overview: FakeOverview
) -> None:
    with following(serve_streams(serve, herder, overview, Scene())) as lines:
        next_data(lines)
        overview.stopping.set()
        assert [line for line in lines if line.startswith("data")] == []


def test_there_is_a_limit(
    serve: Serve, herder: FakeHerder, overview: FakeOverview, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MOST_STREAMS", 1)
    url = serve_streams(serve, herder, overview, Scene())
    with following(url) as lines:
        next_data(lines)
        refused = httpx.get(f"{url}/sparkmirror/stream", trust_env=False)
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "10"


def test_the_real_overview_is_sent(serve: Serve, herder: FakeHerder) -> None:
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag()]
    stop = threading.Event()
    streams = EventStreams(scene.views.overview, stop.is_set)
    with following(serve(herder, views=scene.views, streams=streams)) as lines:
        assert next_data(lines)["flows"][0]["flow"] == "a->b"
        stop.set()
