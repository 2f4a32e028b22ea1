"""Paths are split and matched as Jersey does it."""

from __future__ import annotations

import pytest

from sparkmirror.rest.exception_mapper import BadUri, Unmatched
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.routes import ROUTES, Router
from sparkmirror.rest.transport.uris import check_path, match_path, parse_query, split_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", ()),
        ("/connectors", ("connectors",)),
        ("/connectors/", ("connectors",)),
        ("/connectors/a-%3Eb.x/status", ("connectors", "a->b.x", "status")),
        ("/connectors/a;b=c/status;d", ("connectors", "a", "status")),
        ("/connectors/a%3Bb", ("connectors", "a;b")),
        ("/a+b", ("a+b",)),
    ],
)
def test_paths_are_split_and_decoded(path: str, expected: tuple[str, ...]) -> None:
    check_path(path)
    assert split_path(path) == expected


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/a%2fb", "Ambiguous URI path separator"),
        ("/a%25", "Ambiguous URI path encoding"),
        ("//", "Ambiguous URI empty segment"),
        ("/a/%2e%2E/b", "Ambiguous URI path segment"),
        ("/a/.%2e", "Ambiguous URI path segment"),
        ("/%ff", "Bad UTF-8 encoding"),
        ("/a%", "Bad Request"),
        ("", "Bad Request"),
        ("*", "Bad Request"),
        ("connectors;@host:80/x/pause", "Bad Request"),
        ("/a<b", "Illegal Path Character"),
        ("/a\\b", "Suspicious Path Character, Illegal Path Character"),
    ],
)
def test_bad_paths_are_rejected(path: str, reason: str) -> None:
    with pytest.raises(BadUri) as caught:
        check_path(path)
    assert caught.value.reason == reason


def test_dots_in_names_are_no_problem() -> None:
    check_path("/connectors/a%2eb/..c/d.")


def test_templates() -> None:
    template = ("connectors", "{connector}", "tasks", "{task}")
    assert match_path(template, ("connectors", "x", "tasks", "0")) == {
        "connector": "x",
        "task": "0",
    }
    assert match_path(template, ("connectors", "x", "tasks")) is None
    assert match_path(template, ("connectors", "x", "task", "0")) is None


def test_no_two_routes_fit_one_request() -> None:
    router = Router(RestOptions())
    for route in ROUTES:
        assert router.match(split_path(route.path)).route(route.method) is route


def test_unknown_paths_and_methods() -> None:
    router = Router(RestOptions())
    with pytest.raises(Unmatched, match="HTTP 404 Not Found"):
        router.match(("nope",))
    with pytest.raises(Unmatched, match="HTTP 405 Method Not Allowed"):
        router.match(("connectors",)).route("PATCH")


def test_queries_keep_all_values() -> None:
    assert parse_query("a=1&b&a=2&c=%20") == {"a": ["1", "2"], "b": [""], "c": [" "]}
