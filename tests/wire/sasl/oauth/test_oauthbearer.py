"""Tokens: what is sent, what they claim, where they come from."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.masking import mask
from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.sasl.oauth import jwt
from sparkmirror.wire.sasl.oauth.jwt import BearerToken, read_token, unsecured_token
from sparkmirror.wire.sasl.oauth.oauthbearer import OAuthBearer, check_extensions, clock_advice
from sparkmirror.wire.sasl.oauth.tokens import (
    EndpointTokens,
    FileTokens,
    UnsecuredTokens,
    client_credentials,
)
from tests.token_server import CLIENT, SECRET, TokenServer

NOW = 1_700_000_000.0


@pytest.fixture(scope="module")
def server() -> Iterator[TokenServer]:
    with TokenServer() as server:
        yield server


def endpoint(server: TokenServer, **changes: Any) -> EndpointTokens:
    values: dict[str, Any] = {
        "url": server.token_url,
        "headers": lambda: client_credentials(CLIENT, SECRET, urlencode=False),
        "form": lambda: {"grant_type": "client_credentials", "scope": "kafka"},
        "backoff_seconds": 0.01,
        "backoff_max_seconds": 0.2,
    }
    return EndpointTokens(**(values | changes))


def test_message() -> None:
    assert OAuthBearer(BearerToken("abc", "u", 0, 1)).start() == b"n,,\x01auth=Bearer abc\x01\x01"
    with_more = BearerToken("abc", "u", 0, 1, {"logicalCluster": "lkc-1", "pool": "p"})
    assert OAuthBearer(with_more).start() == (
        b"n,,\x01auth=Bearer abc\x01logicalCluster=lkc-1\x01pool=p\x01\x01"
    )


def test_responses() -> None:
    mechanism = OAuthBearer(BearerToken("abc", "u", 0, 1))
    assert mechanism.respond(b'{"status":"invalid_token"}') == b"\x01"
    assert mechanism.respond(b"") is None


@pytest.mark.parametrize("bad", [{"auth": "x"}, {"a1": "x"}, {"a": ""}, {"a": "\x01"}])
def test_extensions_that_cannot_travel(bad: dict[str, str]) -> None:
    with pytest.raises(AuthenticationError, match="extension"):
        check_extensions(bad)


def test_a_tokens_life_is_what_it_claims() -> None:
    text = unsecured_token({"sub": "alice", "iat": NOW - 10, "exp": NOW + 50})
    token = read_token(text, NOW, "here")
    assert (token.subject, token.starts_at, token.expires_at) == ("alice", NOW - 10, NOW + 50)
    assert text not in repr(token)
    assert mask(f"sent {text} to a broker") == "sent [hidden] to a broker"


@pytest.mark.parametrize(
    "text", ["opaque", "a.b.c", "a.bm90anNvbg.c", f"a.{jwt.encode_part(b'[1]')}.c"]
)
def test_other_tokens_are_read_again_after_a_while(text: str) -> None:
    token = read_token(text, NOW, "here")
    assert (token.text, token.expires_at) == (text, NOW + jwt.UNKNOWN_LIFE_SECONDS)


def test_a_token_of_the_future_begins_now() -> None:
    text = unsecured_token({"iat": NOW + 100, "exp": NOW + 200})
    assert read_token(text, NOW, "here").starts_at == NOW


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no token"),
        ("a b", "no token"),
        ("a\x01b", "no token"),
        (unsecured_token({"exp": NOW - 90}), "expired 90 s ago by this machine's clock"),
    ],
)
def test_tokens_that_cannot_be_sent(text: str, reason: str) -> None:
    with pytest.raises(AuthenticationError, match=reason):
        read_token(text, NOW, "here")


def test_unsecured_tokens_have_the_claims_of_the_options() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_level": "7",
        "unsecuredLoginListClaim_scope": ",read,write",
        "unsecuredLoginLifetimeSeconds": "60",
        "debug": "true",
    }
    token = UnsecuredTokens(options).fetch()
    claims = jwt._claims(token.text)
    assert claims.pop("exp") - claims.pop("iat") == pytest.approx(60)
    assert claims == {"sub": "alice", "level": 7.0, "scope": ["read", "write"]}
    assert token.text.endswith(".")
    assert token.subject == "alice"
    with pytest.raises(AuthenticationError, match="LifetimeSeconds is not a number"):
        UnsecuredTokens({"unsecuredLoginLifetimeSeconds": "soon"}).fetch()


def test_token_files(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(AuthenticationError, match="No such file"):
        FileTokens(str(file)).fetch()
    file.write_text(unsecured_token({"sub": "bob", "exp": time.time() + 100}) + "\n")
    assert FileTokens(str(file)).fetch().subject == "bob"
    file.write_bytes(b"\xff")
    with pytest.raises(AuthenticationError, match="holds no token"):
        FileTokens(str(file)).fetch()


def test_a_token_of_a_server(server: TokenServer) -> None:
    token = endpoint(server).fetch()
    assert token.subject == "alice"
    assert token.expires_at - token.starts_at == pytest.approx(server.life_seconds, abs=2)
    assert server.requests[-1] == {"grant_type": "client_credentials", "scope": "kafka"}


def test_ids_and_secrets_may_be_encoded() -> None:
    plain = client_credentials("a b", "c/d", urlencode=False)["Authorization"]
    encoded = client_credentials("a b", "c/d", urlencode=True)["Authorization"]
    assert plain == "Basic YSBiOmMvZA=="
    assert encoded == "Basic YStiOmMlMkZk"


def test_a_wrong_secret_is_reported_at_once(server: TokenServer) -> None:
    wrong = endpoint(server, headers=lambda: client_credentials(CLIENT, "hush", urlencode=False))
    asked = len(server.requests)
    with pytest.raises(AuthenticationError, match=r"HTTP status 401 \(invalid_client\)") as caught:
        wrong.fetch()
    assert len(server.requests) == asked + 1
    assert "hush" not in str(caught.value)
    assert server.token_url in str(caught.value)


def test_a_server_that_is_not_well_is_asked_again(server: TokenServer) -> None:
    server.failures = 2
    assert endpoint(server, backoff_max_seconds=20.0).fetch().subject == "alice"
    server.failures = 1000
    with pytest.raises(AuthenticationError, match="HTTP status 503"):
        endpoint(server).fetch()
    server.failures = 0


def test_a_server_that_is_down() -> None:
    tokens = endpoint(TokenServer.nowhere())
    with pytest.raises(AuthenticationError, match=r"get a token from http://.*Connection refused"):
        tokens.fetch()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "not the JSON"),
        (b"[]", "not the JSON"),
        (b"{}", "neither access_token nor id_token"),
        (json.dumps({"access_token": "a b"}).encode(), "no token that could be sent"),
    ],
)
def test_responses_that_make_no_sense(server: TokenServer, body: bytes, reason: str) -> None:
    server.body = body
    try:
        with pytest.raises(AuthenticationError, match=reason):
            endpoint(server).fetch()
    finally:
        server.body = None


def test_secrets_do_not_follow_a_redirect(server: TokenServer) -> None:
    server.redirect = True
    try:
        with pytest.raises(AuthenticationError, match="HTTP status 302"):
            endpoint(server).fetch()
    finally:
        server.redirect = False


def test_clocks_that_differ_are_seen(server: TokenServer) -> None:
    server.skew_seconds = -120.0
    try:
        tokens = endpoint(server)
        tokens.fetch()
    finally:
        server.skew_seconds = 0.0
    assert tokens.skew_seconds == pytest.approx(120, abs=3)
    assert clock_advice(tokens.skew_seconds).endswith("ahead of the server's: correct it")
    assert clock_advice(1.0) == ""


@pytest.mark.parametrize("url", ["ftp://h/", "nonsense", "http://", "https://[", "file:/etc/x"])
def test_addresses_that_are_none(server: TokenServer, url: str) -> None:
    with pytest.raises(AuthenticationError, match="URL"):
        endpoint(server, url=url).fetch()
