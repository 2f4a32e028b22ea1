"""Types as in Kafka's ConfigDef, and definitions that report all errors at once."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from sparkmirror.config.config_def import (
    BadValue,
    Definition,
    Key,
    KeySupport,
    Secret,
    Type,
    parse_value,
)
from sparkmirror.config.findings import Findings
from sparkmirror.errors import ConfigErrors


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (Type.BOOLEAN, "true", True),
        (Type.BOOLEAN, " FALSE ", False),
        (Type.STRING, "  a b ", "a b"),
        (Type.STRING, "", ""),
        (Type.INT, "2147483647", 2147483647),
        (Type.INT, "+7", 7),
        (Type.INT, " -7\t", -7),
        (Type.SHORT, "-32768", -32768),
        (Type.LONG, "9223372036854775807", 9223372036854775807),
        (Type.DOUBLE, "0.8", 0.8),
        (Type.DOUBLE, "1e3", 1000.0),
        (Type.DOUBLE, ".5d", 0.5),
        (Type.LIST, "", ()),
        (Type.LIST, "  ", ()),
        (Type.LIST, "a", ("a",)),
        (Type.LIST, " a , b,c ", ("a", "b", "c")),
        (Type.LIST, "a,b,a", ("a", "b")),
        (Type.CLASS, " a.B ", "a.B"),
        (Type.PASSWORD, " pw ", Secret("pw")),
    ],
)
def test_value_is_read(type_: Type, text: str, expected: object) -> None:
    assert parse_value(type_, text) == expected


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (Type.BOOLEAN, "yes"),
        (Type.BOOLEAN, ""),
        (Type.BOOLEAN, "1"),
        (Type.INT, "2147483648"),
        (Type.INT, "1_000"),
        (Type.INT, "1.0"),
        (Type.INT, ""),
        (Type.INT, "0x10"),
        (Type.INT, "1 000"),
        (Type.SHORT, "32768"),
        (Type.LONG, "9223372036854775808"),
        (Type.DOUBLE, "1_0.5"),
        (Type.DOUBLE, "half"),
        (Type.LIST, "a,,b"),
        (Type.LIST, "a,"),
        (Type.LIST, ",a"),
    ],
)
def test_value_is_rejected(type_: Type, text: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_value(type_, text)
    assert caught.value.reason
    assert caught.value.remedy


def key(name: str = "k", type_: Type = Type.STRING, **more: Any) -> Key:
    return Key(name=name, type=type_, doc="words", **more)


@pytest.mark.parametrize(
    ("row", "text", "reason"),
    [
        pytest.param(key(type_=Type.INT, at_least=1), "0", "out of range", id="too-small"),
        pytest.param(
            key(type_=Type.INT, at_least=1, at_most=5), "6", "out of range", id="too-large"
        ),
        pytest.param(key(one_of=("a", "b")), "A", "not one of", id="choice-has-a-case"),
        pytest.param(
            key(type_=Type.LIST, one_of=("a", "b")), "a,c", "not one of", id="list-of-choices"
        ),
        pytest.param(key(non_empty=True), " ", "is empty", id="empty"),
    ],
)
def test_key_rejects_value(row: Key, text: str, reason: str) -> None:
    with pytest.raises(BadValue, match=reason):
        row.parse(text)


@pytest.mark.parametrize(
    ("row", "text", "expected"),
    [
        pytest.param(key(one_of=("A", "B"), ignore_case=True), "a", "a", id="any-case"),
        pytest.param(key(type_=Type.LIST, one_of=("a", "b")), "b,a", ("b", "a"), id="list"),
        pytest.param(key(convert=str.upper), "a", "A", id="converted"),
        pytest.param(key(type_=Type.INT, at_least=0), "0", 0, id="lowest"),
    ],
)
def test_key_takes_value(row: Key, text: str, expected: object) -> None:
    assert row.parse(text) == expected


def test_definition_reports_all_errors_at_once() -> None:
    keys = Definition(
        key("needed"),
        key("number", Type.INT, default=7, at_least=1),
        key("flag", Type.BOOLEAN, default=False),
        key("secret", Type.SHORT, default=0),
    )
    with pytest.raises(ConfigErrors) as caught:
        keys.parse({"number": "x", "flag": "perhaps", "secret": "hunter2"})
    assert str(caught.value).splitlines() == [
        "needed: is required and not set; set it to a text",
        "number=x: not a number of type INT; use a whole number of at least 1",
        "flag=perhaps: neither true nor false; use true or false",
        "secret=[hidden]: not a number of type SHORT; use a whole number from -32768 to 32767",
    ]


def test_default_stands_in_for_a_bad_value() -> None:
    findings = Findings()
    values = Definition(key("number", Type.INT, default=7)).parse({"number": "x"}, findings)
    assert values == {"number": 7}
    assert len(findings.errors) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5", True), ("7", False), ("9", False)],
    ids=["set", "set-to-default", "set-to-a-quiet-value"],
)
def test_key_without_effect_is_explained_once_it_is_set(text: str, expected: bool) -> None:
    row = key("k", default="7", status=KeySupport.EXPLAINED, reason="there is none", quiet=("9",))
    findings = Findings("file")
    Definition(row).parse({"k": text}, findings)
    assert findings.warnings == (("file: k: has no effect: there is none",) if expected else ())


def test_repeated_list_element_is_reported() -> None:
    findings = Findings()
    row = key("topics", Type.LIST, default=())
    assert Definition(row).parse({"topics": "a, b ,a"}, findings)["topics"] == ("a", "b")
    assert findings.warnings == ("topics: has duplicate elements; each is used once",)


def test_secret_is_never_printed() -> None:
    secret = Secret("hunter2")
    for text in (str(secret), repr(secret), f"{secret}", f"{[secret]}", "%s" % secret):  # noqa: UP031
        assert "hunter2" not in text
    assert secret.reveal() == "hunter2"
    assert pickle.loads(pickle.dumps(secret)) == secret


def test_field_is_the_name_with_underscores() -> None:
    assert key("offset-syncs.topic.location").field == "offset_syncs_topic_location"
    assert key("x.y", attribute="z").field == "z"
