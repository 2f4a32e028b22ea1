"""Whom a REST API lets in, and over which TLS."""

from __future__ import annotations

import pytest

from sparkmirror.config.config_def import Secret
from sparkmirror.config.worker.rest_security import BASIC_AUTH, RestTls
from tests.config.worker.test_rest_keys import parse, rest

_HTTPS = {"listeners": "https://:8443"}


@pytest.mark.parametrize(
    ("props", "expected"),
    [
        (
            {
                "ssl.keystore.location": "/k",
                "ssl.keystore.password": "x",
                "ssl.client.auth": "none",
            },
            RestTls({"ssl.keystore.location": "/k", "ssl.keystore.password": Secret("x")}),
        ),
        (
            {
                "ssl.keystore.location": "/brokers",
                "ssl.keystore.password": "x",
                "listeners.https.ssl.keystore.location": "/rest",
                "listeners.https.ssl.truststore.location": "/ca",
                "listeners.https.ssl.client.auth": "required",
            },
            RestTls(
                {"ssl.keystore.location": "/rest", "ssl.truststore.location": "/ca"},
                "required",
                "listeners.https.",
            ),
        ),
        (
            {"ssl.keystore.key": "PEM", "ssl.client.auth": "requested"},
            RestTls({"ssl.keystore.key": Secret("PEM")}, "requested"),
        ),
    ],
    ids=["shared", "own keys alone", "inline"],
)
def test_tls_of_https_listeners(props: dict[str, str], expected: RestTls) -> None:
    assert rest(_HTTPS | props).tls == expected


def test_admin_listeners_have_their_own_tls() -> None:
    config = rest(
        _HTTPS
        | {
            "admin.listeners": "https://:9443",
            "ssl.keystore.location": "/main",
            "admin.listeners.https.ssl.keystore.location": "/admin",
        }
    )
    assert config.tls.security == {"ssl.keystore.location": "/main"}
    assert config.admin_tls.security == {"ssl.keystore.location": "/admin"}


@pytest.mark.parametrize(
    ("props", "error"),
    [
        (_HTTPS, "listeners: an https listener needs a key and a certificate; set ssl.keystore.lo"),
        (
            _HTTPS | {"ssl.keystore.location": "/k", "listeners.https.ssl.protocol": "TLSv1.3"},
            "listeners: an https listener needs a key and a certificate; set listeners.https.ssl.k",
        ),
        (
            _HTTPS | {"ssl.keystore.location": "/k", "ssl.client.auth": "maybe"},
            "ssl.client.auth=maybe: not one of the allowed values",
        ),
        (
            _HTTPS
            | {"listeners.https.ssl.keystore.location": "/k"}
            | {"listeners.https.ssl.client.auth": "maybe"},
            "listeners.https.ssl.client.auth=maybe: not one of the allowed values",
        ),
        (
            _HTTPS | {"ssl.keystore.location": "/k", "ssl.client.auth": "required"},
            "certificate of any public CA would be admitted; set ssl.truststore.location or",
        ),
        (
            _HTTPS
            | {"ssl.truststore.location": "/brokers", "listeners.https.ssl.keystore.location": "/k"}
            | {"listeners.https.ssl.client.auth": "required"},
            "set listeners.https.ssl.truststore.location or",
        ),
        (
            _HTTPS
            | {"admin.listeners": "https://:9443", "ssl.keystore.location": "/k"}
            | {"admin.listeners.https.ssl.keystore.location": "/k"}
            | {"admin.listeners.https.ssl.client.auth": "required"},
            "admin.listeners.https.ssl.client.auth=required: without a trust store",
        ),
        (
            {"rest.extension.classes": f"{BASIC_AUTH},org.example.Lock"},
            "'org.example.Lock' is Java and cannot run here",
        ),
        ({"rest.basic.auth.users.file": ""}, "rest.basic.auth.users.file=: is empty"),
        ({"rest.max.request.bytes": "1"}, "rest.max.request.bytes=1: out of range"),
        ({"rest.max.requests.per.second": "-1"}, "out of range"),
    ],
)
def test_what_cannot_be_used(props: dict[str, str], error: str) -> None:
    _, findings = parse(props)
    assert len(findings.errors) == 1
    assert error in str(findings.errors[0])


def test_unknown_keys_under_the_prefix_are_reported() -> None:
    props = {"listeners.https.ssl.keystore.location": "/k", "listeners.https.ssl.keystroe": "x"}
    _, findings = parse(_HTTPS | props)
    assert findings.warnings == ("listeners.https.ssl.keystroe: unknown key, ignored",)


@pytest.mark.parametrize(
    ("props", "expected"),
    [
        ({}, False),
        ({"rest.extension.classes": ""}, False),
        ({"rest.extension.classes": BASIC_AUTH}, True),
        ({"rest.basic.auth.users.file": "/u"}, True),
    ],
)
def test_basic_auth(props: dict[str, str], expected: bool) -> None:
    assert rest(props).basic_auth == expected


_MTLS = {
    "ssl.keystore.location": "/k",
    "ssl.truststore.certificates": "PEM",
    "ssl.client.auth": "required",
}


@pytest.mark.parametrize(
    ("props", "found"),
    [
        ({}, ["http://:8083"]),
        ({"listeners": "http://127.0.0.1:1,http://localhost:2,http://[::1]:3"}, []),
        ({"listeners": "http://127.0.0.1:1,http://0.0.0.0:2"}, ["http://0.0.0.0:2"]),
        ({"listeners": "http://worker-1:1"}, ["http://worker-1:1"]),
        ({"rest.basic.auth.users.file": "/u"}, []),
        (_HTTPS | _MTLS, []),
        (_HTTPS | _MTLS | {"ssl.client.auth": "requested"}, ["https://:8443"]),
        (_HTTPS | _MTLS | {"listeners": "http://:1,https://:2"}, ["http://:1"]),
        (_HTTPS | _MTLS | {"admin.listeners": "http://:9"}, ["http://:9"]),
    ],
)
def test_listeners_that_are_open_to_everybody(props: dict[str, str], found: list[str]) -> None:
    assert [str(listener) for listener in rest(props).open_listeners] == found
