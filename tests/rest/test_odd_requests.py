"""Bad requests get the responses of a genuine worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.rest_server import RestServer
from tests.golden_rest.odd_requests import OddRequest, load_odd_requests, send
from tests.rest.fake_herder import FakeHerder

_REQUESTS = load_odd_requests()


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with RestServer([("127.0.0.1", 0)]).start(make_app(FakeHerder())) as server:
        yield f"http://127.0.0.1:{server.ports[0]}"


@pytest.mark.parametrize("odd", _REQUESTS, ids=[odd.name for odd in _REQUESTS])
def test_odd_request_gets_a_genuine_workers_response(base_url: str, odd: OddRequest) -> None:
    assert send(base_url, odd.data) == odd.answer
