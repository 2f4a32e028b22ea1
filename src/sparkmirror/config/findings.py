"""Collects all errors and warnings of a configuration, to report them at once.

Parsers work on expanded names (`source.consumer.fetch.max.bytes`); users know the name in their
file (`A.consumer.fetch.max.bytes`). An `Origin` maps the first to the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.config.masking import HIDDEN, is_secret, mask_words
from sparkmirror.errors import ConfigError, ConfigErrors


class Origin(NamedTuple):
    """Where an expanded setting was written: the key in the file and its unresolved value.

    `provided` are the values of its placeholders, from config providers.
    """

    key: str
    shown: str | None = None
    provided: frozenset[str] = frozenset()


class Warned(NamedTuple):
    """A warning and the key in the user's file that it is about, if it is about one."""

    text: str
    key: str


class Findings:
    """Errors and warnings about one file or one set of properties; equal ones are kept once.

    `within` returns a view for the parser of a part: other names, the same two lists.
    """

    def __init__(self, where: str = "", origins: Mapping[str, Origin] | None = None) -> None:
        self.where = where
        self.origins = dict(origins or {})
        self._errors: dict[str, ConfigError] = {}
        self._warnings: dict[str, str] = {}

    @property
    def errors(self) -> tuple[ConfigError, ...]:
        return tuple(self._errors.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    @property
    def warned(self) -> tuple[Warned, ...]:
        """The same without the place, and with the keys."""
        return tuple(
            Warned(text.removeprefix(self._place), key) for text, key in self._warnings.items()
        )

    @property
    def _place(self) -> str:
        return f"{self.where}: " if self.where else ""

    def origin(self, key: str) -> Origin:
        """The name and the printable value of `key` in the user's file."""
        return self.origins.get(key, Origin(key))

    def note_provided(self, key: str, written: str, values: frozenset[str]) -> None:
        """Record that placeholders in the value of `key`, as `written`, became `values`."""
        origin = self.origin(key)
        self.origins[key] = Origin(origin.key, origin.shown or written, values)

    def error(self, key: str, value: object, reason: str, remedy: str = "") -> None:
        """Record that `key` cannot be used; `value` is None if the key is absent."""
        origin = self.origin(key)
        reason, remedy = (mask_words(text, origin.provided) for text in (reason, remedy))
        shown = origin.shown if value is not None and origin.shown is not None else value
        if shown is not None and is_secret(key):
            shown = HIDDEN
        found = ConfigError(origin.key, shown, reason, remedy, self.where)
        self._errors.setdefault(str(found), found)

    def warn(self, text: str, key: str = "") -> None:
        """Record something that works, but perhaps not as the user expects."""
        self._warnings.setdefault(f"{self._place}{text}", key)

    def warn_key(self, key: str, text: str) -> None:
        """Record a warning about one key, under its name in the user's file."""
        origin = self.origin(key)
        self.warn(f"{origin.key}: {mask_words(text, origin.provided)}", origin.key)

    def within(self, names: Mapping[str, str]) -> Findings:
        """A view for a parser that calls the key `names[x]` by the name `x`."""
        return self.renamed({inner: self.origin(outer) for inner, outer in names.items()})

    def renamed(self, origins: Mapping[str, Origin]) -> Findings:
        """A view with these origins that adds to the same lists."""
        view = Findings(self.where, origins)
        view._errors = self._errors
        view._warnings = self._warnings
        return view

    def raise_errors(self) -> None:
        """Raise all errors found so far, if any."""
        if self._errors:
            raise ConfigErrors(self.errors)


class Settings(NamedTuple):
    """Properties with resolved placeholders, and the findings for their errors."""

    values: Mapping[str, str]
    findings: Findings
