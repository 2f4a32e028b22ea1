"""What comes back when a client logs in: from brokers, token servers, AWS, and files."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from unittest import mock

from sparkmirror.config.security.sasl import AWS_REGION
from sparkmirror.errors import MirrorError
from sparkmirror.wire.sasl import aws, messages
from sparkmirror.wire.sasl.oauth import web
from sparkmirror.wire.sasl.oauth.jwt import BearerToken, read_token, unsecured_token
from sparkmirror.wire.sasl.oauth.tokens import EndpointTokens, _error_of
from sparkmirror.wire.sasl.scram import Scram, ScramLogin
from sparkmirror.wire.secret_files import forget_provided, provide
from tests.fuzz.target import Choices, Target

NONCE = "fyko"
NOW = 1_700_000_000.0
FILE = "/fuzzed/aws"


def run_logins(data: bytes) -> None:
    """One of the readers."""
    choices = Choices(data)
    read = choices.pick(READERS)
    try:
        read(choices.rest())
    except MirrorError as error:
        assert "hunter2" not in str(error)  # noqa: PT017


def _read_handshake(data: bytes) -> None:
    found = messages.decode_handshake(memoryview(data))
    assert all(isinstance(name, str) for name in found.mechanisms)


def _read_step(data: bytes) -> None:
    found = messages.decode_authenticate(memoryview(data), 1)
    assert found.lifetime_ms >= 0
    assert len(found.challenge) <= len(data)


def _run_scram(data: bytes) -> None:
    """Both messages of a broker, cut at the first line's end."""
    first, _, second = data.partition(b"\n")
    exchange = Scram(ScramLogin("SCRAM-SHA-256", "me", "hunter2"), NONCE)
    exchange.start()
    assert exchange.respond(first) is not None
    exchange.respond(second)
    raise AssertionError("only the broker knows the signature")


def _read_jwt(data: bytes) -> None:
    text = data.decode("latin-1")
    _check_token(read_token(text, NOW, "there"))
    part = base64.urlsafe_b64encode(data).decode().rstrip("=")
    _check_token(read_token(f"e30.{part}.", NOW, "there"))


def _check_token(token: BearerToken) -> None:
    assert token.starts_at <= NOW < token.expires_at < float("inf")
    assert isinstance(token.subject, str)


def _read_endpoint(data: bytes) -> None:
    tokens = EndpointTokens("https://server/token", dict, dict)
    assert isinstance(_error_of(data), str)
    assert isinstance(tokens._token(web.HttpResponse(200, data)), str)


def _read_date(data: bytes) -> None:
    found = web._date(data.decode("latin-1"))
    assert found is None or isinstance(found, float)


def _read_region(data: bytes) -> None:
    found = aws._region(data.decode("latin-1"))
    assert not found or AWS_REGION.fullmatch(found)


def _read_profile(data: bytes) -> None:
    environment = {"AWS_SHARED_CREDENTIALS_FILE": FILE, "AWS_CONFIG_FILE": FILE}
    provide(FILE, data)
    try:
        with mock.patch.dict(os.environ, environment):
            found = aws.AwsCredentials({"awsProfileName": "p"})
            assert isinstance(found.region(), str)
    finally:
        forget_provided()


READERS: tuple[Callable[[bytes], None], ...] = (
    _read_handshake,
    _read_step,
    _run_scram,
    _read_jwt,
    _read_endpoint,
    _read_date,
    _read_region,
    _read_profile,
)


def logins_seeds() -> Iterator[bytes]:
    token = unsecured_token({"sub": "me", "exp": NOW + 60, "iat": NOW})
    seeds: tuple[tuple[bytes, ...], ...] = (
        (b"\0\0\0\0\0\2\0\5PLAIN\0\15SCRAM-SHA-256",),
        (b"\0\0\xff\xff\0\0\0\4abcd\0\0\0\0\0\0\x75\x30", b"\0\x3a\0\2no\0\0\0\0" + bytes(8)),
        (b"r=fykoabc,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096\nv=abcd", b"r=fykoabc,s=QQ==,i=4096\ne=no"),
        (token.encode(), b'{"sub":"me","exp":1800000000,"iat":1}'),
        (json.dumps({"access_token": token}).encode(), b'{"error":"invalid_client"}'),
        (b"Mon, 02 Jan 2006 15:04:05 GMT", b"Mon, 02 Jan 0001 15:04:05 -0000"),
        (b"eu-central-1", b"us-gov-east-1", b"x@evil.test/"),
        (b"[profile p]\nregion = x\n[default]\naws_secret_access_key=hunter2\n# c",),
    )
    for number, found in enumerate(seeds):
        yield from (bytes((number,)) + seed for seed in found)


TARGETS = (Target("logins", run_logins, logins_seeds),)
