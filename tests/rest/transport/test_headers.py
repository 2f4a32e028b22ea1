"""Headers that settings add to responses."""

from __future__ import annotations

import pytest

from sparkmirror.config.worker.rest_keys import HeaderRule
from sparkmirror.rest.transport.headers import CrossOrigin, apply_rules
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import request


def test_set_replaces_and_add_does_not() -> None:
    headers = [("Cache-Control", "a"), ("X", "1")]
    rules = (HeaderRule("set", "cache-control", "b"), HeaderRule("add", "X", "2"))
    assert apply_rules(rules, headers) == [("X", "1"), ("cache-control", "b"), ("X", "2")]


def test_dates_count_from_now() -> None:
    (header,) = apply_rules((HeaderRule("setDate", "Expires", "86400000"),), [])
    assert header[1].endswith(" GMT")


def test_responses_have_the_headers(serve: Serve, herder: FakeHerder) -> None:
    rules = (HeaderRule("set", "X-Frame-Options", "DENY"), HeaderRule("add", "X-A", "b"))
    url = serve(herder, response_headers=rules)
    for path in ("/", "/connectors/nope", "/nope"):
        headers = request(url, "GET", path).headers
        assert (headers["x-frame-options"], headers["x-a"]) == ("DENY", "b")


_VARY = ("Vary", "Origin")
_GOOD = ("Access-Control-Allow-Origin", "http://good.example")
_MORE = [("Access-Control-Allow-Headers", "Content-Type"), ("Access-Control-Max-Age", "60")]


@pytest.mark.parametrize(
    ("settings", "method", "headers", "expected"),
    [
        (("", ""), "GET", {"origin": "http://good.example"}, []),
        (("*", ""), "GET", {}, [_VARY]),
        (("*", ""), "GET", {"origin": "http://good.example"}, [_VARY, _GOOD]),
        (("http://good.example", ""), "GET", {"origin": "http://good.example"}, [_VARY, _GOOD]),
        (("http://a,http://go.*", ""), "GET", {"origin": "http://good.example"}, [_VARY, _GOOD]),
        (("http://good.example", ""), "GET", {"origin": "http://evil.example"}, [_VARY]),
        (
            ("*", "GET, PUT"),
            "OPTIONS",
            {"origin": "http://good.example", "access-control-request-method": "PUT"},
            [_VARY, _GOOD, ("Access-Control-Allow-Methods", "GET,PUT"), *_MORE],
        ),
        (
            ("*", ""),
            "OPTIONS",
            {"origin": "http://good.example", "access-control-request-method": "PUT"},
            [_VARY, _GOOD, ("Access-Control-Allow-Methods", "GET,POST,HEAD"), *_MORE],
        ),
        (("*", ""), "OPTIONS", {"access-control-request-method": "PUT"}, [_VARY]),
    ],
    ids=["off", "no origin", "any", "named", "pattern", "other", "asked", "default", "no page"],
)
def test_pages_of_other_sites(
    settings: tuple[str, str],
    method: str,
    headers: dict[str, str],
    expected: list[tuple[str, str]],
) -> None:
    assert CrossOrigin(*settings).headers(method, headers) == expected
