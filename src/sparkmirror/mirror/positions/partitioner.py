"""The partition that a Java producer picks for a key.

Runs on: worker.
Mirrors: org.apache.kafka.common.utils.Utils.murmur2 and the default partitioner for keyed records.

Connect's offsets topic is compacted per partition, so a key must always go to the same partition as
in Java.
"""

from __future__ import annotations

import struct

_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_UINT32 = 0xFFFFFFFF


def partition_for_key(key: bytes, partitions: int) -> int:
    """Return the partition, of `partitions`, that Java's default partitioner gives `key`."""
    # Java masks the sign bit away instead of taking the absolute value.
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash of `data` as a signed Java int."""
    whole = len(data) & ~3
    digest = (_SEED ^ len(data)) & _UINT32
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        digest = (digest * _M & _UINT32) ^ _mix_word(word)
    tail = data[whole:]
    if tail:
        digest = (digest ^ int.from_bytes(tail, "little")) * _M & _UINT32
    return _signed(_finish(digest))


def _mix_word(word: int) -> int:
    word = word * _M & _UINT32
    return (word ^ (word >> _R)) * _M & _UINT32


def _finish(digest: int) -> int:
    digest = (digest ^ (digest >> 13)) * _M & _UINT32
    return digest ^ (digest >> 15)


def _signed(value: int) -> int:
    return value - (1 << 32) if value & 0x80000000 else value
