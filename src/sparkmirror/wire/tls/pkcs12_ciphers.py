"""Decrypts the parts of PKCS12 stores, with what Java and OpenSSL encrypt their certificates with.

Runs on: executor and worker. Mirrors: RFC 8018 (PBES2), RFC 7292 appendix B (the older ones).
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from sparkmirror.wire.tls import rc2
from sparkmirror.wire.tls.der import OCTETS, SEQUENCE, BadDer, Element

_PBES2 = "1.2.840.113549.1.5.13"
_PBKDF2 = "1.2.840.113549.1.5.12"
_HMAC_SHA1 = "1.2.840.113549.2.7"
_HASHES = {
    _HMAC_SHA1: "sha1",
    "1.2.840.113549.2.8": "sha224",
    "1.2.840.113549.2.9": "sha256",
    "1.2.840.113549.2.10": "sha384",
    "1.2.840.113549.2.11": "sha512",
}
# A store must not cost more than this; Java's own have 10,000 rounds.
_MOST_ROUNDS = 10_000_000


class _CipherOf(NamedTuple):
    name: str
    key_bytes: int


_CIPHERS = {
    "2.16.840.1.101.3.4.1.2": _CipherOf("AES", 16),
    "2.16.840.1.101.3.4.1.22": _CipherOf("AES", 24),
    "2.16.840.1.101.3.4.1.42": _CipherOf("AES", 32),
    "1.2.840.113549.3.7": _CipherOf("3DES", 24),
}
_OLD_CIPHERS = {
    "1.2.840.113549.1.12.1.3": _CipherOf("3DES", 24),
    "1.2.840.113549.1.12.1.4": _CipherOf("3DES", 16),
    "1.2.840.113549.1.12.1.5": _CipherOf("RC2", 16),
    "1.2.840.113549.1.12.1.6": _CipherOf("RC2", 5),
}
_KEY, _START = 1, 2
_HASH_BLOCK, _HASH_BYTES, _START_BYTES = 64, 20, 8


class UnknownCipher(ValueError):
    """It is encrypted with something else."""


def decrypt(algorithm: Element, data: bytes, password: str) -> bytes:
    """What `data` was before. Raises UnknownCipher or BadDer."""
    name, parameters = _algorithm(algorithm)
    if name == _PBES2:
        cipher, key, start = _pbes2(parameters, password)
    elif name in _OLD_CIPHERS:
        cipher = _OLD_CIPHERS[name]
        salt, rounds = _salt_and_rounds(parameters.parts())
        secret = password.encode("utf-16-be", "surrogatepass") + b"\0\0"
        key = _old_bytes(_KEY, secret, salt, rounds, cipher.key_bytes)
        start = _old_bytes(_START, secret, salt, rounds, _START_BYTES)
    else:
        raise UnknownCipher(name)
    return _unpadded(_decrypt_blocks(cipher, key, start, data))


def _algorithm(element: Element) -> tuple[str, Element]:
    parts = element.parts()
    if not parts:
        raise BadDer("an algorithm has no name")
    return parts[0].name(), parts[1] if len(parts) > 1 else Element(SEQUENCE, b"")


def _pbes2(parameters: Element, password: str) -> tuple[_CipherOf, bytes, bytes]:
    parts = parameters.parts()
    if len(parts) != 2:
        raise BadDer("an algorithm lacks parameters")
    (derivation, how), (name, start) = map(_algorithm, parts)
    cipher = _CIPHERS.get(name)
    if derivation != _PBKDF2 or cipher is None:
        raise UnknownCipher(f"{derivation}, {name}")
    numbers = how.parts()
    salt, rounds = _salt_and_rounds(numbers)
    # The length of the key may stand between; the hash is the last part, SHA-1 if there is none.
    hashed = _algorithm(numbers[-1])[0] if numbers[-1].tag == SEQUENCE else _HMAC_SHA1
    if hashed not in _HASHES:
        raise UnknownCipher(hashed)
    secret = password.encode("utf-8", "surrogatepass")
    key = hashlib.pbkdf2_hmac(_HASHES[hashed], secret, salt, rounds, cipher.key_bytes)
    return cipher, key, start.of(OCTETS)


def _salt_and_rounds(parts: list[Element]) -> tuple[bytes, int]:
    if len(parts) < 2:
        raise BadDer("an algorithm lacks salt or rounds")
    rounds = parts[1].number()
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise BadDer(f"there are {rounds} rounds of hashing")
    return parts[0].of(OCTETS), rounds


def _old_bytes(purpose: int, secret: bytes, salt: bytes, rounds: int, size: int) -> bytes:
    """RFC 7292, appendix B.2, with SHA-1."""
    diversifier = bytes([purpose]) * _HASH_BLOCK
    mixed = _repeated(salt) + _repeated(secret)
    found = b""
    while len(found) < size:
        digest = diversifier + mixed
        for _ in range(rounds):
            digest = hashlib.sha1(digest, usedforsecurity=False).digest()
        found += digest
        added = int.from_bytes((digest * 4)[:_HASH_BLOCK], "big") + 1
        mixed = b"".join(
            (int.from_bytes(mixed[at : at + _HASH_BLOCK], "big") + added).to_bytes(
                _HASH_BLOCK + 1, "big"
            )[1:]
            for at in range(0, len(mixed), _HASH_BLOCK)
        )
    return found[:size]


def _repeated(text: bytes) -> bytes:
    """Repeated until it fills whole blocks."""
    size = -(-len(text) // _HASH_BLOCK) * _HASH_BLOCK
    return (text * (size // max(len(text), 1) + 1))[:size]


def _decrypt_blocks(cipher: _CipherOf, key: bytes, start: bytes, data: bytes) -> bytes:
    block = 16 if cipher.name == "AES" else 8
    if not data or len(data) % block or len(start) != block:
        raise BadDer("an encrypted part is cut")
    if cipher.name == "RC2":
        return rc2.decrypt_cbc(key, start, data)
    made = AES(key) if cipher.name == "AES" else TripleDES(key)
    decryptor = Cipher(made, CBC(start)).decryptor()
    return decryptor.update(data) + decryptor.finalize()


def _unpadded(data: bytes) -> bytes:
    count = data[-1]
    if not 1 <= count <= 16 or data[-count:] != bytes([count]) * count:
        raise BadDer("an encrypted part has no padding")
    return data[:-count]
