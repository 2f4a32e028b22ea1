"""Which keys are secret, and that no remembered secret gets into any text."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from urllib.parse import quote

import pytest

from sparkmirror.config import masking
from sparkmirror.config.config_def import Key, Secret, Type
from sparkmirror.config.files.providers import resolve
from sparkmirror.config.keys.client_keys import CLIENT_KEYS
from sparkmirror.config.keys.connector_keys import CONNECT_KEYS, FRAMEWORK_KEYS, MIRROR_KEYS
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.config.masking import (
    HIDDEN,
    forget_owner,
    is_secret,
    mask,
    owned_by,
    provisional,
    remember,
    remember_provided,
    remember_secrets,
    remember_token,
)
from sparkmirror.config.worker.worker_file import WORKER_FILE_KEYS
from sparkmirror.logs.log_format import JsonFormatter, LineFormatter

KNOWN = {
    key.name: key
    for definition in (
        SECURITY_KEYS,
        MIRROR_KEYS,
        CONNECT_KEYS,
        FRAMEWORK_KEYS,
        WORKER_FILE_KEYS,
        *CLIENT_KEYS.values(),
    )
    for key in definition
}


@pytest.mark.parametrize("key", KNOWN.values(), ids=KNOWN)
def test_the_definition_of_a_known_key_decides_whether_it_is_secret(key: Key) -> None:
    assert is_secret(f"source.consumer.{key.name}") is (key.type is Type.PASSWORD)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("my.api.token", True),
        ("spark.authenticate.secret", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("spark.ssl.keyStorePassword", True),
        ("apiKey", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("A->B.some.credentials", True),
        ("keyTab", False),
        ("principal", False),
        ("spark.authenticate", False),
        ("spark.authenticate.secret.file", False),
        ("spark.master", False),
        ("topics", False),
        ("key.converter", False),
    ],
)
def test_the_name_of_an_unknown_key(key: str, expected: bool) -> None:
    assert is_secret(key) is expected


JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="a-user-name" password="in-j\\"aas-1"  clientSecret=\'quoted-2\' token=bare-3x;'
)


@pytest.mark.parametrize("option", ['in-j\\"aas-1', "quoted-2", "bare-3x"])
def test_passwords_in_a_login_line_are_secrets_of_their_own(option: str) -> None:
    remember(JAAS)
    assert mask(f"refused: {option}!") == f"refused: {HIDDEN}!"
    assert mask("user a-user-name") == "user a-user-name"


def test_a_secret_is_known_as_soon_as_it_exists() -> None:
    Secret("made-of-4")
    assert mask("it was made-of-4.") == f"it was {HIDDEN}."


def test_properties_are_remembered_when_they_are_resolved() -> None:
    resolve({"some.unknown.token": "token-5-x", "topics": "topic-5-x"})
    assert mask("token-5-x topic-5-x") == f"{HIDDEN} topic-5-x"


@pytest.mark.parametrize("spell", [str, json.dumps, repr, lambda text: quote(text, safe="")])
def test_every_spelling_is_found(spell: object) -> None:
    assert callable(spell)
    secret = 'sp"ell\ning/6'
    remember(secret)
    assert "ing" not in mask(f"<{spell(secret)}>").replace(HIDDEN, "")


def test_the_longest_is_found_first() -> None:
    remember("seven-77")
    remember("seven-77-and-more")
    assert mask("seven-77-and-more, seven-77") == f"{HIDDEN}, {HIDDEN}"


@pytest.mark.parametrize("word", ["password", "changeit", "secret", "12345678", "abc1", ""])
def test_words_and_numbers_stay_readable(word: str) -> None:
    remember_secrets({"ssl.truststore.password": word})
    text = f"ssl.truststore.password: '{word}' at offset 12345678"
    assert mask(text) == text


def test_log_lines_and_their_traces_have_no_secret() -> None:
    remember("in-the-log-8")
    error = ValueError("in-the-log-8")
    record = logging.LogRecord(
        "x", logging.ERROR, "", 0, "with %s", ("in-the-log-8",), (ValueError, error, None)
    )
    _, _, line = LineFormatter().format(record).split(" ", 2)
    assert line == f"ERROR with {HIDDEN}\n    ValueError: {HIDDEN}"
    found = json.loads(JsonFormatter().format(record))
    assert (found["message"], found["trace"]) == (f"with {HIDDEN}", f"ValueError: {HIDDEN}")


@pytest.mark.timeout(20)
def test_a_token_of_a_megabyte_is_one_word() -> None:
    remember("x" * 1_000_000)
    remember('module required token="a-b-c-d-1" ' + "x." * 500_000)
    assert mask("x" * 1_000_000 + " a-b-c-d-1") == f"{HIDDEN} {HIDDEN}"


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("hunter", "is hunter, not hunters", f"is {HIDDEN}, not hunters"),
        ("sales-eu", "topic xsales-eux", f"topic x{HIDDEN}x"),
        ("from-a-file\n", "is from-a-file!", f"is {HIDDEN}!"),
        ("pin-123456", "'pin-123456'", f"'{HIDDEN}'"),
        ("4711234", "number 4711234", f"number {HIDDEN}"),
        ("true", "is true", "is true"),
        ("9092", "at h:9092", "at h:9092"),
        ("abc", "is abc", "is abc"),
        ("h1.x:9092, h2.x:9093", "at h2.x:9093 or h1.x: no", f"at {HIDDEN} or {HIDDEN}: no"),
        ("a module required x=y;", "a module is required", "a module is required"),
        ("kafka", "kafka-longer-1", f"{HIDDEN}-longer-1"),
    ],
)
def test_provider_values_are_hidden_for_every_key(value: str, text: str, shown: str) -> None:
    with provisional() as hide:
        remember_provided(value)
        assert hide(text) == mask(text) == shown


def test_the_longest_is_found_first_also_behind_a_short_word() -> None:
    with provisional() as hide:
        remember_provided("abcd")
        remember_provided("abcd-efgh")
        assert hide("abcd-efgh abcd") == f"{HIDDEN} {HIDDEN}"


def test_values_are_hidden_when_they_are_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIN_NAME", "resolved-value-9")
    resolve(
        {
            "topics": "${env:PLAIN_NAME}",
            "config.providers": "env",
            "config.providers.env.class": (
                "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
            ),
        }
    )
    assert mask("topic resolved-value-9") == f"topic {HIDDEN}"


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_known", masking._Known())


@pytest.mark.usefixtures("nothing_known")
def test_tokens_push_out_tokens_only() -> None:
    remember("kept-for-good-1")
    remember_token("the-first-token-1")
    for at in range(5001):
        remember_token(f"token-number-{at}")
    text = "kept-for-good-1 the-first-token-1 token-number-5000 token-number-0"
    assert mask(text) == f"{HIDDEN} the-first-token-1 {HIDDEN} token-number-0"


@pytest.mark.usefixtures("nothing_known")
def test_an_owners_secrets_are_hidden_while_it_has_them() -> None:
    owner = object()
    with owned_by(owner):
        remember("owned-password-1")
    for at in range(5001):
        remember_token(f"another-token-{at}")
    assert mask("owned-password-1") == HIDDEN
    with owned_by(owner):
        remember("owned-password-2")
    assert mask("owned-password-1 owned-password-2") == f"{HIDDEN} {HIDDEN}"
    forget_owner(owner)
    assert mask("owned-password-2") == HIDDEN
    for at in range(5001):
        remember_token(f"a-third-token-{at}")
    assert mask("owned-password-2") == "owned-password-2"
