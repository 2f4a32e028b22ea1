"""AWS_MSK_IAM: what is sent to a broker, byte for byte."""

from __future__ import annotations

import base64
import hashlib
import json
import time
import urllib.parse
from collections.abc import Callable
from datetime import UTC, datetime

import botocore.auth
import pytest

from sparkmirror.config.masking import mask
from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.sasl.aws import Keys
from sparkmirror.wire.sasl.msk_iam import (
    MskIam,
    MskIamLogin,
    MskTokenLogin,
    iam_token,
    region_of,
)
from sparkmirror.wire.sasl.renewing import Renewing, Schedule

# The keys of AWS's own examples.
EXAMPLE = Keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
# SHA-256 of what is sent with fixed keys at a fixed time, as 0.1 signed it without botocore.
MESSAGE = "7a81482b5976e6515a88d64efdda7d09e216e6f5c61db1b5e2c678c3c0c199e0"
TOKEN = "07d0c0cf56c0a28638e8a8d651be1a75fbc114a6d662c93bed6b7b5b777cf87e"
TIME = "20150830T123600Z"
BROKER = "b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com"


def at(text: str) -> float:
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


@pytest.fixture
def freeze(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let signatures be made at this time."""

    def freeze_at(text: str) -> None:
        moment = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: moment)

    return freeze_at


def test_keys_are_never_shown() -> None:
    keys = Keys("AKID", "se/cret+key", token="session+token/1")
    assert "cret" not in repr(keys)
    assert mask("AKID se/cret+key session+token/1") == "AKID [hidden] [hidden]"


def test_the_message_for_a_broker(freeze: Callable[[str], None]) -> None:
    keys = Keys("AKID", "hush", token="session/token+")
    freeze("20261115T120000Z")
    message = MskIam(BROKER, keys, "eu-central-1").start()
    assert hashlib.sha256(message).hexdigest() == MESSAGE
    fields = json.loads(message)
    signature = fields.pop("x-amz-signature")
    assert fields == {
        "version": "2020_10_22",
        "host": BROKER,
        "user-agent": "sparkmirror",
        "action": "kafka-cluster:Connect",
        "x-amz-algorithm": "AWS4-HMAC-SHA256",
        "x-amz-credential": "AKID/20261115/eu-central-1/kafka-cluster/aws4_request",
        "x-amz-date": "20261115T120000Z",
        "x-amz-expires": "900",
        "x-amz-signedheaders": "host",
        "x-amz-security-token": "session/token+",
    }
    assert len(signature) == 64
    mechanism = MskIam(BROKER, keys, "eu-central-1")
    assert mechanism.respond(b'{"version":"2020_10_22","request-id":"1"}') is None
    with pytest.raises(AuthenticationError):
        mechanism.respond(b"")


def test_the_same_as_a_token(freeze: Callable[[str], None]) -> None:
    freeze(TIME)
    token = iam_token(EXAMPLE, "us-east-1")
    assert hashlib.sha256(token.text.encode()).hexdigest() == TOKEN
    url = base64.urlsafe_b64decode(token.text + "=" * (-len(token.text) % 4)).decode()
    parts = urllib.parse.urlsplit(url)
    query = dict(urllib.parse.parse_qsl(parts.query))
    assert parts.netloc == "kafka.us-east-1.amazonaws.com"
    assert query["Action"] == "kafka-cluster:Connect"
    assert query["User-Agent"] == "sparkmirror"
    assert token.expires_at == at(TIME) + 900


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (BROKER, "eu-central-1"),
        ("boot-x1.c2.kafka-serverless.us-east-1.amazonaws.com", "us-east-1"),
        ("b-1.x.c3.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("localhost", ""),
        ("kafka.example.com", ""),
    ],
)
def test_region_of_a_broker(host: str, region: str) -> None:
    assert region_of(host) == region


@pytest.mark.parametrize("kind", [MskIamLogin, MskTokenLogin])
def test_login_needs_a_region(kind: type[MskIamLogin]) -> None:
    renewing = Renewing("keys", lambda: Keys("A", "s", "", 0, 2e9), time.time, Schedule())
    assert kind(renewing, lambda: "").begin(BROKER).result(5).start()
    with pytest.raises(AuthenticationError, match="AWS_REGION"):
        kind(renewing, lambda: "").begin("localhost").result(5)
    login = kind(renewing, lambda: "eu-west-1")
    assert login.begin("localhost").result(5).start()
    assert login.user == "A"
