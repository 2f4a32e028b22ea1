"""The 61 bytes in front of every magic-2 record batch (KIP-98): each field, and how to read it.

    #  at  size  field                                   at  size  field
    #   0     8  base offset (outside the CRC)           27     8  base timestamp
    #   8     4  length of what follows                  35     8  max timestamp
    #  12     4  partition leader epoch (outside CRC)    43     8  producer id
    #  16     1  magic = 2                               51     2  producer epoch
    #  17     4  CRC-32C of everything after it          53     4  base sequence
    #  21     2  attributes                              57     4  record count
    #  23     4  last offset delta                       61        records, possibly compressed

    attributes   bit 0-2 codec   3 LogAppendTime   4 transactional   5 control   6 delete horizon

The cleaner sets the delete-horizon bit (KIP-534): then the base timestamp holds the time at which
tombstones may go. Record timestamps are deltas to it all the same, so the bit can be cleared alone.
The first 17 bytes up to and including the magic byte mean the same in magic 0 and 1.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from crc32c import crc32c

from sparkmirror.errors import BatchError

Buffer = bytes | bytearray | memoryview

PREFIX_BYTES = 12  # base offset and length: not counted by the length field
HEADER_BYTES = 61
MIN_LENGTH = HEADER_BYTES - PREFIX_BYTES

MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
LAST_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
PRODUCER_AT = 43
COUNT_AT = 57

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

# The largest that any record can have: there must be one after it.
LARGEST_OFFSET = (1 << 63) - 2
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1

# Everything a reader decides by; leader epoch, producer epoch and sequence are skipped.
READ_HEADER = Struct(">qi4xBIhiqqq6xi")
WRITE_HEADER = Struct(">qiiBIhiqqqhii")
OFFSET_LENGTH_EPOCH = Struct(">qii")
LENGTH = Struct(">i")
LEADER_EPOCH = Struct(">i")
CRC = Struct(">I")
ATTRIBUTES = Struct(">h")
PRODUCER = Struct(">qhi")


class Header(NamedTuple):
    """The fields of one batch header that reading needs, in the order of READ_HEADER."""

    base_offset: int
    length: int
    magic: int
    crc: int
    attributes: int
    last_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_delta

    @property
    def offsets(self) -> range:
        """All offsets it covers, even where compaction has removed the records."""
        return range(self.base_offset, self.base_offset + self.last_delta + 1)

    @property
    def codec_id(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def has_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_contiguous(self) -> bool:
        return self.record_count == self.last_delta + 1


def read_header(view: Buffer, at: int = 0) -> Header:
    """Read the batch header at `at`; the magic byte decides whether it has a meaning."""
    if len(view) < at + HEADER_BYTES:
        raise BatchError(f"read batch header: {len(view) - at} bytes left, {HEADER_BYTES} needed")
    return Header._make(READ_HEADER.unpack_from(view, at))


def read_leader_epoch(view: Buffer, at: int) -> int:
    """The epoch of the leader that stored the whole batch at `at`; -1: unknown (KIP-101)."""
    if view[at + MAGIC_AT] < 2:
        return -1
    epoch: int = LEADER_EPOCH.unpack_from(view, at + PREFIX_BYTES)[0]
    return epoch


def check_header(header: Header) -> None:
    """Reject field values that no broker writes."""
    problem = _problem(header)
    if problem:
        raise BatchError(f"read batch at offset {header.base_offset}: {problem}")


def _problem(header: Header) -> str:
    if header.magic != 2:
        return f"unknown magic {header.magic}"
    if header.length < MIN_LENGTH:
        return f"length {header.length} is shorter than a batch header"
    if header.base_offset < 0 or header.last_delta < 0:
        return f"negative offset, last offset delta {header.last_delta}"
    if header.last_offset > LARGEST_OFFSET:
        return f"a last offset delta of {header.last_delta} leads too far"
    if not 0 <= header.record_count <= header.last_delta + 1:
        return (
            f"{header.record_count} records cannot have a last offset delta of {header.last_delta}"
        )
    return ""


def check_crc(batch: memoryview, header: Header) -> None:
    """Reject a batch whose CRC does not fit its bytes."""
    found = crc32c(batch[ATTRIBUTES_AT:])
    if found != header.crc:
        raise BatchError(
            f"read batch at offset {header.base_offset}: CRC is {found:#010x}, "
            f"header says {header.crc:#010x}; the bytes were damaged on disk or on the way"
        )


def write_header(
    batch: bytearray | memoryview,
    *,
    codec_id: int,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
) -> None:
    """Write the header of a batch of ours: no producer, contiguous offsets from 0, CRC 0."""
    try:
        WRITE_HEADER.pack_into(
            batch, 0, 0, len(batch) - PREFIX_BYTES, -1, 2, 0, codec_id, count - 1,
            base_timestamp, max_timestamp, NO_PRODUCER_ID, -1, -1, count,
        )  # fmt: skip
    except StructError as error:
        raise BatchError(
            f"write batch header: {len(batch)} bytes with timestamps {base_timestamp} to "
            f"{max_timestamp}: {error}"
        ) from error


def write_crc(batch: bytearray | memoryview) -> None:
    """Make the CRC fit the bytes."""
    with memoryview(batch) as view:
        CRC.pack_into(view, CRC_AT, crc32c(view[ATTRIBUTES_AT:]))
