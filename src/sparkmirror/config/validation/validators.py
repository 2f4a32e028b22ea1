"""Kafka's own checks of single values, in Kafka's words.

`config_def` explains errors to the authors of files; this module returns the messages that clients
of a Connect worker expect. Mirrors: org.apache.kafka.common.config.ConfigDef (4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sparkmirror.config.config_def import (
    COMMA,
    JAVA_BLANKS,
    BadValue,
    Key,
    Secret,
    Type,
    parse_value,
)
from sparkmirror.config.keys.plugins import converter_class

# Returns the whole error message for a typed value, or None.
Validator = Callable[[str, Any], str | None]

# Converters of others, which are often installed beside Kafka's; they are never loaded.
FOREIGN_CONVERTERS = ("io.confluent.", "io.apicurio.", "com.amazonaws.")
NO_CLASS = "could not be found."
CONVERTER_KEYS = tuple(f"{part}.converter" for part in ("key", "value", "header"))


def parse_java(key: Key, text: str | None) -> Any:
    """The value of `text` by its type alone. Raises BadValue with Kafka's whole message."""
    if text is None:
        return None
    trimmed = text.strip(JAVA_BLANKS)
    if key.type is Type.LIST:
        return tuple(COMMA.split(trimmed)) if trimmed else ()
    try:
        return _class(key, trimmed) if key.type is Type.CLASS else parse_value(key.type, text)
    except BadValue:
        raise BadValue(invalid(key.name, text, _reason(key.type, text))) from None


def _reason(type_: Type, text: str) -> str:
    if type_ is Type.BOOLEAN:
        return "Expected value to be either true or false"
    if type_ is Type.CLASS:
        return f"Class {text} {NO_CLASS}"
    return f"Not a number of type {type_}"


def _class(key: Key, name: str) -> str:
    """The name of a known class, or of one that its key accepts; a converter's in full."""
    if key.name in CONVERTER_KEYS:
        found = name if name.startswith(FOREIGN_CONVERTERS) else converter_class(name)
        if found is None:
            raise BadValue("unknown converter")
        return found
    if not name:
        raise BadValue("no class")
    if key.convert:
        key.convert(name)
    return name


def invalid(name: str, value: Any, reason: str) -> str:
    """The message of Kafka's ConfigException."""
    return f"Invalid value {_java_text(value)} for configuration {name}: {reason}"


def _java_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value)


def _range(low: float, high: float | None = None) -> Validator:
    def check(name: str, value: Any) -> str | None:
        if value is None:
            return invalid(name, value, "Value must be non-null")
        if value < low:
            return invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            return invalid(name, value, f"Value must be no more than {high}")
        return None

    return check


def _one_of(*choices: str) -> Validator:
    def check(name: str, value: Any) -> str | None:
        if value in choices:
            return None
        return invalid(name, value, f"String must be one of: {', '.join(choices)}")

    return check


def _any_case_of(*choices: str) -> Validator:
    def check(name: str, value: Any) -> str | None:
        if value is not None and value.upper() in choices:
            return None
        reason = f"String must be one of (case insensitive): {', '.join(choices)}"
        return invalid(name, value, reason)

    return check


def _connector_name(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not value:
        return invalid(name, value, "String may not be empty")
    found = [str(ord(char)) for char in value if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0]
    if not found:
        return None
    return invalid(
        name,
        value,
        "String may not contain control sequences but had the following ASCII chars: "
        + ", ".join(found),
    )


def _aliases(name: str, value: Any) -> str | None:
    if value is None:
        return invalid(name, value, "entry must be non null")
    if len(set(value)) < len(value):
        return invalid(name, value, "Duplicate alias provided.")
    return None


def _list(*choices: str) -> Validator:
    """A list of different elements; with `choices`, one or more of these."""

    def check(name: str, value: Any) -> str | None:
        what = f"Configuration '{name}'"
        if value is None:
            return f"{what} values must not be null."
        if choices and not value:
            return f"{what} must not be empty. Valid values include: [{', '.join(choices)}]"
        if len(set(value)) < len(value):
            return f"{what} values must not be duplicated."
        return next(filter(None, (_element(name, item, choices) for item in value)), None)

    return check


def _element(name: str, item: str, choices: tuple[str, ...]) -> str | None:
    if not item:
        return f"Configuration '{name}' values must not be empty."
    return _one_of(*choices)(name, item) if choices else None


def _non_empty(name: str, value: Any) -> str | None:
    return invalid(name, value, "String must be non-empty") if value == "" else None


def _optional(check: Validator) -> Validator:
    return lambda name, value: None if value is None else check(name, value)


VALIDATORS: Mapping[str, Validator] = {
    "name": _connector_name,
    "tasks.max": _range(1),
    "transforms": _aliases,
    "predicates": _aliases,
    "config.action.reload": _one_of("none", "restart"),
    "errors.tolerance": _one_of("none", "all"),
    "topic.creation.groups": _aliases,
    "exactly.once.support": _any_case_of("REQUIRED", "REQUESTED"),
    "transaction.boundary": _any_case_of("INTERVAL", "POLL", "CONNECTOR"),
    "transaction.boundary.interval.ms": _optional(_range(0)),
    "offsets.storage.topic": _non_empty,
    "offset-syncs.topic.location": _one_of("source", "target"),
    "security.protocol": _any_case_of("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"),
    "sasl.login.refresh.window.factor": _range(0.5, 1.0),
    "sasl.login.refresh.window.jitter": _range(0.0, 0.25),
    "sasl.login.refresh.min.period.seconds": _range(0, 900),
    "sasl.login.refresh.buffer.seconds": _range(0, 3600),
    "sasl.oauthbearer.assertion.algorithm": _any_case_of("ES256", "RS256"),
    "sasl.oauthbearer.assertion.claim.exp.seconds": _range(0, 86400),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _range(0, 3600),
    "metric.names.formats": _list("legacy", "new"),
    "decimal.format": _any_case_of("NUMERIC", "BASE64"),
}
_ANY_LIST = _list()


def check_value(key: Key, value: Any) -> str | None:
    """Kafka's error for a typed value of `key`; None if the value is valid."""
    plain = value.reveal() if isinstance(value, Secret) else value
    check = VALIDATORS.get(key.name, _ANY_LIST if key.type is Type.LIST else None)
    return check(key.name, plain) if check else None
