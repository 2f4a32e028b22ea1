"""The bytes of MirrorMaker 2's own records, so that it can read ours and we can read its.

Runs on: worker and executor.
Mirrors: org.apache.kafka.connect.mirror.{Heartbeat,Checkpoint,OffsetSync} (4.4), and Connect's
offsets topic as its JsonConverter writes it.

Binary layouts, big-endian, a string being int16 byte length and UTF-8:

    Heartbeat   key    source alias, target alias               strings
                value  version = 0 int16, timestamp ms int64
    Checkpoint  key    group, downstream topic                  strings, partition int32
                value  version = 0 int16, upstream offset int64, downstream offset int64,
                       metadata string
    OffsetSync  key    upstream topic string, partition int32
                value  upstream offset int64, downstream offset int64      (no version)

Bytes after the last field are ignored, as in Java's schema reader.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Self

from sparkmirror.errors import MirrorError
from sparkmirror.foreign_json import parse_json

_VERSION = 0
_MAX_STRING_BYTES = 0x7FFF
_MAX_OFFSET = (1 << 63) - 1


class RecordError(MirrorError):
    """A record of an internal topic that cannot be read, or a value that does not fit into one."""


class UnsupportedRecordError(RecordError):
    """A record written by a newer MirrorMaker.

    Operator action: run the flow with the newer program, not with this one.
    """


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Proof that a flow's target accepted a write at this time."""

    source_alias: str
    target_alias: str
    timestamp_ms: int

    def encode_key(self) -> bytes:
        return _encode_string(self.source_alias) + _encode_string(self.target_alias)

    def encode_value(self) -> bytes:
        return struct.pack(">hq", _VERSION, self.timestamp_ms)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> Self:
        """Raises: RecordError."""
        keys, values = _RecordReader("heartbeat key", key), _RecordReader("heartbeat value", value)
        values.check_version()
        return cls(keys.string(), keys.string(), values.int64())


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A group's position in a partition, in offsets of both clusters; `topic` is the remote one."""

    group: str
    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""

    def encode_key(self) -> bytes:
        partition = struct.pack(">i", self.partition)
        return _encode_string(self.group) + _encode_string(self.topic) + partition

    def encode_value(self) -> bytes:
        offsets = struct.pack(">hqq", _VERSION, self.upstream_offset, self.downstream_offset)
        return offsets + _encode_string(self.metadata)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> Self:
        """Raises: RecordError."""
        keys, values = (
            _RecordReader("checkpoint key", key),
            _RecordReader("checkpoint value", value),
        )
        values.check_version()
        return cls(
            group=keys.string(),
            topic=keys.string(),
            partition=keys.int32(),
            upstream_offset=values.int64(),
            downstream_offset=values.int64(),
            metadata=values.string(),
        )


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """A record's offset on both clusters; `topic` is the upstream name."""

    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int

    def encode_key(self) -> bytes:
        return _encode_string(self.topic) + struct.pack(">i", self.partition)

    def encode_value(self) -> bytes:
        return struct.pack(">qq", self.upstream_offset, self.downstream_offset)

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> Self:
        """Raises: RecordError."""
        keys, values = (
            _RecordReader("offset sync key", key),
            _RecordReader("offset sync value", value),
        )
        return cls(keys.string(), keys.int32(), values.int64(), values.int64())


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """The key of a position in the offsets topic; `topic` is the upstream name."""

    connector: str
    cluster: str
    topic: str
    partition: int


def encode_offset_key(connector: str, cluster: str, topic: str, partition: int) -> bytes:
    """Return the key of a partition's position in the offsets topic.

    Connect looks keys up by their bytes, so the members are in the order of Java's HashMap.
    """
    members = (
        f'"cluster":{jackson_string(cluster)},"partition":{partition},'
        f'"topic":{jackson_string(topic)}'
    )
    return f"[{jackson_string(connector)},{{{members}}}]".encode()


def encode_heartbeat_offset_key(connector: str, source_alias: str, target_alias: str) -> bytes:
    """Return the key under which Connect records that a heartbeat connector has written."""
    members = (
        f'"sourceClusterAlias":{jackson_string(source_alias)},'
        f'"targetClusterAlias":{jackson_string(target_alias)}'
    )
    return f"[{jackson_string(connector)},{{{members}}}]".encode()


def encode_checkpoint_offset_key(connector: str, group: str, topic: str, partition: int) -> bytes:
    """Return the same for a checkpoint of `group`; `topic` is the remote one."""
    members = (
        f'"partition":{partition},"topic":{jackson_string(topic)},"group":{jackson_string(group)}'
    )
    return f"[{jackson_string(connector)},{{{members}}}]".encode()


def decode_offset_key(key: bytes | None) -> OffsetKey | None:
    """Parse a key of the offsets topic, with members in any order.

    Returns None for anything else: connectors of all kinds share the topic.
    """
    try:
        document = parse_json(key) if key is not None else None
    except ValueError:
        return None
    match document:
        case [
            str(connector),
            {"cluster": str(cluster), "partition": partition, "topic": str(topic), **others},
        ] if not others and _is_integer(partition):
            return OffsetKey(connector, cluster, topic, partition)
        case _:
            return None


# In our own positions: nothing copied yet, start at offset 0.
START = -1


def encode_offset_value(last_offset: int) -> bytes:
    """Return the value for a partition copied up to and including `last_offset`."""
    return f'{{"offset":{last_offset}}}'.encode()


def decode_offset_value(value: bytes | None, lowest: int = 0) -> int | None:
    """Return the last copied offset; None for a tombstone or if no offset is stored.

    An offset below `lowest` counts as none; MirrorMaker 2's is 0.

    Raises:
        RecordError: Connect would not write this value; ignoring it would copy everything again.
    """
    if value is None:
        return None
    try:
        document = parse_json(value)
    except ValueError as exc:
        raise _not_a_position(value) from exc
    if document is None:
        return None
    if not isinstance(document, dict):
        raise _not_a_position(value)
    last_offset = _read_last_offset(document.get("offset"), value)
    return None if last_offset is None or last_offset < lowest else last_offset


def _read_last_offset(last_offset: Any, value: bytes) -> int | None:
    if last_offset is None:
        return None
    if not _is_integer(last_offset) or last_offset > _MAX_OFFSET:
        raise _not_a_position(value)
    return int(last_offset)


def _not_a_position(value: bytes) -> RecordError:
    return RecordError(
        f'read a position from the offsets topic: expected {{"offset":<number>}}, found '
        f"{value[:100]!r}; reset the connector's offsets or write the record again"
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# Jackson escapes control characters (with upper-case hex digits), quotes and backslashes; neither
# the slash nor other characters of the basic multilingual plane.
_ESCAPES = {code: f"\\u{code:04X}" for code in range(0x20)} | str.maketrans(
    {
        "\b": "\\b",
        "\t": "\\t",
        "\n": "\\n",
        "\f": "\\f",
        "\r": "\\r",
        '"': '\\"',
        "\\": "\\\\",
    }
)


def jackson_string(text: str) -> str:
    """Return the text as quoted by Java's JSON writer."""
    return f'"{"".join(map(_escape_supplementary, text.translate(_ESCAPES)))}"'


def _escape_supplementary(char: str) -> str:
    """Escape a character that is two chars in Java as two surrogates, as in Jackson."""
    if char <= "\uffff":
        return char
    high, low = struct.unpack(">HH", char.encode("utf-16-be"))
    return f"\\u{high:04X}\\u{low:04X}"


def _encode_string(text: str) -> bytes:
    data = text.encode()
    if len(data) > _MAX_STRING_BYTES:
        raise RecordError(
            f"write {text[:40]!r}... into an internal record: it has {len(data)} bytes, "
            f"{_MAX_STRING_BYTES} are allowed"
        )
    return struct.pack(">h", len(data)) + data


class _RecordReader:
    """Reads one field after the other; its errors name the record."""

    def __init__(self, what: str, data: bytes) -> None:
        self._what = what
        self._data = data
        self._at = 0

    def check_version(self) -> None:
        version = self._integer(2)
        if version != _VERSION:
            raise UnsupportedRecordError(
                f"read {self._what}: version {version} is not supported, only {_VERSION}"
            )

    def int32(self) -> int:
        return self._integer(4)

    def int64(self) -> int:
        return self._integer(8)

    def string(self) -> str:
        data = self._take(self._integer(2))
        try:
            return data.decode()
        except UnicodeDecodeError as exc:
            raise self._error(f"{data[:40]!r} is not UTF-8") from exc

    def _integer(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big", signed=True)

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise self._error(f"{size} bytes wanted at {self._at} of {len(self._data)}")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _error(self, why: str) -> RecordError:
        return RecordError(f"read {self._what} {self._data[:100].hex()}: {why}")
