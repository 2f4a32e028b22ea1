"""Which offsets a user may write for a connector (KIP-875), with Connect's texts for the others.

Runs on: worker. Pure. Mirrors: alterOffsets of org.apache.kafka.connect.mirror.
{MirrorSourceConnector,MirrorCheckpointConnector,MirrorHeartbeatConnector}, MirrorUtils.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sparkmirror.connect.entities import Json, OffsetRow, RequestError

OFFSET, PARTITION = "offset", "partition"
# The string keys of each connector's source partitions; with True there is a number as well.
PARTITION_KEYS: dict[str, tuple[tuple[str, ...], bool]] = {
    "source": (("cluster", "topic"), True),
    "checkpoint": (("group", "topic"), True),
    "heartbeat": (("sourceClusterAlias", "targetClusterAlias"), False),
}
LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1


def check_offsets(kind: str, rows: Iterable[OffsetRow]) -> None:
    """Raise RequestError for the first row that a `kind` connector could not have written itself.

    An offset may always be deleted, so that any row can be cleaned up.
    """
    for partition, offset in rows:
        if offset is not None:
            _check_partition(kind, partition)
            _check_offset(partition, offset, only_zero=kind != "source")


def _check_partition(kind: str, partition: Json | None) -> None:
    if partition is None:
        raise _refused("Source partitions may not be null")
    names, is_numbered = PARTITION_KEYS[kind]
    about = f"Source partition {java_text(partition)}"
    for name in names:
        if not isinstance(_get(partition, name, about), str):
            raise _invalid(about, partition[name], name, ", which must be a string")
    if is_numbered:
        number = _get(partition, PARTITION, about)
        _check_number(number, LARGEST_INT, about, PARTITION)


def _check_offset(partition: Json, offset: Json, *, only_zero: bool) -> None:
    about = f"Source offset {java_text(offset)} for source partition {java_text(partition)}"
    value = _get(offset, OFFSET, about)
    if only_zero and _is_integer(value, LARGEST_LONG) and value != 0:
        raise _invalid(about, value, OFFSET, "; the only accepted value is 0")
    _check_number(value, LARGEST_LONG, about, OFFSET)


def _check_number(value: object, largest: int, about: str, key: str) -> None:
    if not isinstance(value, int) or not _is_integer(value, largest):
        raise _invalid(about, value, key, ", which must be an integer")
    if value < 0:
        raise _invalid(about, value, key, ", which cannot be negative")


def _is_integer(value: object, largest: int) -> bool:
    """As in Java: true is not a number, and a number that is too large is not an integer."""
    return isinstance(value, int) and not isinstance(value, bool) and value <= largest


def _get(values: Json, key: str, about: str) -> Any:
    if key not in values:
        raise _refused(f"{about} is missing the '{key}' key, which is required")
    return values[key]


def _invalid(about: str, value: object, key: str, rule: str) -> RequestError:
    return _refused(f"{about} has an invalid value {java_text(value)} for the '{key}' key{rule}")


def _refused(text: str) -> RequestError:
    return RequestError(500, text)


def java_text(value: object) -> str:
    """How Java prints a value parsed from JSON: {cluster=a, partition=0}."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}={java_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(java_text(each) for each in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
