"""The plugins that a Connect worker lists, and the names that connectors have.

The connectors are MirrorMaker 2's three. Kafka's converters and transformations are listed because
clients expect them; docs/configuration.md explains which of their settings have an effect.
Mirrors: org.apache.kafka.connect.runtime.isolation (4.3).
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.keys.classes import MIRROR
from sparkmirror.config.masking import HIDDEN, is_secret
from sparkmirror.errors import MirrorError

CONNECT = "org.apache.kafka.connect."
# The release whose behaviour the REST API shows.
CONNECT_VERSION = "4.3.1"
CONNECTOR_CLASS = "connector.class"
SUFFIX = "Connector"
CONNECTORS = tuple(
    f"{MIRROR}Mirror{kind}{SUFFIX}" for kind in ("Checkpoint", "Heartbeat", "Source")
)
_KEY_AND_VALUE = (
    "Cast",
    "ExtractField",
    "Flatten",
    "HeaderFrom",
    "HoistField",
    "InsertField",
    "MaskField",
    "ReplaceField",
    "SetSchemaMetadata",
    "TimestampConverter",
)
_WHOLE_RECORD = (
    "DropHeaders",
    "Filter",
    "InsertHeader",
    "RegexRouter",
    "TimestampRouter",
    "ValueToKey",
)
TRANSFORMATIONS = tuple(
    f"{CONNECT}transforms.{name}"
    for name in sorted(
        (
            *(f"{name}${part}" for name in _KEY_AND_VALUE for part in ("Key", "Value")),
            *_WHOLE_RECORD,
        )
    )
)
PREDICATES = tuple(
    f"{CONNECT}transforms.predicates.{name}"
    for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
)
CONVERTERS = (
    *(
        f"{CONNECT}converters.{name}Converter"
        for name in ("Boolean", "ByteArray", "Double", "Float", "Integer", "Long", "Short")
    ),
    f"{CONNECT}json.JsonConverter",
    f"{CONNECT}storage.StringConverter",
)
HEADER_CONVERTERS = (*CONVERTERS, f"{CONNECT}storage.SimpleHeaderConverter")
PLUGINS: Mapping[str, tuple[str, ...]] = {
    "source": CONNECTORS,
    "transformation": TRANSFORMATIONS,
    "predicate": PREDICATES,
    "converter": CONVERTERS,
    "header_converter": HEADER_CONVERTERS,
}


class UnknownPlugin(MirrorError):
    """There is no such plugin; the text is Connect's."""


class UnknownVersion(MirrorError):
    """The plugin exists, but not in the requested version; the text is Connect's."""


class UnusableConnector(MirrorError):
    """Settings of a connector that cannot even be validated; the text is Connect's."""


class WrongPlugin(UnusableConnector):
    """The settings name a different connector than the request."""


class NoConnectorClass(UnusableConnector):
    """The settings do not name a connector."""


class UnknownConnectorClass(UnusableConnector):
    """The settings name an unknown connector."""


def plugins(*, connectors_only: bool = True) -> list[dict[str, str]]:
    """The response of `GET /connector-plugins`."""
    return [
        {"class": name, "type": kind, "version": CONNECT_VERSION}
        for kind, names in PLUGINS.items()
        for name in names
        if kind == "source" or not connectors_only
    ]


def connector_class(text: str) -> str | None:
    """The full name of a connector, from that name, its last part, or that without `Connector`."""
    return _by_alias(CONNECTORS, text, SUFFIX)


def converter_class(text: str) -> str | None:
    """The same for a converter of keys, values or headers."""
    return _by_alias(HEADER_CONVERTERS, text, "Converter")


def _by_alias(names: tuple[str, ...], text: str, suffix: str) -> str | None:
    for name in names:
        simple = name.rpartition(".")[2]
        if text in (name, simple, simple.removesuffix(suffix)):
            return name
    return None


def require_class(props: Mapping[str, str | None]) -> str:
    """The full name of the connector that `props` are for.

    Raises:
        NoConnectorClass, UnknownConnectorClass: with Connect's words.
    """
    given = props.get(CONNECTOR_CLASS)
    if given is None:
        raise NoConnectorClass(f"Connector config {_java_map(props)} contains no connector type")
    found = connector_class(given)
    if found is None:
        raise UnknownConnectorClass(
            "Failed to find any class that implements Connector and which name matches "
            f"{given}, available connectors are: {', '.join(map(_describe, CONNECTORS))}"
        )
    return found


def check_plugin(plugin: str, props: Mapping[str, str | None]) -> None:
    """Compare the connector of a request with the one its settings name.

    Raises:
        WrongPlugin: they differ.
    """
    given = props.get(CONNECTOR_CLASS)
    if given is not None and not _alias(given).endswith(_alias(plugin)):
        raise WrongPlugin(f"Included connector type {given} does not match request type {plugin}")


def check_version(full_name: str, version: str | None) -> None:
    """Check that the only version matches the requested version or range.

    Raises:
        UnknownVersion: it does not.
    """
    asked = (version or "").strip()
    if asked in ("", "latest") or _within(asked):
        return
    shown = asked if asked[0] in "[(" else f"[{asked},{asked}]"
    raise UnknownVersion(
        f"Plugin {full_name} not found that matches the version range {shown}, available "
        f"versions: [{CONNECT_VERSION}]"
    )


def _within(asked: str) -> bool:
    """Whether CONNECT_VERSION is `1.2` or in a range such as `[1.0,2.0)` or `(,5]`."""
    if asked[0] not in "[(" or asked[-1] not in "])":
        return _numbers(asked) == _numbers(CONNECT_VERSION)
    low, comma, high = asked[1:-1].partition(",")
    high, here = high if comma else low, _numbers(CONNECT_VERSION)
    above = not low or _numbers(low) < here or (asked[0] == "[" and _numbers(low) == here)
    below = not high or _numbers(high) > here or (asked[-1] == "]" and _numbers(high) == here)
    return above and below


def _numbers(version: str) -> list[int]:
    """The parts of a version, without trailing zeros."""
    texts = version.strip().split(".")
    parts = [int(part) if part.isdecimal() and len(part) < 10 else -1 for part in texts]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _alias(name: str) -> str:
    return name.removesuffix(SUFFIX) if len(name) > len(SUFFIX) else name


def _describe(name: str) -> str:
    return (
        f"PluginDesc{{klass=class {name}, name='{name}', version='{CONNECT_VERSION}', "
        f"encodedVersion={CONNECT_VERSION}, type=source, typeName='source', location='classpath'}}"
    )


def _java_map(props: Mapping[str, str | None]) -> str:
    """As Java prints a map, with secrets hidden."""
    return "{" + ", ".join(f"{key}={_shown(key, value)}" for key, value in props.items()) + "}"


def _shown(key: str, value: str | None) -> str:
    return "null" if value is None else HIDDEN if is_secret(key) else value
