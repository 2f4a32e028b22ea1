"""Reads the bodies of requests into the types that Connect's entities have.

Runs on: worker. Pure. As in Jackson: numbers and booleans become strings where strings are
expected, and unknown members of entities are rejected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from sparkmirror.connect.entities import Json, RequestError, TargetState
from sparkmirror.rest.entities.jackson_errors import Path, refuse
from sparkmirror.rest.entities.java_types import JavaType, explain, values_before

RequestedConfig = dict[str, str | None]
_T = TypeVar("_T")

_ENTITIES = "org.apache.kafka.connect.runtime.rest.entities"
_CREATE = f"{_ENTITIES}.CreateConnectorRequest"
_OFFSET = f"{_ENTITIES}.ConnectorOffset"
_TEXT = JavaType("java.lang.String", is_text=True)
_STRING_MAP = JavaType("java.util.LinkedHashMap<java.lang.String,java.lang.String>", inner=_TEXT)
_OBJECT_MAP = JavaType("java.util.LinkedHashMap<java.lang.String,java.lang.Object>")
_CREATE_REQUEST = JavaType(
    _CREATE,
    {
        "config": _STRING_MAP,
        "name": _TEXT,
        "initial_state": JavaType(f"{_CREATE}$InitialState", is_text=True),
    },
)
_OFFSET_ROW = JavaType(_OFFSET, {"partition": _OBJECT_MAP, "offset": _OBJECT_MAP})
_OFFSETS = JavaType(
    f"{_ENTITIES}.ConnectorOffsets",
    {"offsets": JavaType(f"java.util.ArrayList<{_OFFSET}>", inner=_OFFSET_ROW)},
)
_TASK_CONFIGS = JavaType(
    "java.util.ArrayList<java.util.Map<java.lang.String,java.lang.String>>", inner=_STRING_MAP
)
# Jackson's limit of digits. Jackson also accepts 1000 levels, too many for readers of offsets: 100
# are more than any partition has.
_LONGEST_NUMBER = 1000
# A value takes some 80 bytes of memory and two of a body: 32 MB would become over a gigabyte.
_MOST_VALUES = 500_000
_DEEPEST = 100
_NO_OFFSETS = "Partitions / offsets need to be provided for an alter offsets request"
_INITIAL_STATES = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


class Number(str):
    """The text of a JSON number: a setting keeps its spelling."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """The body of POST /connectors."""

    name: str
    config: RequestedConfig
    initial_state: TargetState | None


class _Unfit(Exception):
    """A value has a type that Jackson would reject."""


def parse_config(body: bytes, name: str = "connectorConfig") -> RequestedConfig:
    """A flat map of settings; `name` is what Connect calls it."""
    config = parse_patch(body)
    if config is None:
        refuse_null("java.util.Map.get(Object)", name)
    return config


def parse_patch(body: bytes) -> RequestedConfig | None:
    """A flat map of settings, or None."""
    value = _parse(body, _STRING_MAP)
    return None if value is None else _converted(_string_map, value, body, _STRING_MAP)


def parse_create(body: bytes) -> CreateRequest:
    value = _parse(body, _CREATE_REQUEST)
    if value is None:
        refuse_null(f"{_CREATE}.name()", "createRequest")
    members = _converted(_members, value, body, _CREATE_REQUEST)
    name = _converted(_string, members.get("name"), body, _CREATE_REQUEST)
    state = _initial_state(members.get("initial_state"), body)
    if members.get("config") is None:
        refuse_null("java.util.Map.get(Object)", "connectorConfig")
    config = _converted(_string_map, members["config"], body, _CREATE_REQUEST)
    return CreateRequest((name or "").strip(), config, state)


def parse_offsets(body: bytes) -> list[tuple[Json | None, Json | None]]:
    """Rows to alter; the last row of a partition counts."""
    value = _parse(body, _OFFSETS)
    if value is None:
        refuse_null(f"{_OFFSETS.name}.offsets()", "offsets")
    rows = _converted(_rows, value, body, _OFFSETS)
    if not rows:
        raise RequestError(400, _NO_OFFSETS)
    by_partition = {json.dumps(row[0], sort_keys=True): row for row in rows}
    return list(by_partition.values())


def parse_level(body: bytes) -> str:
    """The level in {"level": "DEBUG"}, as spelled."""
    level = parse_config(body, "levelMap").get("level")
    if level is None:
        raise RequestError(400, "Desired 'level' parameter was not specified in request.")
    return level


def check_task_configs(body: bytes) -> None:
    """Check that the body is a list of settings; they are not used here."""
    value = _parse(body, _TASK_CONFIGS)
    if value is None:
        refuse("", "No content to map due to end-of-input", None)
    if not isinstance(value, list):
        explain(body, _TASK_CONFIGS)


def encode_json(value: object) -> bytes:
    """JSON without blanks, as Jackson writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def refuse_null(call: str, variable: str) -> NoReturn:
    raise RequestError(500, f'Cannot invoke "{call}" because "{variable}" is null')


def _parse(body: bytes, kind: JavaType) -> Any:
    """The value in a body; None if there is none."""
    if not body.strip():
        return None
    # Commas in strings count too: real requests have far fewer.
    if sum(map(body.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        refuse("", f"The body has more than {_MOST_VALUES} values", len(body))
    try:
        value = _DECODER.decode(body.decode("utf-8-sig"))
        encode_json(value)  # half a surrogate pair cannot be stored or sent
    except UnicodeDecodeError as error:
        _refuse_encoding(body, error, kind)
    except UnicodeEncodeError:
        refuse(body.decode("latin-1"), "Incomplete surrogate pair in a string", len(body))
    except (ValueError, RecursionError):
        explain(body, kind)
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse_constant)


def _refuse_encoding(body: bytes, error: UnicodeDecodeError, kind: JavaType) -> NoReturn:
    text = body.decode("latin-1")
    middle = error.reason == "invalid continuation byte"
    at = error.end if middle else error.start
    where = "middle" if middle else "start"
    paths = [path for path, _ in values_before(text, kind, at)] or [()]
    chain = kind.chain(paths[-1], inside=True)
    refuse(text, f"Invalid UTF-8 {where} byte 0x{body[at]:x}", at + 1, chain)


def _converted(convert: Callable[[Any], _T], value: Any, body: bytes, kind: JavaType) -> _T:
    try:
        return convert(value)
    except _Unfit:
        explain(body, kind)


def _string_map(value: Any) -> RequestedConfig:
    if not isinstance(value, dict):
        raise _Unfit
    return {key: _string(inner) for key, inner in value.items()}


def _string(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case str():
            return str(value)
        case _:
            raise _Unfit


def _members(value: Any) -> Json:
    if not isinstance(value, dict) or not value.keys() <= _CREATE_REQUEST.members.keys():
        raise _Unfit
    return value


def _initial_state(value: Any, body: bytes) -> TargetState | None:
    text = _converted(_string, value, body, _CREATE_REQUEST)
    if text is None:
        return None
    state = _INITIAL_STATES.get(text.upper())
    if state is None:
        _refuse_state(text, body)
    return state


def _refuse_state(state: str, body: bytes) -> NoReturn:
    text = body.decode("latin-1")
    path: Path = ("initial_state",)
    starts = [at for found, at in values_before(text, _CREATE_REQUEST, len(text)) if found == path]
    refuse(
        text,
        f"Cannot construct instance of `{_CREATE}$InitialState`, problem: "
        f"No enum constant {_CREATE}.InitialState.{state.upper()}",
        starts[0] if starts else 0,
        _CREATE_REQUEST.chain(path),
    )


def _rows(value: Any) -> list[tuple[Json | None, Json | None]]:
    if not isinstance(value, dict) or not value.keys() <= {"offsets"}:
        raise _Unfit
    rows = value.get("offsets")
    if rows is not None and not isinstance(rows, list):
        raise _Unfit
    return [_row(row) for row in rows or ()]


def _row(value: Any) -> tuple[Json | None, Json | None]:
    if value is None:
        refuse_null(f"{_OFFSET}.partition()", "offset")
    if not isinstance(value, dict) or not value.keys() <= {"partition", "offset"}:
        raise _Unfit
    return _object_map(value.get("partition")), _object_map(value.get("offset"))


def _object_map(value: Any) -> Json | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _Unfit
    return {key: _plain(inner, _DEEPEST) for key, inner in value.items()}


def _plain(value: Any, depth: int) -> Any:
    """The value, with its numbers converted."""
    if not depth:
        raise _Unfit
    match value:
        case Number():
            return _number(value)
        case Mapping():
            return {key: _plain(inner, depth - 1) for key, inner in value.items()}
        case list():
            return [_plain(inner, depth - 1) for inner in value]
        case _:
            return value


def _number(text: Number) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise _Unfit
    number = int(text) if text.lstrip("-").isdigit() else float(text)
    if not math.isfinite(number):
        raise _Unfit
    return number
