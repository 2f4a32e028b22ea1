"""Where a REST API listens, and what it is called."""

from __future__ import annotations

import pytest

from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.worker.rest_keys import (
    REST_KEYS,
    HeaderRule,
    Listener,
    RestConfig,
    rest_config,
)

KEY_STORE = {"ssl.keystore.location": "/k"}


def parse(props: dict[str, str]) -> tuple[RestConfig, Findings]:
    settings = Settings(props, Findings())
    return rest_config(REST_KEYS.parse(*settings), settings), settings.findings


def rest(props: dict[str, str]) -> RestConfig:
    config, findings = parse(props)
    assert findings.errors == ()
    return config


def test_rest_has_connects_defaults() -> None:
    assert rest({}) == RestConfig(listeners=(Listener("http", "", 8083),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://:28082", [("http", "", 28082)]),
        ("HTTP://0.0.0.0:8083", [("http", "0.0.0.0", 8083)]),
        ("http://worker-1:8083, http://[::1]:0", [("http", "worker-1", 8083), ("http", "::1", 0)]),
    ],
)
def test_listeners(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert rest({"listeners": text}).listeners == tuple(Listener(*row) for row in expected)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("listeners", "", "is empty"),
        ("listeners", "8083", "'8083' is not a listener"),
        ("listeners", "ftp://:1", "'ftp://:1' is not a listener"),
        ("listeners", '"http://:1"', "'\"http://:1\"' is not a listener"),
        ("listeners", "http://:65536", "'http://:65536' is not a listener"),
        ("listeners", "http://:1,https://:2", "an https listener needs a key and a certificate"),
        ("admin.listeners", "https://:2", "an https listener needs a key and a certificate"),
        ("rest.advertised.port", "0", "out of range"),
        ("rest.advertised.host.name", "host:8083/x", "is not the name or address of a host"),
        ("rest.advertised.host.name", "user@host", "is not the name or address of a host"),
        ("rest.advertised.listener", "ftp", "not one of the allowed values"),
        ("rest.port", "x", "not a number of type INT"),
        ("response.http.headers.config", "set X-Frame-Options", "'set X-Frame-Options' is not"),
        ("response.http.headers.config", "put A: b", "'put A: b' is not a rule for a header"),
        ("response.http.headers.config", "set A: b\rc, set D: e", "not a list of rules"),
        ("response.http.headers.config", "set A: \u20ac", "'set A: \u20ac' has characters"),
        ("response.http.headers.config", "set A\xe9: b", "'set A\xe9: b' has characters"),
        ("response.http.headers.config", "setDate A: soon", "'setDate A: soon' has no time"),
        ("access.control.allow.origin", "https://a, *.b", "'*.b' is not a pattern"),
        ("listeners", "http://h:" + "1" * 5000, "'http://h:1"),
    ],
)
def test_bad_value_is_an_error(key: str, value: str, reason: str) -> None:
    _, findings = parse({key: value})
    assert [error.key for error in findings.errors] == [key]
    assert findings.errors[0].reason.startswith(reason)


@pytest.mark.parametrize(
    ("props", "expected"),
    [
        ({}, None),
        ({"admin.listeners": ""}, ()),
        ({"admin.listeners": "http://:1"}, (Listener("http", "", 1),)),
    ],
)
def test_admin_may_listen_elsewhere_or_not_at_all(
    props: dict[str, str], expected: tuple[Listener, ...] | None
) -> None:
    assert rest(props).admin_listeners == expected


@pytest.mark.parametrize(
    ("props", "listener", "warning"),
    [
        (
            {"rest.port": "8084"},
            ":8084",
            "rest.port: is an old spelling; write listeners=http://:80",
        ),
        ({"rest.host.name": "h"}, "h:8083", "rest.host.name: is an old spelling"),
        ({"rest.port": "1", "rest.host.name": "h"}, "h:1", "rest.port: is an old spelling"),
        ({"rest.port": "1", "listeners": "http://:2"}, ":2", "rest.port: has no effect: listeners"),
    ],
)
def test_old_spellings(props: dict[str, str], listener: str, warning: str) -> None:
    config, findings = parse(props)
    assert [found.address for found in config.listeners] == [listener]
    assert findings.errors == ()
    assert findings.warnings[0].startswith(warning)


@pytest.mark.parametrize(
    ("props", "bound_port", "url"),
    [
        ({}, 0, "http://own:8083"),
        ({"listeners": "http://:0"}, 5000, "http://own:5000"),
        ({"listeners": "http://h:1"}, 0, "http://h:1"),
        ({"rest.advertised.host.name": "a", "rest.advertised.port": "9"}, 0, "http://a:9"),
        ({"rest.advertised.host.name": "::1"}, 0, "http://[::1]:8083"),
        ({"rest.advertised.host.name": '"localhost"'}, 0, "http://localhost:8083"),
        ({"rest.advertised.host.name": "[fe80::1%eth0]"}, 0, "http://[fe80::1%eth0]:8083"),
        ({"listeners": "https://h:1"}, 0, "https://h:1"),
        ({"listeners": "https://a:1,http://b:2,http://c:3"}, 0, "http://b:2"),
        (
            {"listeners": "http://a:1,https://b:2", "rest.advertised.listener": "HTTPS"},
            0,
            "https://b:2",
        ),
        ({"rest.advertised.listener": "https"}, 0, "https://own:8083"),
    ],
)
def test_advertised_address(props: dict[str, str], bound_port: int, url: str) -> None:
    assert str(rest(KEY_STORE | props).advertised("own", bound_port)) == url


def test_headers_for_every_response() -> None:
    text = 'set X-Frame-Options: DENY, "add Cache-Control: no-cache, no-store", SETDATE Expires:1'
    assert rest({"response.http.headers.config": text}).response_headers == (
        HeaderRule("set", "X-Frame-Options", "DENY"),
        HeaderRule("add", "Cache-Control", "no-cache, no-store"),
        HeaderRule("setDate", "Expires", "1"),
    )


def test_access_from_browsers() -> None:
    config = rest({"access.control.allow.origin": "*", "access.control.allow.methods": "GET,PUT"})
    assert (config.allow_origin, config.allow_methods) == ("*", "GET,PUT")
