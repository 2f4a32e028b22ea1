"""The login module line, read as java.io.StreamTokenizer reads it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.security.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

OPTIONS = {
    "one": ('a="b"', {"a": "b"}),
    "several": ('username="token" password="p w";', {"username": "token", "password": "p w"}),
    "no blanks at all": ('a="b"c="d"', {"a": "b", "c": "d"}),
    "single quotes": ("a='it is \"so\"'", {"a": 'it is "so"'}),
    "the other quote": ('a="it\'s"', {"a": "it's"}),
    "words": (
        "useKeyTab=true storeKey=yes_no-or$",
        {"useKeyTab": "true", "storeKey": "yes_no-or$"},
    ),
    "dotted names": ('oauth.client.id="x" a.b=c.d', {"oauth.client.id": "x", "a.b": "c.d"}),
    "quoted name": ('"a b"="c"', {"a b": "c"}),
    "spaces around =": ('a = "b"', {"a": "b"}),
    "lines": ('a="b"\n  c="d"\r\n', {"a": "b", "c": "d"}),
    "empty": ('a=""', {"a": ""}),
    "last one wins": ('a="1" a="2"', {"a": "2"}),
    "escaped quote": (r'a="x\"y\\z"', {"a": 'x"y\\z'}),
    "letters": (r'a="\n\t\r\a\b\f\v\q"', {"a": "\n\t\r\a\b\f\vq"}),
    "octal": (r'a="\101\7x\4123\400"', {"a": "A\7x!23" + " 0"}),
    "unicode": ('a="p\u00e4\u20ac" \u00e4=\u20ac', {"a": "p\u00e4\u20ac", "\u00e4": "\u20ac"}),
    "semicolon in quotes": ('a="b;c"', {"a": "b;c"}),
    "equals in quotes": ('a="b=c,d"', {"a": "b=c,d"}),
    "no options": ("", {}),
    "comments": ('/* a="1" */ a="b" // c="d"\n e="f"', {"a": "b", "e": "f"}),
    "a slash alone": ('a="b" /\n c="d"\n e="f"', {"a": "b", "e": "f"}),
    "a slash is a comment too": ('a="b" /c="d"\n e="f"', {"a": "b", "e": "f"}),
    "slashes in quotes": (
        'keyTab="/etc/x.keytab" u="https://h/p"',
        {"keyTab": "/etc/x.keytab", "u": "https://h/p"},
    ),
}


@pytest.mark.parametrize(("text", "expected"), OPTIONS.values(), ids=OPTIONS)
def test_options(text: str, expected: dict[str, str]) -> None:
    end = "" if text.endswith(";") else ";"
    module = parse_jaas(f"{PLAIN} required {text}{end}")
    assert (module.name, module.flag) == (PLAIN, "required")
    assert module.options == expected


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", "optional", '"required"'])
def test_flags_in_any_case(flag: str) -> None:
    assert parse_jaas(f"a.B$C {flag};").flag == flag.strip('"').lower()


BAD = {
    "nothing": ("", "has no login module"),
    "only a comment": ("/* x", "has no login module"),
    "no flag": ("a.B", "after the login module comes one of"),
    "no such flag": ('a.B username="u";', "after the login module comes one of"),
    "no semicolon": ('a.B required u="SECRET"', "no semicolon"),
    "two modules": ("a.B required; c.D required;", "has 2 login modules"),
    "unquoted number": ("a.B required password=123;", "missing or not quoted (column 23)"),
    "number first": ("a.B required password=1SECRET;", "missing or not quoted"),
    "minus": ("a.B required password=-SECRET;", "missing or not quoted"),
    "path is a comment": ("a.B required keyTab=/SECRET;", "missing or not quoted"),
    "no value": ("a.B required debug;", "an option has no value"),
    "unquoted blank": ("a.B required password=x SECRET;", "an option has no value (column 25)"),
    "unclosed quote": ('a.B required password="SECRET;', "no semicolon"),
    "second line": ('a.B required\n user="u"\n pass=1;', "(line 3, column 7)"),
    "odd sign": ('a.B required ,a="SECRET";', "the name of an option is missing"),
    "empty name of a module": ('"" required;', "class of a login module is missing"),
    "number for a module": ("1a required;", "class of a login module is missing"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_reported_without_values(text: str, reason: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_jaas(text)
    assert reason in caught.value.reason
    assert "SECRET" not in str(caught.value)


def test_options_do_not_show_in_its_repr() -> None:
    assert "hush" not in repr(parse_jaas('a.B required password="hush";'))


def test_yes_and_true_are_true() -> None:
    module = parse_jaas('a.B required a=true b="Yes" c=false d="";')
    assert [module.is_true(name) for name in "abcde"] == [True, True, False, False, False]


def _quoted(value: str) -> str:
    escaped = "".join(f"\\{ord(c):03o}" if c in '"\\\r\n' else c for c in value)
    return f'"{escaped}"'


@settings(derandomize=True)
@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_every_value_can_be_quoted(options: dict[str, str]) -> None:
    text = " ".join(f"{_quoted(name)}={_quoted(value)}" for name, value in options.items())
    assert parse_jaas(f"{PLAIN} required {text};").options == options


@settings(derandomize=True)
@given(st.text(alphabet="ab1. -/*\"'\\;=\n_$r\u00e4\u20ac"))
def test_any_text_is_read_or_rejected(text: str) -> None:
    with suppress(BadValue):
        assert parse_jaas(f"a.B required {text}").name == "a.B"
