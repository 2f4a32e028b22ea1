"""The Java types of request bodies, and Jackson's errors for JSON that does not fit them.

Runs on: worker. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from sparkmirror.rest.entities.jackson_errors import Path, Scanner, refuse

# Search bodies up to this size for the place of an error: the search is slow.
_SEARCH_LIMIT_BYTES = 64 * 1024
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# A string without an end; the scanner reports it in detail.
_UNFINISHED = "unfinished"
_WORDS = {"t": "true", "f": "false", "n": "null"}


@dataclass(frozen=True, slots=True)
class JavaType:
    """A type that JSON is read into. `name` is Java's, with type parameters.

    `members` are the types of a class's constructor arguments, `inner` is that of all values of a
    map or list. `is_text`: a string, which also accepts numbers and words.
    """

    name: str
    members: Mapping[str, JavaType] = field(default_factory=dict)
    inner: JavaType | None = None
    is_text: bool = False

    @property
    def raw_name(self) -> str:
        return self.name.partition("<")[0]

    @property
    def is_map(self) -> bool:
        return self.raw_name.endswith("Map")

    @property
    def is_list(self) -> bool:
        return self.raw_name.endswith("List")

    def takes(self, token: JsonToken) -> bool:
        if token.kind in ("null", _UNFINISHED):
            return True
        if self.is_text:
            return token.kind not in ("{", "[")
        return token.kind == ("[" if self.is_list else "{")

    def at(self, path: Path) -> JavaType | None:
        """The type of the value at a path; None where any is allowed."""
        found: JavaType | None = self
        for key in path:
            if found is None:
                return None
            found = found.members.get(str(key)) if found.members else found.inner
        return found

    def chain(self, path: Path, inside: bool = False) -> str:
        """Jackson's reference chain. `inside`: leave out a map's key at its end."""
        owners = [self.at(path[:depth]) for depth in range(len(path))]
        links = [_link(owner, key) for owner, key in zip(owners, path, strict=True) if owner]
        if inside and owners and owners[-1] and owners[-1].is_map:
            links.pop()
        return "->".join(links)


def _link(owner: JavaType, key: str | int) -> str:
    if isinstance(key, int):
        return f"{owner.raw_name}[{key}]"
    return f'{owner.raw_name}["{key}"]'


@dataclass(frozen=True, slots=True)
class JsonToken:
    """The first token of a value; its kind is its first character, except for words and numbers."""

    kind: str
    text: str

    @property
    def shown(self) -> str:
        return _SHOWN[self.kind]


_SHOWN = {
    "{": "Object value (token `JsonToken.START_OBJECT`)",
    "[": "Array value (token `JsonToken.START_ARRAY`)",
    '"': "String value (token `JsonToken.VALUE_STRING`)",
    "true": "Boolean value (token `JsonToken.VALUE_TRUE`)",
    "false": "Boolean value (token `JsonToken.VALUE_FALSE`)",
    "null": "Null value (token `JsonToken.VALUE_NULL`)",
    "int": "Integer value (token `JsonToken.VALUE_NUMBER_INT`)",
    "double": "Floating-point value (token `JsonToken.VALUE_NUMBER_FLOAT`)",
}
# The constructor argument that a class would need, and how Jackson names the value.
_SCALARS = {
    "int": ("int/Int", "Number value ({})"),
    "double": ("double/Double", "Number value ({})"),
    "true": ("boolean/Boolean", "boolean value ({})"),
    "false": ("boolean/Boolean", "boolean value ({})"),
    '"': ("String", "String value ('{}')"),
}


def token_at(text: str, start: int) -> JsonToken:
    char = text[start : start + 1]
    if char == '"':
        return _string_at(text, start)
    number = _NUMBER.match(text, start)
    if number:
        return JsonToken("double" if number[1] or number[2] else "int", number.group())
    return JsonToken(_WORDS.get(char, char), _WORDS.get(char, char))


def _string_at(text: str, start: int) -> JsonToken:
    string = _STRING.match(text, start)
    if string is None:
        return JsonToken(_UNFINISHED, "")
    return JsonToken('"', string[1].encode("latin-1").decode(errors="replace"))


def explain(body: bytes, kind: JavaType) -> NoReturn:
    """Raise Jackson's error for a body that is not JSON, or not of this type."""
    text = body.decode("latin-1")
    if len(text) <= _SEARCH_LIMIT_BYTES:
        scanner = Scanner(text, kind.chain)
        _check_values(text, kind, scanner)
        _check_end(text, kind, scanner)
    refuse(text, "The body cannot be read", len(text))


def _check_values(text: str, kind: JavaType, scanner: Scanner) -> None:
    strange: dict[Path, Path] = {}  # the first unknown member of each object
    for path, at, opens in scanner.events():
        if not opens:
            if path in strange:
                _refuse_member(text, kind, strange[path], at)
            continue
        owner = kind.at(path[:-1]) if path else None
        if owner and owner.members and path[-1] not in owner.members:
            strange.setdefault(path[:-1], path)
        wanted = kind.at(path)
        token = token_at(text, at)
        if wanted and not wanted.takes(token):
            refuse(text, _mismatch(wanted, token), at, kind.chain(path))


def _refuse_member(text: str, kind: JavaType, path: Path, at: int) -> NoReturn:
    owner = kind.at(path[:-1])
    assert owner is not None  # it has members
    names = ", ".join(f'"{name}"' for name in owner.members)
    many = len(owner.members)
    known = f"{many} known properties" if many > 1 else "one known property"
    refuse(
        text,
        f'Unrecognized field "{path[-1]}" (class {owner.name}), not marked as ignorable '
        f"({known}: {names})",
        at,
        kind.chain(path),
    )


def _mismatch(wanted: JavaType, token: JsonToken) -> str:
    if wanted.is_map and token == JsonToken('"', ""):
        return (
            f'Cannot coerce empty String ("") to element of `{wanted.raw_name}` '
            "(but could if coercion was enabled using `CoercionConfig`)"
        )
    by_constructor = wanted.members or (wanted.is_map and token.kind == '"')
    if by_constructor and token.kind in _SCALARS:
        argument, value = _SCALARS[token.kind]
        return (
            f"Cannot construct instance of `{wanted.raw_name}` (although at least one Creator "
            f"exists): no {argument}-argument constructor/factory method to deserialize from "
            + value.format(token.text)
        )
    return f"Cannot deserialize value of type `{wanted.name}` from {token.shown}"


def _check_end(text: str, kind: JavaType, scanner: Scanner) -> None:
    start = scanner.next_token()
    if start is not None:
        shown = re.findall(r"JsonToken\.(\w+)", token_at(text, start).shown)[0]
        bound = "java.util.Map" if kind.is_map else kind.name
        refuse(
            text,
            f"Trailing token (of type {shown}) found after value (bound as `{bound}`): "
            "not allowed as per `DeserializationFeature.FAIL_ON_TRAILING_TOKENS`",
            start,
        )


def values_before(text: str, kind: JavaType, offset: int) -> Iterator[tuple[Path, int]]:
    """The values that begin before a byte: their paths and first bytes."""
    if len(text) <= _SEARCH_LIMIT_BYTES:
        for path, at, opens in Scanner(text, kind.chain).events():
            if at > offset:
                return
            if opens:
                yield path, at
