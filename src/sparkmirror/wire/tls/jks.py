"""Java's own key store format, which keytool wrote until Java 8 and still writes on demand.

    magic u4 = FEEDFEED | version u4 (1, 2) | number of entries u4 | entries | digest 20 bytes
    key         tag u4 = 1 | alias | created u8 | protected key: size u4, bytes | certificates u4,
                each as below
    trusted     tag u4 = 2 | alias | created u8 | certificate
    certificate [version 2: type, such as X.509] | size u4 | DER
    alias, type size u2 | text
    digest      SHA-1 of password (UTF-16, big endian) | "Mighty Aphrodite" | all before the digest

Runs on: executor and worker.  Mirrors: sun.security.provider.JavaKeyStore and KeyProtector (17).
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

MAGIC = b"\xfe\xed\xfe\xed"
_WHITENER = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_VERSIONS = (1, 2)
_KEY, _TRUSTED = 1, 2
# 1.3.6.1.4.1.42.2.17.1.1: the protector of keys that is only used in JKS files.
_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
_SEQUENCE, _OCTETS = 0x30, 0x04


class DamagedStore(ValueError):
    """The bytes are not what a store consists of."""


class WrongPassword(ValueError):
    """The digest of the store or of a key does not fit the password."""


@dataclass(frozen=True, slots=True, repr=False)
class KeyEntry:
    """A key that is still encrypted, and its certificates in DER."""

    alias: str
    protected: bytes
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """What a file holds; trusted certificates are in DER."""

    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]


class _JksReader:
    """Takes one field after the other; Damaged where the bytes end too soon."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise DamagedStore(f"it ends in the middle of an entry, at byte {len(self._data)}")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def u4(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def block(self) -> bytes:
        return self.take(self.u4())

    def text(self) -> str:
        return self.take(int.from_bytes(self.take(2), "big")).decode("utf-8", "replace")

    @property
    def left(self) -> int:
        return len(self._data) - self._at


def read(data: bytes, password: str | None) -> Store:
    """Every entry of the file. Without a password changes go unnoticed, as in Java.

    Raises:
        Damaged: it is cut or not a store.
        WrongPassword: the digest differs.
    """
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if not body.startswith(MAGIC):
        raise DamagedStore("it does not start as one")
    if password is not None and not hmac.compare_digest(_digest(body, password), digest):
        raise WrongPassword
    reader = _JksReader(body)
    reader.take(len(MAGIC))
    version = reader.u4()
    if version not in _VERSIONS:
        raise DamagedStore(f"its version is {version}")
    return _read_entries(reader, version)


def decrypt_key(protected: bytes, password: str) -> bytes:
    """The private key as PKCS8.

    The protected bytes are salt (20) | key xor stream | digest (20) of password and key; the stream
    is SHA-1 of password and salt, then of password and the 20 bytes before.

    Raises:
        Damaged: it is not protected in the way of JKS.
        WrongPassword: the digest differs.
    """
    content = _unwrap(protected)
    if len(content) < 2 * _DIGEST_BYTES:
        raise DamagedStore("a key is too short")
    secret = _encoded(password)
    salt, check = content[:_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    encrypted = content[_DIGEST_BYTES:-_DIGEST_BYTES]
    key = bytes(
        a ^ b for a, b in zip(encrypted, _stream(secret, salt, len(encrypted)), strict=True)
    )
    if not hmac.compare_digest(_sha1(secret + key), check):
        raise WrongPassword
    return key


def _read_entries(reader: _JksReader, version: int) -> Store:
    keys, trusted = [], []
    for _ in range(reader.u4()):
        tag, alias = reader.u4(), reader.text()
        reader.take(8)
        if tag == _KEY:
            protected = reader.block()
            chain = tuple(_certificate(reader, version) for _ in range(_chain_length(reader)))
            keys.append(KeyEntry(alias, protected, chain))
        elif tag == _TRUSTED:
            trusted.append(_certificate(reader, version))
        else:
            raise DamagedStore(f"an entry has the tag {tag}")
    if reader.left:
        raise DamagedStore(f"{reader.left} bytes follow the last entry")
    return Store(tuple(keys), tuple(trusted))


def _chain_length(reader: _JksReader) -> int:
    length = reader.u4()
    if length > reader.left:
        raise DamagedStore("a chain is longer than the file")
    return length


def _certificate(reader: _JksReader, version: int) -> bytes:
    if version > 1:
        reader.text()
    return reader.block()


def _digest(body: bytes, password: str) -> bytes:
    return _sha1(_encoded(password) + _WHITENER + body)


def _encoded(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


def _stream(secret: bytes, salt: bytes, size: int) -> bytes:
    stream, block = bytearray(), salt
    while len(stream) < size:
        block = _sha1(secret + block)
        stream += block
    return bytes(stream[:size])


def _sha1(data: bytes) -> bytes:
    # The format's own; what protects the file is who may read it.
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _unwrap(protected: bytes) -> bytes:
    """The octets of SEQUENCE { SEQUENCE { protector, NULL }, OCTET STRING }."""
    outer, _ = _element(protected, _SEQUENCE)
    algorithm, rest = _element(outer, _SEQUENCE)
    if not algorithm.startswith(_PROTECTOR):
        raise DamagedStore("a key is protected by something else than JKS has")
    octets, _ = _element(rest, _OCTETS)
    return octets


def _element(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the DER element at the front, and what follows it."""
    reader = _JksReader(data)
    found, size = struct.unpack("BB", reader.take(2))
    if found != tag:
        raise DamagedStore("a protected key has another structure")
    if size & 0x80:
        size = int.from_bytes(reader.take(size & 0x7F), "big")
    return reader.take(size), reader.take(reader.left)
