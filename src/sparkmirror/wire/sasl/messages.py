"""SaslHandshake and SaslAuthenticate: the two requests that carry a login."""

from __future__ import annotations

import struct
from typing import NamedTuple

from sparkmirror.wire.protocol.messages import encode_string, parsing

# The first version of SaslAuthenticate with the lifetime of the session (KIP-368).
WITH_LIFETIME = 1

UNSUPPORTED_SASL_MECHANISM = 33
ILLEGAL_SASL_STATE = 34
SASL_AUTHENTICATION_FAILED = 58


class Handshake(NamedTuple):
    """The broker's response to the mechanism we named."""

    code: int
    mechanisms: tuple[str, ...]


class SaslStep(NamedTuple):
    """The broker's response to one message of the mechanism; lifetime 0 means for ever."""

    code: int
    text: str | None
    challenge: bytes
    lifetime_ms: int


def encode_handshake(mechanism: str) -> bytes:
    """Ask for `mechanism`."""
    return encode_string(mechanism)


def decode_handshake(response: memoryview) -> Handshake:
    """The error code, and the mechanisms that the broker offers."""
    with parsing("SASL handshake"):
        code, count = struct.unpack_from(">hi", response)
        at, names = 6, []
        for _ in range(count):
            name, at = _string(response, at)
            names.append(name or "")
    return Handshake(code, tuple(names))


def encode_authenticate(message: bytes) -> bytes:
    """One message of the mechanism."""
    return struct.pack(">i", len(message)) + message


def decode_authenticate(response: memoryview, version: int) -> SaslStep:
    """The broker's next message."""
    with parsing("SASL response"):
        (code,) = struct.unpack_from(">h", response)
        text, at = _string(response, 2)
        (size,) = struct.unpack_from(">i", response, at)
        end = at + 4 + max(size, 0)
        lifetime = 0
        if version >= WITH_LIFETIME:
            (lifetime,) = struct.unpack_from(">q", response, end)
        elif end > len(response):
            raise ValueError(f"{size} bytes wanted at {at} of {len(response)}")
    return SaslStep(code, text, bytes(response[at + 4 : end]), max(lifetime, 0))


def _string(response: memoryview, at: int) -> tuple[str | None, int]:
    (size,) = struct.unpack_from(">h", response, at)
    if size < 0:
        return None, at + 2
    return str(response[at + 2 : at + 2 + size], "utf-8"), at + 2 + size
