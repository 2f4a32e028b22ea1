"""Headers that settings add to answers."""

from __future__ import annotations

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.rest.headers import HeaderRule, apply_rules, parse_header_rules
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import request


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("set X-Frame-Options: DENY", [HeaderRule("set", "X-Frame-Options", "DENY")]),
        (
            'add A: b, "set Cache-Control: no-cache, no-store", setDate Expires:31540000000',
            [
                HeaderRule("add", "A", "b"),
                HeaderRule("set", "Cache-Control", "no-cache, no-store"),
                HeaderRule("setDate", "Expires", "31540000000"),
            ],
        ),
        ("set Link: <http://x:1/>", [HeaderRule("set", "Link", "<http://x:1/>")]),
    ],
    ids=["none", "one", "with commas", "with colons"],
)
def test_rules_are_parsed(text: str, expected: list[HeaderRule]) -> None:
    assert parse_header_rules(text) == expected


@pytest.mark.parametrize("text", ["X: y", "put X: y", "set X", "setDate X: soon"])
def test_bad_rules_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"response\.http\.headers\.config"):
        parse_header_rules(text)


def test_set_replaces_and_add_does_not() -> None:
    headers = [("Cache-Control", "a"), ("X", "1")]
    rules = parse_header_rules("set cache-control: b, add X: 2")
    assert apply_rules(rules, headers) == [("X", "1"), ("cache-control", "b"), ("X", "2")]


def test_dates_count_from_now() -> None:
    (header,) = apply_rules(parse_header_rules("setDate Expires: 0"), [])
    assert header[1].endswith(" GMT")


def test_answers_have_the_headers(serve: Serve, herder: FakeHerder) -> None:
    url = serve(herder, response_headers="set X-Frame-Options: DENY, add X-A: b")
    for path in ("/", "/connectors/nope", "/nope"):
        headers = request(url, "GET", path).headers
        assert (headers["x-frame-options"], headers["x-a"]) == ("DENY", "b")
