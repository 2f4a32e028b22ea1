"""Lines of keys, and text that Java reads otherwise than it looks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.config.files.properties import parse_entries
from sparkmirror.tools.validate.line_numbers import JsonKey, json_keys, repeated, traps


def test_keys_of_json_have_lines() -> None:
    text = '{\n "name": "a:\\"b\\": 1",\n "config": {\n  "x" : 1, "y\\u0041":\n 2}}'
    found = [(entry.key, entry.line) for entry in json_keys(text)]
    assert found == [("name", 2), ("config", 3), ("x", 4), ("yA", 4)]


TEXTS = st.text(st.sampled_from('ab":{}[],\\\n'), max_size=8)


@given(st.dictionaries(TEXTS, st.one_of(TEXTS, st.lists(TEXTS), st.none()), max_size=5))
def test_every_key_is_found_on_its_line(members: dict[str, object]) -> None:
    text = json.dumps(members, indent=1)
    found = list(json_keys(text))
    assert [entry.key for entry in found] == list(members)
    lines = text.split("\n")
    for entry in found:
        assert lines[entry.line - 1].startswith(f" {json.dumps(entry.key)}:")


def test_a_repeated_key_names_both_lines() -> None:
    (found,) = repeated([JsonKey("a", 1, 0), JsonKey("a", 2, 9), JsonKey("a", 7, 0)])
    assert (found.key, found.line) == ("a", 7)
    assert "on lines 1 and 7" in found.text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("A -> B.topics = x", "write A->B.topics"),
        ("A ->B.topics=x", "write A->B.topics"),
        ("A->B.topics = x # all", "the comment is part of the value"),
        ("A->B.topics = x   ! all", "the comment is part of the value"),
        ('A->B.topics = "x"', "the quotes are part of the value"),
        ("A->B.topics = 'x'", "the quotes are part of the value"),
        ("A->B.topics = x#y", ""),
        ("A->B.topics = x, y", ""),
        ("# A -> B.topics = x # y", ""),
        ("A->B.topics =", ""),
        ('A->B.topics = "', ""),
    ],
)
def test_text_that_is_read_otherwise_than_it_looks(line: str, text: str) -> None:
    found = [remark.text for remark in traps(parse_entries(line))]
    assert len(found) == bool(text)
    assert all(text in each for each in found)
