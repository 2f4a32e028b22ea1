"""The settings of Kafka's converters: connectors may have them, but records stay unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.config_def import Definition, Importance, Key, KeySupport, Type
from sparkmirror.config.keys.families import NO_CONVERSION
from sparkmirror.config.keys.plugins import CONNECT, HEADER_CONVERTERS

CONVERTER_TYPE = Key(
    name="converter.type",
    type=Type.STRING,
    doc="Whether it converts keys, values or headers.",
)


def _unused(name: str, type_: Type, default: object, importance: Importance) -> Key:
    return Key(
        name=name,
        type=type_,
        default=default,
        importance=importance,
        doc="",
        status=KeySupport.EXPLAINED,
        reason=NO_CONVERSION,
    )


_OF_ALL = Definition(CONVERTER_TYPE)
CONVERTER_DEFINITIONS: Mapping[str, Definition] = dict.fromkeys(HEADER_CONVERTERS, _OF_ALL) | {
    f"{CONNECT}json.JsonConverter": _OF_ALL
    + Definition(
        _unused("schemas.enable", Type.BOOLEAN, True, Importance.HIGH),
        _unused("schemas.cache.size", Type.INT, 1000, Importance.HIGH),
        _unused("schema.content", Type.STRING, None, Importance.HIGH),
        _unused("decimal.format", Type.STRING, "BASE64", Importance.LOW),
        _unused("replace.null.with.default", Type.BOOLEAN, True, Importance.LOW),
    ),
    f"{CONNECT}storage.StringConverter": _OF_ALL
    + Definition(_unused("converter.encoding", Type.STRING, "UTF-8", Importance.HIGH)),
    f"{CONNECT}storage.SimpleHeaderConverter": Definition(),
}
