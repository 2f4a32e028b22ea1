"""What a broker has on its disk: the headers of the batches of a partition."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sparkmirror.embedded import KafkaCluster

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_HEADER_BYTES = 61


class StoredBatch(NamedTuple):
    """One batch: its whole size, codec, producer and number of records."""

    size: int
    codec: str
    producer_id: int
    records: int


def stored_batches(cluster: KafkaCluster, topic: str, partition: int = 0) -> list[StoredBatch]:
    """All batches of a partition, from the first broker's segment files."""
    folder = cluster.brokers[0].folder / "data" / f"{topic}-{partition}"
    segments = sorted(folder.glob("*.log"))
    return [batch for segment in segments for batch in _read(segment)]


@contextmanager
def damaged(cluster: KafkaCluster, topic: str, number: int) -> Iterator[None]:
    """Change bytes of the records of one batch in the only segment of partition 0, for a while."""
    (segment,) = (cluster.brokers[0].folder / "data" / f"{topic}-0").glob("*.log")
    sizes = [batch.size for batch in _read(segment)]
    at = sum(sizes[:number]) + _HEADER_BYTES
    with segment.open("r+b") as file:
        file.seek(at)
        old = file.read(4)
        file.seek(at)
        file.write(bytes(byte ^ 0xFF for byte in old))
    yield
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(old)


def _read(segment: Path) -> Iterator[StoredBatch]:
    # 8: length of what follows byte 12; 21: attributes, codec in the lowest three bits;
    # 43: producer id; 57: number of records.
    data = segment.read_bytes()
    at = 0
    while at + _HEADER_BYTES <= len(data):
        (length,) = struct.unpack_from(">i", data, at + 8)
        if length == 0:
            return
        (attributes,) = struct.unpack_from(">h", data, at + 21)
        (producer_id,) = struct.unpack_from(">q", data, at + 43)
        (records,) = struct.unpack_from(">i", data, at + 57)
        yield StoredBatch(12 + length, CODECS[attributes & 7], producer_id, records)
        at += 12 + length
