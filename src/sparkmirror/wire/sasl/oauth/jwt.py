"""JSON web tokens, as far as a client needs them: what they claim, and unsecured ones of our own.

Signatures are checked by brokers, not here.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.config.masking import remember_token
from sparkmirror.errors import AuthenticationError
from sparkmirror.foreign_json import parse_json

# Of a token without an expiry time: it is read again after this time.
UNKNOWN_LIFE_SECONDS = 300.0
_FAR = 1e12


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token, what goes with it, and its life in seconds since 1970."""

    text: str = field(repr=False)
    subject: str
    starts_at: float
    expires_at: float
    extensions: Mapping[str, str] = field(default_factory=dict)


def read_token(
    text: str,
    now: float,
    where: str,
    subject_claim: str = "sub",
    extensions: Mapping[str, str] | None = None,
) -> BearerToken:
    """The token with its life; one that is no JWT (opaque) is taken as it is.

    Raises:
        AuthenticationError: it has expired, or cannot be sent.
    """
    text = text.strip()
    if not text or not all("!" <= char <= "~" for char in text):
        raise AuthenticationError(f"{where} gave no token that could be sent to a broker")
    remember_token(text)
    claims = _claims(text)
    starts_at = _number(claims, "iat", now)
    expires_at = _number(claims, "exp", now + UNKNOWN_LIFE_SECONDS)
    if expires_at <= now:
        raise AuthenticationError(
            f"the token of {where} expired {now - expires_at:.0f} s ago by this machine's clock; "
            "compare the clocks, or get a new token"
        )
    # A clock that is behind sees tokens of the future: their life begins now.
    starts_at = min(starts_at, now)
    subject = claims.get(subject_claim, "")
    return BearerToken(
        text, subject if isinstance(subject, str) else "", starts_at, expires_at, extensions or {}
    )


def unsecured_token(claims: Mapping[str, Any]) -> str:
    """A token without a signature, for brokers of test systems."""
    return f"{_encode({'alg': 'none'})}.{_encode(claims)}."


def encode_part(value: bytes) -> str:
    """Base64 as tokens have it."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _encode(value: Mapping[str, Any]) -> str:
    return encode_part(json.dumps(value, separators=(",", ":")).encode())


def _claims(text: str) -> dict[str, Any]:
    parts = text.split(".")
    if len(parts) != 3:
        return {}
    padding = "=" * (-len(parts[1]) % 4)
    try:
        claims = parse_json(base64.urlsafe_b64decode(parts[1] + padding))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def _number(claims: Mapping[str, Any], name: str, default: float) -> float:
    value = claims.get(name)
    # JSON has larger numbers than there are times, and Python's also infinite ones.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _FAR:
        return default
    return float(value)
