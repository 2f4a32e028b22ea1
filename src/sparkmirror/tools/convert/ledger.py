"""What became of each field of the resource: used, listed as not carried over, or wrong.

A `Node` is a value at its path (`spec.mirrors[0].topicsPattern`). Taking a value from a node
records it in the ledger; `Ledger.leftovers` are the fields that were never taken. Rule: a field may
be read only through `text`, `number`, `flag` and `whole` of its node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.errors import ConfigError, ConfigErrors
from sparkmirror.tools.convert.yaml_text import YamlValue

INDEX = re.compile(r"\[\d+\]")
# Shown in errors in place of a value that has no one line.
WORDS = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", int: "a number"}


class NotCarried(NamedTuple):
    """A field that the files do not have: why, and what to do instead."""

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
    """Errors, notes and used paths of one resource; `where` is its file. Equal ones count once."""

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
        """Note that the resource cannot be converted."""
        found = ConfigError(path, value, reason, remedy, self.where)
        self._errors.setdefault(str(found), found)

    def note(self, path: str, reason: str, instead: str) -> None:
        """Note that a field is not carried over, or not as it is."""
        self._notes.setdefault(NotCarried(path, reason, instead))

    def raise_errors(self) -> None:
        """Raise everything that is wrong, if anything is."""
        if self._errors:
            raise ConfigErrors(tuple(self._errors.values()))

    def leftovers(self, value: YamlValue, fates: Mapping[str, Fate], unknown: Fate) -> None:
        """Note every field that was not used, with its fate in the table; one note for a fate that
        is for no field in particular.
        """
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
        """The highest paths that a row of the table, or nothing at all, covers."""
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
    """The values inside a value with their paths; null means the same as no value."""
    if isinstance(value, dict):
        for name, below in value.items():
            if below is not None:
                yield f"{path}.{name}" if path else name, below
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield f"{path}[{number}]", below


def pattern_of(path: str) -> str:
    """The path without the numbers of elements, as tables have it."""
    return INDEX.sub("[]", path)


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the resource, with its path."""

    value: YamlValue
    path: str
    ledger: Ledger

    def members(self) -> dict[str, Node]:
        """What a mapping has, without nulls; anything else is an error, and empty."""
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
        """The same; it is an error if it is missing."""
        found = self.get(name)
        if found is None and isinstance(self.value, dict):
            self.ledger.error(self.at(name), None, "is missing", remedy)
        return found

    def at(self, name: str) -> str:
        """The path of a member, which need not exist."""
        return f"{self.path}.{name}" if self.path else name

    def use(self) -> None:
        """Say that the value, with all that is in it, was used."""
        self.ledger.used.add(self.path)

    def whole(self) -> YamlValue:
        """The value as it is."""
        self.use()
        return self.value

    def text(self) -> str:
        """A text, number or boolean, as a properties file has it."""
        self.use()
        if isinstance(self.value, dict | list):
            self.wrong(f"is {described(self.value)}, not one value", "write it as a text")
            return ""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return str(self.value)

    def number(self, *, least: int = 0) -> int:
        """A whole number of at least `least`; that one if it is wrong."""
        self.use()
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.wrong(f"is not a whole number of {least} or more", "write a number such as 1")
            return least
        return value

    def flag(self) -> bool:
        """True or false; false if it is wrong."""
        self.use()
        if not isinstance(self.value, bool):
            self.wrong("is neither true nor false", "write true or false")
        return self.value is True

    def matching(self, allowed: re.Pattern[str], what: str) -> str:
        """A text that has only characters that `what` may have."""
        found = self.text()
        if not isinstance(self.value, dict | list) and not allowed.fullmatch(found):
            self.wrong(f"is not {what}", f"write it with the characters {allowed.pattern}")
        return found

    def wrong(self, reason: str, remedy: str) -> None:
        """Note that this value cannot be used."""
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
    """What kind of value it is, for errors."""
    return WORDS.get(type(value), "something else")


def members_of(node: Node | None) -> dict[str, Node]:
    """What a mapping has; nothing if it is not there."""
    return {} if node is None else node.members()
