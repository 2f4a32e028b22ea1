"""Bodies: any input is read or rejected, never anything else."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparkmirror.connect.entities import RequestError, TargetState
from sparkmirror.rest.entities.request_bodies import (
    check_task_configs,
    encode_json,
    parse_config,
    parse_create,
    parse_level,
    parse_offsets,
    parse_patch,
)
from sparkmirror.rest.exception_mapper import JsonError

_PARSERS = (
    parse_config,
    parse_create,
    parse_offsets,
    parse_patch,
    parse_level,
    check_task_configs,
)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner),
    max_leaves=10,
)
_MEMBERS = st.dictionaries(
    st.sampled_from(["name", "config", "initial_state", "offsets", "level", "partition"]), _JSON
)


@pytest.mark.parametrize("parse", _PARSERS)
@settings(max_examples=40)
@given(value=_JSON | _MEMBERS)
def test_any_json_is_read_or_rejected(parse: Callable[[bytes], object], value: object) -> None:
    assert "cannot be read" not in _refusal(parse, json.dumps(value).encode())


@pytest.mark.parametrize("parse", _PARSERS)
@settings(max_examples=40)
@given(value=_MEMBERS, cut=st.integers(0, 100), put=st.binary(max_size=3))
@example(value={}, cut=0, put=b"\xff")
@example(value={}, cut=1, put=b'"\\u12')
@example(value={}, cut=0, put=b"\xef\xbb\xbf")
def test_damaged_json_is_read_or_rejected(
    parse: Callable[[bytes], object], value: object, cut: int, put: bytes
) -> None:
    body = json.dumps(value, ensure_ascii=False).encode()
    # The reason is always found.
    assert "cannot be read" not in _refusal(parse, body[:cut] + put)
    assert "cannot be read" not in _refusal(parse, body[:cut] + put + body[cut:])


def _refusal(parse: Callable[[bytes], object], body: bytes) -> str:
    try:
        parse(body)
    except (RequestError, JsonError) as error:
        return str(error)
    return ""


@given(st.dictionaries(_TEXT, _TEXT | st.none()))
def test_settings_are_kept_as_they_are(config: dict[str, str | None]) -> None:
    assert parse_config(encode_json(config)) == config


@given(st.dictionaries(_TEXT, st.booleans() | st.integers()))
def test_other_values_become_text(config: dict[str, object]) -> None:
    expected = {key: json.dumps(value) for key, value in config.items()}
    assert parse_config(encode_json(config)) == expected


def test_large_broken_body_is_rejected_without_a_search() -> None:
    with pytest.raises(JsonError, match="The body cannot be read"):
        parse_config(b'{"a":"' + b"x" * 1_000_000)


def test_half_a_character_is_rejected() -> None:
    with pytest.raises(JsonError, match="Incomplete surrogate pair"):
        parse_config(rb'{"a":"\ud800"}')


def test_create_request() -> None:
    request = parse_create(b'{"name":" n ","config":{"a":1},"initial_state":"stopped"}')
    assert (request.name, request.config, request.initial_state) == (
        "n",
        {"a": "1"},
        TargetState.STOPPED,
    )


def test_offsets_have_numbers_as_numbers() -> None:
    body = b'{"offsets":[{"partition":{"p":1,"t":"x"},"offset":{"offset":12345678901,"f":1.5}}]}'
    assert parse_offsets(body) == [
        ({"p": 1, "t": "x"}, {"offset": 12345678901, "f": 1.5}),
    ]


@pytest.mark.parametrize("part", [b"1,", b"[],", b"{},"], ids=["numbers", "lists", "objects"])
def test_body_of_millions_of_values_is_rejected_before_they_are_made(part: bytes) -> None:
    body = b'{"offsets":[' + part * 2_000_000 + b"1]}"
    tracemalloc.start()
    try:
        with pytest.raises(JsonError, match="The body has more than 500000 values"):
            parse_offsets(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(body)


def test_partitions_have_no_endless_numbers_nor_levels() -> None:
    for value in (b"9" * 1001, b"1e999", b"[" * 101 + b"]" * 101):
        with pytest.raises(JsonError, match="The body cannot be read"):
            parse_offsets(b'{"offsets":[{"partition":{"a":' + value + b'},"offset":null}]}')
