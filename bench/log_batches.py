"""Reads which record batches a broker stores, from the headers in its log segments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.errors import MirrorError

_HEADER_BYTES = 61
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class BatchShape:
    """The batches of a topic, on average."""

    batches: int
    records: int
    stored_bytes: int
    codecs: tuple[str, ...]

    @property
    def records_per_batch(self) -> float:
        return self.records / self.batches

    @property
    def bytes_per_batch(self) -> float:
        return self.stored_bytes / self.batches


def read_shape(data_folder: Path, topic: str) -> BatchShape:
    """Walk every segment of `topic` in a broker's data folder."""
    segments = sorted(data_folder.glob(f"{topic}-[0-9]*/*.log"))
    found = [batch for segment in segments for batch in _read_headers(segment)]
    if not found:
        raise MirrorError(f"read the batches of {topic}: none in {data_folder}")
    return BatchShape(
        batches=len(found),
        records=sum(count for count, _, _ in found),
        stored_bytes=sum(size for _, size, _ in found),
        codecs=tuple(sorted({_CODECS[codec] for _, _, codec in found})),
    )


def _read_headers(segment: Path) -> Iterator[tuple[int, int, int]]:
    """Record count, stored bytes and codec of each batch.

    8: length of what follows byte 12; 21: attributes, codec in the lowest three bits; 57: count.
    """
    with segment.open("rb") as file:
        while len(header := file.read(_HEADER_BYTES)) == _HEADER_BYTES:
            (length,) = struct.unpack_from(">i", header, 8)
            (attributes,) = struct.unpack_from(">h", header, 21)
            (count,) = struct.unpack_from(">i", header, 57)
            yield count, 12 + length, attributes & 7
            file.seek(12 + length - _HEADER_BYTES, 1)
