"""AWS Signature Version 4: a request that is signed with a secret key, in its query or a header.

Mirrors: the published specification; MSK takes a signed GET as a password.
"""

from __future__ import annotations

import hashlib
import hmac
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.config.masking import remember_token

ALGORITHM = "AWS4-HMAC-SHA256"
NO_BODY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Keys:
    """Credentials of AWS; `token` belongs to temporary ones. Times in seconds since 1970."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)
    starts_at: float = 0.0
    expires_at: float = float("inf")

    def __post_init__(self) -> None:
        remember_token(self.secret_key)
        remember_token(self.token)


@dataclass(frozen=True, slots=True)
class Scope:
    """When and for what a signature is good."""

    at: float
    region: str
    service: str

    @property
    def timestamp(self) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.at))

    @property
    def text(self) -> str:
        return f"{self.timestamp[:8]}/{self.region}/{self.service}/aws4_request"


@dataclass(frozen=True, slots=True)
class Signable:
    """A request; header names in lower case. A `path` with odd characters is encoded already."""

    method: str
    headers: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict)
    path: str = "/"
    body_hash: str = NO_BODY

    @property
    def signed_headers(self) -> str:
        return ";".join(sorted(self.headers))

    def canonical(self) -> str:
        """The text whose hash is signed."""
        headers = "".join(f"{name}:{self.headers[name].strip()}\n" for name in sorted(self.headers))
        parts = (self.method, self.path, encode_query(self.query))
        return "\n".join((*parts, headers, self.signed_headers, self.body_hash))


def encode_query(query: Mapping[str, str]) -> str:
    """Names and values encoded, in the order that signatures need."""
    pairs = sorted((_encode(name), _encode(value)) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def signing_key(secret_key: str, scope: Scope) -> bytes:
    """The key of one day, region and service."""
    key = f"AWS4{secret_key}".encode()
    for part in scope.text.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def sign(request: Signable, keys: Keys, scope: Scope) -> str:
    """The signature in hexadecimal."""
    digest = hashlib.sha256(request.canonical().encode()).hexdigest()
    text = "\n".join((ALGORITHM, scope.timestamp, scope.text, digest))
    return hmac.new(signing_key(keys.secret_key, scope), text.encode(), "sha256").hexdigest()


def presigned_query(
    request: Signable, keys: Keys, scope: Scope, expires_seconds: int
) -> dict[str, str]:
    """The query of `request` with everything that makes it valid, signature included."""
    query = {
        **request.query,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{keys.access_key}/{scope.text}",
        "X-Amz-Date": scope.timestamp,
        "X-Amz-Expires": str(expires_seconds),
        "X-Amz-SignedHeaders": request.signed_headers,
    }
    if keys.token:
        query["X-Amz-Security-Token"] = keys.token
    signed = Signable(request.method, request.headers, query, request.path, request.body_hash)
    return {**query, "X-Amz-Signature": sign(signed, keys, scope)}


def authorization(request: Signable, keys: Keys, scope: Scope) -> str:
    """The header `Authorization`; `request` has the headers host and x-amz-date already."""
    return (
        f"{ALGORITHM} Credential={keys.access_key}/{scope.text}, "
        f"SignedHeaders={request.signed_headers}, Signature={sign(request, keys, scope)}"
    )


def _encode(text: str) -> str:
    return urllib.parse.quote(text, safe="-._~")
