"""Connect's offsets topic for the REST API (KIP-875): each connector's offsets, by partition.

Runs on: worker, blocking, on the caller's thread. Shows the offsets, and changes them while the
connector is stopped. For copying, `KafkaOffsetBackingStore` reads positions and the copy tasks
write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparkmirror.config.clients import ClientConfig, ProducerConfig
from sparkmirror.connect.entities import Json
from sparkmirror.connect.storage.kafka_based_log import now_ms
from sparkmirror.connect.storage.log_reader import read_topic
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.errors import DeniedError, KafkaError, TransportError
from sparkmirror.foreign_json import parse_json
from sparkmirror.mirror.permissions import NO_ALTERING, NO_LIST
from sparkmirror.mirror.positions.partitioner import partition_for_key
from sparkmirror.mirror.records import jackson_string

READ_SECONDS = 60.0
WRITE_SECONDS = 30.0
# Java's HashMap: the size of its first table, and its load factor.
TABLE_SIZE = 16
LOAD = 0.75


class ConnectorOffsets:
    """The offsets topic, which exists; `partitions` is the number of its partitions."""

    def __init__(self, client: ClientConfig, topic: str, partitions: int) -> None:
        self.topic = topic
        self._client = client
        self._partitions = partitions

    def list(self, connector: str) -> list[tuple[Json, Json]]:
        """All (partition, offset) that the connector has stored.

        Raises:
            KafkaError: the topic cannot be read.
        """
        return merge_rows(self.rows(connector))

    def rows(self, connector: str) -> Sequence[tuple[Json, Json | None]]:
        """All stored and deleted (None) offsets, in the order of writing. Raises KafkaError."""
        return [(partition, offset) for _, partition, offset in self._rows(connector)]

    def write(self, connector: str, rows: Sequence[tuple[Json, Json | None]]) -> None:
        """Store an offset for each partition, or delete it (None).

        Connect looks keys up by their bytes, so a key that is in the topic is written with the same
        bytes.

        Raises:
            KafkaError: some or all offsets were not written.
        """
        known: dict[str, dict[bytes, None]] = {}
        for key, partition, _ in self._rows(connector):
            known.setdefault(_canonical(partition), {})[key] = None
        # The last row for a partition wins.
        wanted: dict[bytes, bytes | None] = {}
        for partition, offset in rows:
            made = encode_connector_key(connector, partition)
            value = None if offset is None else encode_json(offset).encode()
            wanted |= dict.fromkeys(known.get(_canonical(partition), [made]), value)
        self._send(wanted)

    def _rows(self, connector: str) -> Iterable[tuple[bytes, Json, Json | None]]:
        try:
            records = read_topic(self._client, self.topic, self._partitions, READ_SECONDS)
        except DeniedError as error:
            raise error.with_consequence(NO_LIST) from error
        for record in records:
            match _parse(record.key):
                case [str(name), dict(partition)] if name == connector and record.key is not None:
                    offset = _parse(record.value)
                    yield record.key, partition, offset if isinstance(offset, dict) else None

    def _send(self, wanted: Mapping[bytes, bytes | None]) -> None:
        errors: list[KafkaError | None] = []
        by_partition: dict[int, list[tuple[bytes | None, bytes | None, int]]] = {}
        for key, value in wanted.items():
            rows = by_partition.setdefault(partition_for_key(key, self._partitions), [])
            rows.append((key, value, now_ms()))
        without = {self.topic: NO_ALTERING}
        writer = RecordProducer(ProducerConfig(self._client), f"'{self.topic}'", without)
        writer.start()
        try:
            for partition, rows in by_partition.items():
                writer.send(self.topic, partition, rows, errors.append)
            written = writer.flush(WRITE_SECONDS)
        finally:
            writer.close()
        failures = [error for error in errors if error is not None]
        if not written or failures:
            why = writer.last_error or (failures[0] if failures else "no answer")
            raise TransportError(f"write offsets to '{self.topic}': {why}")


def merge_rows(rows: Iterable[tuple[Json, Json | None]]) -> list[tuple[Json, Json]]:
    """The current offsets: the last row for a partition wins."""
    found: dict[str, tuple[Json, Json]] = {}
    for partition, offset in rows:
        if offset is None:
            found.pop(_canonical(partition), None)
        else:
            found[_canonical(partition)] = (partition, offset)
    return [*found.values()]


def encode_connector_key(connector: str, partition: Mapping[str, Any]) -> bytes:
    """Return the key of a source partition, with the bytes that Connect would write."""
    return f"[{jackson_string(connector)},{encode_json(partition)}]".encode()


def encode_json(value: Any) -> str:
    """Return JSON as Connect writes what it has read: maps in the order of a HashMap."""
    if isinstance(value, str):
        return jackson_string(value)
    if isinstance(value, Mapping):
        members = [f"{jackson_string(k)}:{encode_json(value[k])}" for k in java_order(value)]
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(encode_json, value))}]"
    return json.dumps(value)


def java_order(keys: Iterable[str]) -> list[str]:
    """Return the keys in the iteration order of a java.util.HashMap that grew with them."""
    names = list(keys)
    size = TABLE_SIZE
    while len(names) > size * LOAD:
        size *= 2
    return sorted(names, key=lambda name: _spread_hash(name) % size)


def _spread_hash(text: str) -> int:
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return code ^ (code >> 16)


def _canonical(partition: Mapping[str, Any]) -> str:
    return json.dumps(partition, sort_keys=True)


def _parse(data: bytes | None) -> Any:
    """The parsed JSON; None if it is not JSON: connectors of all kinds share the topic."""
    try:
        return None if data is None else parse_json(data)
    except ValueError:
        return None
