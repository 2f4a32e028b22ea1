"""One row per setting, and Kafka's rules for reading a value of each type.

Four things derive from the rows: typed values, validation, docs/configuration.md and the list of
known keys. Mirrors: org.apache.kafka.common.config.ConfigDef (4.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum, StrEnum
from typing import Any, Final, TypeVar

from sparkmirror.config.findings import Findings
from sparkmirror.config.masking import HIDDEN, remember


class Type(StrEnum):
    """The types of Kafka's ConfigDef."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 - the name of a type


class Importance(StrEnum):
    """How likely a user is to need the key."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class KeySupport(StrEnum):
    """What setting the key does in this program."""

    HONOURED = "honoured"
    EXPLAINED = "no effect"
    NOT_YET = "not yet"


class _Required(Enum):
    REQUIRED = "required"


REQUIRED: Final = _Required.REQUIRED


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A password: prints as `[hidden]`; `reveal` is for the code that sends it to a broker."""

    value: str

    def __post_init__(self) -> None:
        remember(self.value)

    def __str__(self) -> str:
        return HIDDEN

    __repr__ = __str__

    def reveal(self) -> str:
        """The password itself."""
        return self.value


class BadValue(ValueError):
    """A value that its key does not accept: what is wrong, and how to correct it."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One setting.

    `attribute` is the field that it fills in a config class (default: the name with underscores).
    `convert` runs last: it returns the value of the field, or raises BadValue. `reason` explains
    why an EXPLAINED key has no effect; `quiet` values need no such notice. `kafka_default` is
    Kafka's own default in words, if ours differs; `shown_default` is ours in words, if a user would
    not write `default`.
    """

    name: str
    type: Type
    default: Any = REQUIRED
    doc: str
    importance: Importance = Importance.LOW
    at_least: int | None = None
    at_most: int | None = None
    one_of: tuple[str, ...] = ()
    ignore_case: bool = False
    non_empty: bool = False
    convert: Callable[[Any], Any] | None = None
    attribute: str = ""
    status: KeySupport = KeySupport.HONOURED
    reason: str = ""
    quiet: tuple[str, ...] = ()
    kafka_default: str = ""
    shown_default: str = ""
    group: str | None = None

    @property
    def field(self) -> str:
        """The field of a config class that this key fills."""
        return self.attribute or self.name.replace(".", "_").replace("-", "_")

    def parse(self, text: str) -> Any:
        """The typed value of `text`. Raises BadValue."""
        value = self._typed(text)
        self._check_range(value)
        self._check_choice(value)
        if self.non_empty and not value:
            raise BadValue("is empty", f"give {self.expected()}")
        return self.convert(value) if self.convert else value

    def _typed(self, text: str) -> Any:
        try:
            return parse_value(self.type, text)
        except BadValue as bad:
            bounded = self.at_least is not None
            raise BadValue(bad.reason, f"use {self.expected()}" if bounded else bad.remedy) from bad

    def expected(self) -> str:
        """What the key accepts, in words."""
        if self.one_of:
            return "one of " + ", ".join(self.one_of)
        return TYPE_WORDS[self.type] + self._bounds()

    def _bounds(self) -> str:
        low, high = self.at_least, self.at_most
        if low is None or high is None:
            return "" if low is None else f" of at least {low}"
        return f" from {low} to {high}"

    def _check_range(self, value: Any) -> None:
        too_small = self.at_least is not None and value < self.at_least
        too_large = self.at_most is not None and value > self.at_most
        if too_small or too_large:
            raise BadValue("out of range", f"use {self.expected()}")

    def _check_choice(self, value: Any) -> None:
        if not self.one_of:
            return
        given = value if isinstance(value, tuple) else (value,)
        choices = {self._fold(choice) for choice in self.one_of}
        if not all(self._fold(item) in choices for item in given):
            raise BadValue("not one of the allowed values", f"use {self.expected()}")

    def _fold(self, text: str) -> str:
        return text.lower() if self.ignore_case else text


def positive_or_default(value: int) -> int:
    """A number of replicas or partitions; -1 is the brokers' default. Raises BadValue."""
    if value == -1 or value > 0:
        return value
    raise BadValue("out of range", "use a whole number of at least 1, or -1 for the broker default")


# Leading zeros are allowed, but Python rejects numbers of thousands of digits.
NUMBER = re.compile(r"[+-]?[0-9]{1,100}")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
COMMA = re.compile(r"\s*,\s*", re.ASCII)
BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}
TYPE_WORDS = {
    Type.BOOLEAN: "true or false",
    Type.STRING: "a text",
    Type.INT: "a whole number",
    Type.SHORT: "a whole number",
    Type.LONG: "a whole number",
    Type.DOUBLE: "a number",
    Type.LIST: "a comma-separated list",
    Type.CLASS: "a class name",
    Type.PASSWORD: "a password",
}
# Java's String.trim removes every character up to the space.
JAVA_BLANKS = "".join(map(chr, range(0x21)))


def parse_value(type_: Type, text: str) -> Any:
    """Read `text` as Kafka's ConfigDef does for this type. Raises BadValue."""
    trimmed = text.strip(JAVA_BLANKS)
    return PARSERS[type_](trimmed)


def parse_list(text: str) -> tuple[str, ...]:
    """The elements of a LIST in order, each once. Raises BadValue for an empty element."""
    if not text:
        return ()
    items = COMMA.split(text)
    if "" in items:
        raise BadValue("empty list element", "remove the extra comma")
    return tuple(dict.fromkeys(items))


def _parse_boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise BadValue("neither true nor false", "use true or false")
    return text.lower() == "true"


def _whole_number(type_: Type) -> Callable[[str], int]:
    bits = BITS[type_]
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def parse(text: str) -> int:
        if not NUMBER.fullmatch(text) or not low <= int(text) <= high:
            reason = f"not a number of type {type_}"
            raise BadValue(reason, f"use a whole number from {low} to {high}")
        return int(text)

    return parse


def _parse_double(text: str) -> float:
    if not DECIMAL.fullmatch(text):
        raise BadValue("not a number of type DOUBLE", "use a number such as 0.8")
    return float(text.rstrip("dDfF"))


PARSERS: Mapping[Type, Callable[[str], Any]] = {
    Type.BOOLEAN: _parse_boolean,
    Type.STRING: str,
    Type.INT: _whole_number(Type.INT),
    Type.SHORT: _whole_number(Type.SHORT),
    Type.LONG: _whole_number(Type.LONG),
    Type.DOUBLE: _parse_double,
    Type.LIST: parse_list,
    Type.CLASS: str,
    Type.PASSWORD: Secret,
}

ConfigT = TypeVar("ConfigT")


class Definition:
    """A set of keys in the order they are documented."""

    def __init__(self, *keys: Key) -> None:
        self._keys = {key.name: key for key in keys}

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> Key:
        return self._keys[name]

    def __len__(self) -> int:
        return len(self._keys)

    def __add__(self, other: Definition) -> Definition:
        return Definition(*self, *other)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def parse(self, props: Mapping[str, str], findings: Findings | None = None) -> dict[str, Any]:
        """Typed values of all keys, by name.

        Records a bad value and uses its default, so that parsing continues with the next key.

        Raises:
            ConfigErrors: only when the caller gives no `findings` to collect into.
        """
        found = Findings() if findings is None else findings
        values = {key.name: self._value(key, props, found) for key in self}
        if findings is None:
            found.raise_errors()
        return values

    def _value(self, key: Key, props: Mapping[str, str], findings: Findings) -> Any:
        if key.name not in props:
            return self._absent(key, findings)
        text = props[key.name]
        try:
            value = key.parse(text)
        except BadValue as bad:
            shown = HIDDEN if key.type is Type.PASSWORD else text
            findings.error(key.name, shown, bad.reason, bad.remedy)
            return None if key.default is REQUIRED else key.default
        _explain(key, text, value, findings)
        _warn_repeated(key, text, value, findings)
        return value

    def _absent(self, key: Key, findings: Findings) -> Any:
        if key.default is not REQUIRED:
            return key.default
        findings.error(key.name, None, "is required and not set", f"set it to {key.expected()}")
        return None


def _explain(key: Key, text: str, value: Any, findings: Findings) -> None:
    is_harmless = value == key.default or text.strip() in key.quiet
    if key.status is KeySupport.EXPLAINED and not is_harmless:
        findings.warn_key(key.name, f"has no effect: {key.reason}")


def _warn_repeated(key: Key, text: str, value: Any, findings: Findings) -> None:
    if key.type is Type.LIST and len(COMMA.split(text.strip(JAVA_BLANKS))) > max(len(value), 1):
        findings.warn_key(key.name, "has duplicate elements; each is used once")


def fill(cls: type[ConfigT], keys: Definition, values: Mapping[str, Any], **extra: Any) -> ConfigT:
    """Make a config dataclass: each field from the key that names it, or from `extra`."""
    names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    found = {key.field: values[key.name] for key in keys if key.field in names}
    return cls(**(found | extra))
