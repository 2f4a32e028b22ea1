"""A REST server on a herder in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from tests.rest.fake_herder import FakeHerder
from tests.rest.golden_worker import GoldenWorker

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers: `serve(herder, allow_origin="*")` gives the URL."""
    with ExitStack() as stack:

        def start(herder: FakeHerder, **options: object) -> str:
            server = stack.enter_context(RestServer([("127.0.0.1", 0)]))
            server.start(make_app(herder, RestOptions(**options)))  # type: ignore[arg-type]
            return f"http://127.0.0.1:{server.ports[0]}"

        yield start


@pytest.fixture
def herder() -> FakeHerder:
    return FakeHerder()


@pytest.fixture
def golden_worker(tmp_path: Path) -> Iterator[GoldenWorker]:
    """The real herder with the connectors of the recordings, not served yet."""
    logging.getLogger("sparkmirror").setLevel(logging.INFO)  # as `sparkmirror worker` sets it
    worker = GoldenWorker(tmp_path)
    worker.start()
    yield worker
    worker.stop()


@pytest.fixture
def client(serve: Serve, herder: FakeHerder) -> Iterator[httpx.Client]:
    """A client of a server on `herder`."""
    with httpx.Client(base_url=serve(herder), timeout=20, trust_env=False, verify=False) as client:
        yield client
