"""Passwords in a file of users: plain, as in Connect, or hashed.

Runs on: worker, and in `sparkmirror password`. Pure.

Hashes are written as other programs (passlib) write them, fields between dollar signs:

    $scrypt$ln=14,r=8,p=5$<salt>$<hash>         ln is the logarithm of the cost
    $pbkdf2-sha256$600000$<salt>$<hash>         the number of rounds

in base64 without padding; pbkdf2 may use a dot for a plus sign. Anything that does not begin like
this is a plain password.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror.config.config_def import BadValue

# 16 MiB and about a fifth of a second: one of OWASP's settings for scrypt.
_COST = (14, 8, 5)
_SALT_BYTES = 16
_HASH_BYTES = 32
_LEAST_HASH_BYTES = 16
# A line of a file must not cost more than this: 128 MiB, and ten million rounds.
_MOST_MEMORY = 128 * 1024 * 1024
_MOST_ROUNDS = 10_000_000
_MOST_PARALLEL = 16

_SCRYPT = re.compile(r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([^$]+)\$([^$]+)")
_PBKDF2 = re.compile(r"\$pbkdf2-sha256\$(\d{1,8})\$([^$]+)\$([^$]+)")
_Cost = tuple[int, int, int]
_HASHED = ("$scrypt$", "$pbkdf2-sha256$")


@dataclass(frozen=True, slots=True, repr=False)
class Password:
    """A user's password, plain or hashed."""

    expected: bytes
    derive: Callable[[bytes], bytes]
    is_hashed: bool

    def fits(self, text: str) -> bool:
        """Whether `text` is the password; takes the same time either way."""
        return hmac.compare_digest(self.derive(text.encode()), self.expected)


def parse_password(text: str) -> Password:
    """The password in a line of a file. Raises BadValue, without the text."""
    if not text.startswith(_HASHED):
        return Password(text.encode(), bytes, False)
    if found := _SCRYPT.fullmatch(text):
        return _scrypt_password(*found.groups())
    if found := _PBKDF2.fullmatch(text):
        return _pbkdf2_password(*found.groups())
    raise _malformed("it is not a readable hash")


def hash_password(text: str) -> str:
    """One line with the hash of `text`, with its own salt."""
    salt = secrets.token_bytes(_SALT_BYTES)
    made = _scrypt(text.encode(), salt, _COST, _HASH_BYTES)
    ln, r, p = _COST
    return f"$scrypt$ln={ln},r={r},p={p}${_encode(salt)}${_encode(made)}"


def _scrypt_password(log_cost: str, block: str, parallel: str, salt: str, made: str) -> Password:
    ln, r, p = int(log_cost), int(block), int(parallel)
    affordable = 128 * r * 2**ln <= _MOST_MEMORY and 1 <= p <= _MOST_PARALLEL
    is_defined = r >= 1 and 1 <= ln < 16 * r  # RFC 7914, section 2
    if not (is_defined and affordable):
        raise _malformed("its cost is out of range")
    raw_salt, expected = _decode(salt), _decode_hash(made)
    length = len(expected)
    return Password(expected, lambda text: _scrypt(text, raw_salt, (ln, r, p), length), True)


def _pbkdf2_password(rounds: str, salt: str, made: str) -> Password:
    count = int(rounds)
    if not 1 <= count <= _MOST_ROUNDS:
        raise _malformed("its number of rounds is out of range")
    raw_salt, expected = _decode(salt), _decode_hash(made)
    length = len(expected)
    return Password(
        expected,
        lambda text: hashlib.pbkdf2_hmac("sha256", text, raw_salt, count, length),
        True,
    )


def _scrypt(text: bytes, salt: bytes, cost: _Cost, length: int) -> bytes:
    ln, r, p = cost
    # OpenSSL needs some memory besides the blocks.
    room = 128 * r * (2**ln + p) + 1024 * 1024
    return hashlib.scrypt(text, salt=salt, n=2**ln, r=r, p=p, maxmem=room, dklen=length)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    padded = text.replace(".", "+") + "=" * (-len(text) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except ValueError as error:
        raise _malformed("its salt or its hash is not base64") from error


def _decode_hash(text: str) -> bytes:
    made = _decode(text)
    if len(made) < _LEAST_HASH_BYTES:
        raise _malformed("its hash is truncated")
    return made


def _malformed(why: str) -> BadValue:
    return BadValue(f"the password looks hashed, but {why}", "create it with: sparkmirror password")
