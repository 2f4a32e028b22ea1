"""Kafka's compression codecs in the framings that Java clients and brokers read and write.

gzip    plain gzip
snappy  xerial: 16 bytes of header, then blocks of (4 bytes length, raw snappy) per 32 KiB;
        some clients send one raw snappy block without framing, which is read too
lz4     an LZ4 frame with independent blocks (Java refuses linked ones); in message sets of magic 0
        and 1 the frame's header checksum may be wrong (KAFKA-3160), so checksums are not looked at:
        the batch's CRC covers the bytes
zstd    a plain zstd frame, usually without the content size

Decompression stops at a limit, so that a few kilobytes cannot fill the memory.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable
from struct import Struct

import cramjam
import lz4.block
import lz4.frame
import zstandard

from sparkmirror.errors import BatchError

Data = bytes | bytearray | memoryview

# Far above what any broker is set to take as one batch after decompression, far below a heap.
DEFAULT_LIMIT_BYTES = 256 << 20


class TooLarge(BatchError):
    """The data decompresses to more than the caller can use."""


class Codec(enum.IntEnum):
    """A compression codec, with the number it has in batch attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def parse(cls, name: str) -> Codec:
        """Find a codec by the name that `compression.type` uses."""
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(codec.name.lower() for codec in cls)
            raise BatchError(f"find codec {name!r}: unknown; known are {known}") from None

    @classmethod
    def of(cls, codec_id: int) -> Codec:
        """Find a codec by its number."""
        if not 0 <= codec_id < len(_CODECS):
            raise BatchError(f"find codec {codec_id}: unknown; known are 0 to 4")
        return _CODECS[codec_id]

    def compress(self, data: Data, level: int | None = None) -> Data:
        """Compress; NONE returns its input."""
        return data if self is Codec.NONE else _COMPRESS[self](data, level)

    def decompress(self, data: Data, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Data:
        """Decompress at most `limit_bytes`, else TooLarge; NONE returns its input."""
        return data if self is Codec.NONE else _DECOMPRESS[self](data, limit_bytes)


_CODECS = tuple(Codec)


def _too_large(codec: str, limit_bytes: int) -> TooLarge:
    return TooLarge(f"decompress {codec}: more than the allowed {limit_bytes} bytes come out")


# gzip ---------------------------------------------------------------------------------------------

_GZIP_WINDOW = 31  # 15 bits of window, plus 16: gzip header and trailer
_GZIP_LEVEL = 6
_GZIP_FIRST_STEP_BYTES = 512


def _gzip_compress(data: Data, level: int | None) -> Data:
    return zlib.compress(data, _GZIP_LEVEL if level is None else level, _GZIP_WINDOW)


def _gzip_decompress(data: Data, limit_bytes: int) -> Data:
    view = memoryview(data)
    parts: list[bytes] = []
    left = limit_bytes
    step = len(view)
    while view:
        found, used = _gzip_member(view, left + 1, step)
        left -= sum(map(len, found))
        if left < 0:
            raise _too_large("gzip", limit_bytes)
        parts += found
        view = view[used:]
        step = _GZIP_FIRST_STEP_BYTES
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _gzip_member(view: memoryview, room: int, step: int) -> tuple[list[bytes], int]:
    """The content of the first member, and how many bytes that member takes.

    zlib copies all input that follows a member. There is nearly always only one; if there are more,
    zlib gets little input at first, or thousands of empty members would copy the rest each time.
    """
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    parts = []
    at = 0
    try:
        while at < len(view) and room and not inflater.eof:
            part = inflater.decompress(view[at : at + step], room)
            at, step, room = at + step, step * 2, room - len(part)
            parts.append(part)
    except zlib.error as error:
        raise BatchError(f"decompress gzip: {error}") from error
    if room and not inflater.eof:
        raise BatchError("decompress gzip: the data ends in the middle")
    return parts, min(at, len(view)) - len(inflater.unused_data)


# snappy -------------------------------------------------------------------------------------------

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version 1, readable by 1
_XERIAL_BLOCK_BYTES = 32 << 10  # SnappyOutputStream's default
_BLOCK_LENGTH = Struct(">i")


def _snappy_compress(data: Data, level: int | None) -> Data:
    out = [_XERIAL_HEADER]
    with memoryview(data) as view:
        for at in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK_BYTES]))
            out += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(out)


def _snappy_decompress(data: Data, limit_bytes: int) -> Data:
    view = memoryview(data)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _snappy_block(view, limit_bytes, limit_bytes)
    at = len(_XERIAL_HEADER)
    left = limit_bytes
    parts = []
    while at < len(view):
        if at + 4 > len(view):
            raise BatchError("decompress snappy: the data ends inside a block length")
        (length,) = _BLOCK_LENGTH.unpack_from(view, at)
        at += 4
        if length < 0 or at + length > len(view):
            raise BatchError(f"decompress snappy: a block claims {length} bytes")
        parts.append(_snappy_block(view[at : at + length], left, limit_bytes))
        left -= len(parts[-1])
        at += length
    return b"".join(parts)


def _snappy_block(block: memoryview, left: int, limit_bytes: int) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(block) > left:
            raise _too_large("snappy", limit_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise BatchError(f"decompress snappy: {error}") from error


# lz4 ----------------------------------------------------------------------------------------------

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT = 0x20
_LZ4_BLOCK_CHECKSUM = 0x10
_LZ4_CONTENT_SIZE = 0x08
_LZ4_DICTIONARY = 0x01
_LZ4_STORED = 0x80000000
_LZ4_LENGTH = Struct("<I")
# Kafka's default level stands for the fast compressor, every other one for the thorough one, which
# the library has from 3 to 16 (KIP-390, org.apache.kafka.common.compress.Lz4BlockOutputStream).
_LZ4_FAST_LEVEL = 9
_LZ4_THOROUGH_LEVELS = 3, 16


def _lz4_compress(data: Data, level: int | None) -> Data:
    is_fast = level is None or level == _LZ4_FAST_LEVEL
    low, high = _LZ4_THOROUGH_LEVELS
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if is_fast else min(max(level or low, low), high),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _lz4_decompress(data: Data, limit_bytes: int) -> Data:
    view = memoryview(data)
    if len(view) < 7 or view[:4] != _LZ4_MAGIC:
        raise BatchError("decompress lz4: no LZ4 frame")
    if not view[4] & _LZ4_INDEPENDENT:
        return _lz4_linked(view, limit_bytes)
    return _lz4_blocks(view, limit_bytes)


def _lz4_blocks(view: memoryview, limit_bytes: int) -> Data:
    flags, code = view[4], view[5] >> 4 & 7
    if not 4 <= code <= 7 or flags & _LZ4_DICTIONARY:
        raise BatchError(f"decompress lz4: unusable frame descriptor {flags:#x} {view[5]:#x}")
    largest = 1 << (8 + 2 * code)  # 64 KiB, 256 KiB, 1 MiB, 4 MiB
    at = 15 if flags & _LZ4_CONTENT_SIZE else 7
    trailer = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
    parts: list[bytes] = []
    total = 0
    while True:
        if at + 4 > len(view):
            raise BatchError("decompress lz4: the frame ends without an end mark")
        (length,) = _LZ4_LENGTH.unpack_from(view, at)
        at += 4
        if not length:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        size = length & ~_LZ4_STORED
        if at + size > len(view):
            raise BatchError(f"decompress lz4: a block claims {size} bytes")
        block = view[at : at + size]
        parts.append(bytes(block) if length & _LZ4_STORED else _lz4_block(block, largest))
        total += len(parts[-1])
        if total > limit_bytes:
            raise _too_large("lz4", limit_bytes)
        at += size + trailer


def _lz4_block(block: memoryview, largest: int) -> bytes:
    try:
        part: bytes = lz4.block.decompress(block, uncompressed_size=largest)
    except lz4.block.LZ4BlockError as error:
        raise BatchError(f"decompress lz4: {error}") from error
    return part


def _lz4_linked(view: memoryview, limit_bytes: int) -> Data:
    frame = lz4.frame.LZ4FrameDecompressor()
    try:
        data: bytes = frame.decompress(view, max_length=limit_bytes + 1)
    except RuntimeError as error:
        raise BatchError(f"decompress lz4: {error}") from error
    if len(data) > limit_bytes:
        raise _too_large("lz4", limit_bytes)
    if not frame.eof:
        raise BatchError("decompress lz4: the data ends in the middle")
    return data


# zstd ---------------------------------------------------------------------------------------------

_ZSTD_LEVEL = 3
_ZSTD_FIRST_READ_BYTES = 1 << 20
_ZSTD_LONGEST_HEADER_BYTES = 18
_ZSTD_CHECKSUM = 4
_ZSTD_REPEATED = 1  # a block of one byte, and how often it comes


def _zstd_compress(data: Data, level: int | None) -> Data:
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL if level is None else level).compress(data)


def _zstd_decompress(data: Data, limit_bytes: int) -> Data:
    inflater = zstandard.ZstdDecompressor()
    parts = []
    left = limit_bytes + 1
    step = _ZSTD_FIRST_READ_BYTES
    try:
        _check_zstd_frames(memoryview(data))
        with inflater.stream_reader(data, read_across_frames=True) as reader:
            while left and (part := reader.read(min(step, left))):
                parts.append(part)
                left -= len(part)
                step *= 2
    except zstandard.ZstdError as error:
        raise BatchError(f"decompress zstd: {error}") from error
    if not left:
        raise _too_large("zstd", limit_bytes)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_zstd_frames(view: memoryview) -> None:
    """Follow the blocks to the end: the library's reader accepts truncated data as complete."""
    at = 0
    while at < len(view):
        at = _after_zstd_frame(view, at)
    if at > len(view):
        raise BatchError("decompress zstd: the data ends in the middle")


def _after_zstd_frame(view: memoryview, at: int) -> int:
    header = view[at : at + _ZSTD_LONGEST_HEADER_BYTES]
    at += zstandard.frame_header_size(header)
    is_last = False
    while not is_last and at < len(view):
        block = int.from_bytes(view[at : at + 3], "little")
        is_last = bool(block & 1)
        at += 3 + (1 if block >> 1 & 3 == _ZSTD_REPEATED else block >> 3)
    if not is_last:
        raise BatchError("decompress zstd: the data ends in the middle")
    return at + (4 if header[4] & _ZSTD_CHECKSUM else 0)


_COMPRESS: dict[Codec, Callable[[Data, int | None], Data]] = {
    Codec.GZIP: _gzip_compress,
    Codec.SNAPPY: _snappy_compress,
    Codec.LZ4: _lz4_compress,
    Codec.ZSTD: _zstd_compress,
}

_DECOMPRESS: dict[Codec, Callable[[Data, int], Data]] = {
    Codec.GZIP: _gzip_decompress,
    Codec.SNAPPY: _snappy_decompress,
    Codec.LZ4: _lz4_decompress,
    Codec.ZSTD: _zstd_decompress,
}
