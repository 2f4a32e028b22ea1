"""RC2 in CBC mode, to read the certificates of PKCS12 stores that Java 8 or old OpenSSL wrote.

Nothing is encrypted with it: it no longer protects anything, but such files are in use, and
OpenSSL 3 no longer has it. Mirrors: RFC 2268. Pure.
"""

from __future__ import annotations

import struct

_BLOCK = 8
_PI = bytes.fromhex(
    "d978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2"
    "179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82"
    "54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626"
    "6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7"
    "08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec"
    "c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731"
    "2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9"
    "0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad"
)
_SHIFTS = (1, 2, 3, 5)


def decrypt_cbc(key: bytes, start: bytes, data: bytes) -> bytes:
    """`data`, whose length is a multiple of 8, with its padding."""
    words = _expand(key)
    plain = bytearray()
    for at in range(0, len(data), _BLOCK):
        block = data[at : at + _BLOCK]
        mixed = _decrypt_block(words, block)
        plain += bytes(a ^ b for a, b in zip(mixed, start, strict=True))
        start = block
    return bytes(plain)


def _expand(key: bytes) -> tuple[int, ...]:
    """The 64 words of a key all of whose bits count."""
    table = bytearray(key)
    size = len(key)
    for at in range(size, 128):
        table.append(_PI[(table[at - 1] + table[at - size]) & 0xFF])
    table[128 - size] = _PI[table[128 - size]]
    for at in range(127 - size, -1, -1):
        table[at] = _PI[table[at + 1] ^ table[at + size]]
    return struct.unpack("<64H", table)


def _decrypt_block(words: tuple[int, ...], block: bytes) -> bytes:
    r = list(struct.unpack("<4H", block))
    at = 63
    for rounds in (5, 6, 5):
        for _ in range(rounds):
            for i in (3, 2, 1, 0):
                shift = _SHIFTS[i]
                r[i] = (r[i] >> shift | r[i] << 16 - shift) & 0xFFFF
                before = words[at] + (r[i - 1] & r[i - 2]) + (~r[i - 1] & r[i - 3])
                r[i] = (r[i] - before) & 0xFFFF
                at -= 1
        if at > 0:
            for i in (3, 2, 1, 0):
                r[i] = (r[i] - words[r[i - 1] & 63]) & 0xFFFF
    return struct.pack("<4H", *r)
