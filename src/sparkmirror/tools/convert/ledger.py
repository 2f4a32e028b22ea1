"""What happens to each field of the resource: used, listed as not carried over, or wrong.

A `Node` is a value at its path (`spec.mirrors[0].topicsPattern`). Reading the value of a node
records it in the ledger; `Ledger.leftovers` are the fields that were never read. Rule: fields may
be read only through `text`, `number`, `flag` and `whole` of their nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.errors import ConfigError, ConfigErrors
from sparkmirror.tools.convert.yaml_text import YamlValue

INDEX = re.compile(r"\[\d+\]")
# Shown in errors instead of a value of several lines.
WORDS = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", int: "a number"}


class NotCarried(NamedTuple):
    """A field that the files lack: why, and what to do instead."""

    path: str
    reason: str
    instead: str


class Fate(NamedTuple):
    """Why a field is not carried over, and what to do instead; `is_shared`: one note for all."""

    reason: str
    instead: str
    is_shared: bool = False


@dataclass(slots=True)
class Ledger:
    """Errors, notes and used paths of one resource, each kept once; `where` is its file."""

    where: str
    used: set[str] = field(default_factory=set)
    _errors: dict[str, ConfigError] = field(default_factory=dict)
    _notes: dict[NotCarried, None] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[NotCarried, ...]:
        return tuple(self._notes)

    @property
    def has_errors(self) -> bool:
        return bool(self._errors)

    def error(self, path: str, value: object, reason: str, remedy: str) -> None:
        """Record that the resource cannot be converted."""
        found = ConfigError(path, value, reason, remedy, self.where)
        self._errors.setdefault(str(found), found)

    def note(self, path: str, reason: str, instead: str) -> None:
        """Record that a field is not carried over, or not unchanged."""
        self._notes.setdefault(NotCarried(path, reason, instead))

    def raise_errors(self) -> None:
        """Raise all errors, if there are any."""
        if self._errors:
            raise ConfigErrors(tuple(self._errors.values()))

    def leftovers(self, value: YamlValue, fates: Mapping[str, Fate], unknown: Fate) -> None:
        """Record every unused field with its fate in the table; shared fates get one note."""
        shared: dict[Fate, list[str]] = {}
        for path in self._unused(value, "", fates):
            fate = fates.get(pattern_of(path), unknown)
            if fate.is_shared:
                shared.setdefault(fate, []).append(path)
            else:
                self.note(path, fate.reason, fate.instead)
        for fate, paths in shared.items():
            self.note(", ".join(paths), fate.reason, fate.instead)

    def _unused(self, value: YamlValue, path: str, fates: Mapping[str, Fate]) -> Iterator[str]:
        """The topmost unused paths that have a row of the table, or no row at or below them."""
        if path in self.used:
            return
        pattern = pattern_of(path)
        is_untouched = path != "" and not self._is_touched(value, path)
        has_rows = any(row.startswith((f"{pattern}.", f"{pattern}[")) for row in fates)
        is_empty = value in ({}, [])
        is_listed = pattern in fates
        if is_untouched and (is_listed or not (has_rows or is_empty)):
            yield path
            return
        for child, below in children(value, path):
            yield from self._unused(below, child, fates)

    def _is_touched(self, value: YamlValue, path: str) -> bool:
        if path in self.used:
            return True
        return any(self._is_touched(below, child) for child, below in children(value, path))


def children(value: YamlValue, path: str) -> Iterator[tuple[str, YamlValue]]:
    """The values inside a value, with their paths; null counts as missing."""
    if isinstance(value, dict):
        for name, below in value.items():
            if below is not None:
                yield f"{path}.{name}" if path else name, below
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield f"{path}[{number}]", below


def pattern_of(path: str) -> str:
    """The path without indexes, as in tables."""
    return INDEX.sub("[]", path)


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the resource, with its path."""

    value: YamlValue
    path: str
    ledger: Ledger

    def members(self) -> dict[str, Node]:
        """The members of a mapping, without nulls; anything else is an error, and empty."""
        if not self._is(dict):
            return {}
        found = children(self.value, self.path)
        names = [name for name, below in self._mapping().items() if below is not None]
        return {
            name: Node(below, path, self.ledger)
            for name, (path, below) in zip(names, found, strict=True)
        }

    def elements(self) -> list[Node]:
        """The elements of a list; anything else is an error, and empty."""
        if not self._is(list):
            return []
        return [Node(below, path, self.ledger) for path, below in children(self.value, self.path)]

    def get(self, name: str) -> Node | None:
        """The member `name`; None if it is missing or null."""
        return self.members().get(name)

    def need(self, name: str, remedy: str) -> Node | None:
        """The member `name`; a missing one is an error."""
        found = self.get(name)
        if found is None and isinstance(self.value, dict):
            self.ledger.error(self.at(name), None, "is missing", remedy)
        return found

    def at(self, name: str) -> str:
        """The path of a member, whether it exists or not."""
        return f"{self.path}.{name}" if self.path else name

    def use(self) -> None:
        """Record that the value and everything in it was used."""
        self.ledger.used.add(self.path)

    def whole(self) -> YamlValue:
        """The value, unchanged."""
        self.use()
        return self.value

    def text(self) -> str:
        """A text, number or boolean, as written in a properties file."""
        self.use()
        if isinstance(self.value, dict | list):
            self.wrong(f"is {described(self.value)}, not one value", "write it as a text")
            return ""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return str(self.value)

    def number(self, *, least: int = 0) -> int:
        """A whole number of at least `least`; `least` itself if the value is invalid."""
        self.use()
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.wrong(f"is not a whole number of {least} or more", "write a number such as 1")
            return least
        return value

    def flag(self) -> bool:
        """True or false; false if the value is invalid."""
        self.use()
        if not isinstance(self.value, bool):
            self.wrong("is neither true nor false", "write true or false")
        return self.value is True

    def matching(self, allowed: re.Pattern[str], what: str) -> str:
        """A text with only the characters that `what` may have."""
        found = self.text()
        if not isinstance(self.value, dict | list) and not allowed.fullmatch(found):
            self.wrong(f"is not {what}", f"write it with the characters {allowed.pattern}")
        return found

    def wrong(self, reason: str, remedy: str) -> None:
        """Record that this value cannot be used."""
        shown = described(self.value) if isinstance(self.value, dict | list) else self.value
        self.ledger.error(self.path, shown, reason, remedy)

    def _is(self, kind: type) -> bool:
        if isinstance(self.value, kind):
            return True
        self.use()
        self.wrong(f"is not {WORDS[kind]}", f"write {WORDS[kind]}")
        return False

    def _mapping(self) -> dict[str, YamlValue]:
        return self.value if isinstance(self.value, dict) else {}


def described(value: YamlValue) -> str:
    """The kind of the value, for errors."""
    return WORDS.get(type(value), "something else")


def members_of(node: Node | None) -> dict[str, Node]:
    """The members of a mapping; empty if there is none."""
    return {} if node is None else node.members()
