"""The response of `GET /connector-plugins/<connector>/config`: the keys of a connector.

Names, types, defaults and layout are those of Kafka Connect 4.3; the descriptions are our own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sparkmirror.config.config_def import REQUIRED, Definition, Key
from sparkmirror.config.keys.connector_keys import (
    CHECKPOINT_KEYS,
    COMMON_KEYS,
    CONNECT_KEYS,
    FRAMEWORK_KEYS,
    HEARTBEAT_KEYS,
    SOURCE_KEYS,
)
from sparkmirror.config.keys.converter_keys import CONVERTER_DEFINITIONS
from sparkmirror.config.keys.plugins import (
    UnknownPlugin,
    check_version,
    connector_class,
    converter_class,
)

ConfigInfo = dict[str, Any]
# What Connect defines for every source connector; the connector's own definition has more.
SOURCE_FRAMEWORK = (
    "topic.creation.groups",
    "exactly.once.support",
    "transaction.boundary",
    "transaction.boundary.interval.ms",
    "offsets.storage.topic",
)
BASE_KEYS = CONNECT_KEYS + Definition(*(FRAMEWORK_KEYS[name] for name in SOURCE_FRAMEWORK))
OWN_KEYS = {
    "MirrorSourceConnector": COMMON_KEYS + SOURCE_KEYS,
    "MirrorCheckpointConnector": COMMON_KEYS + CHECKPOINT_KEYS,
    "MirrorHeartbeatConnector": COMMON_KEYS + HEARTBEAT_KEYS,
}


class Layout(NamedTuple):
    """Where a user interface shows a key."""

    group: str | None
    order: int
    width: str
    display_name: str


COMMON, ERRORS, EXACTLY_ONCE = "Common", "Error Handling", "Exactly Once Support"
LAYOUTS = {
    "name": Layout(COMMON, 1, "MEDIUM", "Connector name"),
    "connector.class": Layout(COMMON, 2, "LONG", "Connector class"),
    "connector.plugin.version": Layout(COMMON, 3, "MEDIUM", "Connector version"),
    "tasks.max": Layout(COMMON, 4, "SHORT", "Tasks max"),
    "tasks.max.enforce": Layout(COMMON, 5, "SHORT", "Enforce tasks max"),
    "key.converter": Layout(COMMON, 6, "SHORT", "Key converter class"),
    "key.converter.plugin.version": Layout(COMMON, 7, "SHORT", "Key converter version"),
    "value.converter": Layout(COMMON, 8, "SHORT", "Value converter class"),
    "value.converter.plugin.version": Layout(COMMON, 9, "SHORT", "Value converter version"),
    "header.converter": Layout(COMMON, 10, "SHORT", "Header converter class"),
    "header.converter.plugin.version": Layout(COMMON, 11, "SHORT", "Header converter version"),
    "transforms": Layout("Transforms", 12, "LONG", "Transforms"),
    "predicates": Layout("Predicates", 13, "LONG", "Predicates"),
    "config.action.reload": Layout(COMMON, 14, "MEDIUM", "Reload Action"),
    "errors.retry.timeout": Layout(ERRORS, 1, "MEDIUM", "Retry Timeout for Errors"),
    "errors.retry.delay.max.ms": Layout(
        ERRORS, 2, "MEDIUM", "Maximum Delay Between Retries for Errors"
    ),
    "errors.tolerance": Layout(ERRORS, 3, "SHORT", "Error Tolerance"),
    "errors.log.enable": Layout(ERRORS, 4, "SHORT", "Log Errors"),
    "errors.log.include.messages": Layout(ERRORS, 5, "SHORT", "Log Error Details"),
    "topic.creation.groups": Layout("Topic Creation", 1, "LONG", "Topic Creation Groups"),
    "exactly.once.support": Layout(EXACTLY_ONCE, 2, "SHORT", "Exactly once support"),
    "transaction.boundary": Layout(EXACTLY_ONCE, 3, "SHORT", "Transaction Boundary"),
    "transaction.boundary.interval.ms": Layout(
        EXACTLY_ONCE, 4, "SHORT", "Transaction boundary interval"
    ),
    "offsets.storage.topic": Layout("offsets.topic", 1, "LONG", "Offsets topic"),
    "schemas.enable": Layout("Schemas", 0, "MEDIUM", "Enable Schemas"),
    "schemas.cache.size": Layout("Schemas", 1, "MEDIUM", "Schema Cache Size"),
    "schema.content": Layout("Schemas", 2, "MEDIUM", "Schema Content"),
    "decimal.format": Layout("Serialization", 0, "MEDIUM", "Decimal Format"),
    "replace.null.with.default": Layout("Serialization", 1, "MEDIUM", "Replace null with default"),
    "converter.encoding": Layout(None, -1, "MEDIUM", "Encoding"),
}


def plugin_definitions(plugin: str, version: str | None = None) -> list[ConfigInfo]:
    """The keys of a connector or a converter, by its name or an alias.

    Raises:
        UnknownPlugin: there is no plugin of that name.
        UnknownVersion: the plugin does not exist in that version.
    """
    connector, converter = connector_class(plugin), converter_class(plugin)
    full_name = connector or converter
    if full_name is None:
        raise UnknownPlugin(f"Unknown plugin {plugin}.")
    check_version(full_name, version)
    if connector is None:
        return [definition(key) for key in CONVERTER_DEFINITIONS[full_name]]
    return [definition(key) for key in merged_keys(OWN_KEYS[simple_name(connector)], BASE_KEYS)]


def simple_name(full_name: str) -> str:
    """The last part of a class name."""
    return full_name.rpartition(".")[2]


def merged_keys(first: Definition, second: Definition) -> Definition:
    """The keys of both; the first wins where both have a key."""
    return first + Definition(*(key for key in second if key.name not in first))


def definition(key: Key, prefix: str = "") -> ConfigInfo:
    """One key as Connect describes it; `prefix` is that of a converter or a client."""
    layout = LAYOUTS.get(key.name) or Layout(None, -1, "NONE", key.name)
    return {
        "name": f"{prefix}{key.name}",
        "type": key.type.value,
        "required": key.default is REQUIRED,
        "default_value": key.shown_default or text_of(key.default),
        "importance": key.importance.value,
        "documentation": key.doc or f"Accepted, without effect: {key.reason}.",
        "group": layout.group,
        "order_in_group": layout.order,
        "width": layout.width,
        "display_name": layout.display_name,
        "dependents": [],
    }


def text_of(value: Any) -> str | None:
    """A typed value as Java prints it."""
    if value is None or value is REQUIRED:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
