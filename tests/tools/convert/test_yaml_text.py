"""YAML is parsed as in Kubernetes; anything but plain data is rejected, in bounded time."""

from __future__ import annotations

import pytest
import yaml

from sparkmirror.tools.convert.yaml_text import BadYaml, YamlValue, read_documents, write_documents

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("a: 0440", {"a": 0o440}),
        ("a: 0x1F", {"a": 31}),
        ("a: -1", {"a": -1}),
        ("a: 1.50", {"a": 1.5}),
        ("a: yes", {"a": True}),
        ("a: Off", {"a": False}),
        ("a: 'yes'", {"a": "yes"}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("a: 12:30", {"a": "12:30"}),
        ("a: 3.6.0", {"a": "3.6.0"}),
        ("1: b", {"1": "b"}),
        ("true: b", {"true": "b"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("d: {<<: [{b: 1}, {b: 2, c: 3}]}", {"d": {"b": 1, "c": 3}}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("[1, two]", [1, "two"]),
    ],
)
def test_values(text: str, value: YamlValue) -> None:
    assert read_documents(text) == [value]


def test_empty_documents_are_left_out() -> None:
    assert read_documents("---\n---\na: 1\n---\n# nothing\n") == [{"a": 1}]
    assert read_documents("") == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1", "not YAML"),
        ("a: b: c", "line 1: not YAML"),
        ("\tx", "not YAML"),
        ("a\0b", "not YAML"),
        ("a: 1\nb: 2\na: 3", "line 3: 'a' is set twice in one mapping"),
        ("a: !!python/object:os.system x", "unknown tag tag:yaml.org,2002:python/object:os.system"),
        ("a: !mine x", "unknown tag !mine"),
        ("a: !!set {x}", "unknown tag tag:yaml.org,2002:set"),
        ("a: !!int x", "not YAML"),
        ("? [a]\n: b", "a key is not text"),
        ("a: {<<: 1}", "'<<' needs a mapping"),
        ('a: "\\ud800"', "an escape encodes half a character"),
        ('a: "\\UFFFFFFFF"', "not YAML"),
        ("a: &x [*x]", "has more than 50,000 values"),
        (BOMB, "has more than 50,000 values"),
        ("[" * 5000, "is nested too deeply"),
        ("a" * 2_000_000, "has more than 1,500,000 characters"),
    ],
)
def test_what_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(BadYaml) as refused:
        read_documents(text)
    assert reason in refused.value.reason
    assert refused.value.remedy


def test_what_is_written_is_read_again() -> None:
    documents: list[dict[str, YamlValue]] = [
        {"text": "two\nlines\n", "yes": "yes", "letter": "y", "number": "1", "null": "~"},
        {"list": [1, True, None, {"a": []}], "unicode": "\u00e4\U0001f600", "long": "a b " * 200},
    ]
    text = write_documents(documents)
    assert read_documents(text) == documents
    assert list(yaml.safe_load_all(text)) == documents
    assert "text: |\n  two\n  lines\n" in text
    assert "letter: 'y'" in text


def test_one_object_at_two_places_is_written_twice() -> None:
    same = {"a": 1}
    assert write_documents([{"b": same, "c": same}]) == "b:\n  a: 1\nc:\n  a: 1\n"
