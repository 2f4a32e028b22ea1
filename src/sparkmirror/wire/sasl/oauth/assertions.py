"""Assertions: signed statements with which a client asks a token server for a token (RFC 7523).

Mirrors: Kafka's JwtBearerJwtRetriever and its `sasl.oauthbearer.assertion.*` keys (4.3).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from sparkmirror.errors import AuthenticationError
from sparkmirror.foreign_json import parse_json
from sparkmirror.wire.sasl.oauth.jwt import encode_part
from sparkmirror.wire.secret_files import read_file

PREFIX = "sasl.oauthbearer.assertion."
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def assertion_form(setting: Callable[[str], Any], scope: str) -> dict[str, str]:
    """The request for a token, with a new assertion or the one of a file."""
    file = setting(f"{PREFIX}file")
    text = _read(f"{PREFIX}file", file).decode().strip() if file else _signed(setting)
    form = {"grant_type": GRANT, "assertion": text}
    return {**form, "scope": scope} if scope else form


def assertion_files(setting: Callable[[str], Any]) -> list[str]:
    """The files that these settings name."""
    names = ("file", "private.key.file", "template.file")
    return [path for name in names if (path := setting(PREFIX + name))]


def _signed(setting: Callable[[str], Any]) -> str:
    algorithm = setting(f"{PREFIX}algorithm").upper()
    headers, claims = _template(setting)
    headers = {"typ": "JWT", **headers, "alg": algorithm}
    text = f"{_json(headers)}.{_json({**claims, **_claims(setting)})}"
    return f"{text}.{encode_part(_sign(setting, algorithm, text.encode()))}"


def _claims(setting: Callable[[str], Any]) -> dict[str, Any]:
    now = int(time.time())
    claims: dict[str, Any] = {
        "iat": now,
        "exp": now + setting(f"{PREFIX}claim.exp.seconds"),
        "nbf": now - setting(f"{PREFIX}claim.nbf.seconds"),
    }
    for name in ("aud", "iss", "sub"):
        if value := setting(f"{PREFIX}claim.{name}"):
            claims[name] = value
    if setting(f"{PREFIX}claim.jti.include"):
        claims["jti"] = str(uuid.uuid4())
    return claims


def _template(setting: Callable[[str], Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    key = f"{PREFIX}template.file"
    path = setting(key)
    if not path:
        return {}, {}
    try:
        found = parse_json(_read(key, path))
        return dict(found.get("header") or {}), dict(found.get("payload") or {})
    except (ValueError, AttributeError, TypeError) as error:
        raise AuthenticationError(
            f"{key}={path}: not JSON with the objects 'header' and 'payload'"
        ) from error


def _sign(setting: Callable[[str], Any], algorithm: str, message: bytes) -> bytes:
    key_name = f"{PREFIX}private.key.file"
    path = setting(key_name)
    if not path:
        raise AuthenticationError(f"{key_name} is not set, so there is nothing to sign with")
    passphrase = setting(f"{PREFIX}private.key.passphrase")
    secret = passphrase.reveal().encode() if passphrase else None
    try:
        key = serialization.load_pem_private_key(_read(key_name, path), secret)
    except (ValueError, TypeError) as error:
        raise AuthenticationError(
            f"{key_name}={path}: not a private key in PEM, or the passphrase does not open it"
        ) from error
    if algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
        return key.sign(message, padding.PKCS1v15(), hashes.SHA256())
    if algorithm == "ES256" and isinstance(key, ec.EllipticCurvePrivateKey):
        one, other = decode_dss_signature(key.sign(message, ec.ECDSA(hashes.SHA256())))
        return one.to_bytes(32) + other.to_bytes(32)
    raise AuthenticationError(f"{key_name}={path}: this key cannot sign with {algorithm}")


def _json(value: Mapping[str, Any]) -> str:
    return encode_part(json.dumps(value, separators=(",", ":")).encode())


def _read(key: str, path: str) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise AuthenticationError(f"{key}={path}: {error.strerror or error}") from error
