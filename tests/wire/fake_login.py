"""The door of a fake broker: asks for a login, watches the session, hangs up on who misbehaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
UNSUPPORTED, ILLEGAL_STATE, FAILED = 33, 34, 58

Judge = Callable[[bytes], bytes]
"""The server's half of a mechanism with one message: its response, or raises Refused."""


class Refused(Exception):
    """The broker's words."""


@dataclass(slots=True)
class Door:
    """The login that a broker requires; counts what happens."""

    mechanism: str
    judge: Judge
    lifetime_ms: int = 0
    logins: int = 0
    # Requests that came when they may not: in the middle of a login, or after the session's end.
    violations: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def guard(self) -> Guard:
        """For one connection."""
        return Guard(self)


class Guard:
    """The state of one connection: outside, between handshake and login, inside."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._logging_in = False
        self._ends_at = 0.0

    def lets_pass(self, api: int) -> bool:
        """Whether another request may come now."""
        inside = time.monotonic() < self._ends_at and not self._logging_in
        if not inside and api != API_VERSIONS:
            self._door.violations.append(f"request {api}, logging in: {self._logging_in}")
            return False
        return True

    def respond(self, api: int, version: int, body: bytes) -> bytes:
        """To a request of the login; `body` is what follows the client's id."""
        if api == HANDSHAKE:
            return bytes(self._shake_hands(body).encode(version=1))
        tags = b"\0" if version >= 2 else b""  # of both headers; there are none in them
        response = self._authenticate(body[len(tags) :], version)
        return tags + bytes(response.encode(version=version))

    def _shake_hands(self, body: bytes) -> SaslHandshakeResponse:
        wanted = SaslHandshakeRequest.decode(body, version=1).mechanism
        offered = [self._door.mechanism]
        code = 0 if wanted in offered else UNSUPPORTED
        self._logging_in = code == 0
        return SaslHandshakeResponse(error_code=code, mechanisms=offered)

    def _authenticate(self, body: bytes, version: int) -> SaslAuthenticateResponse:
        code, text, challenge = 0, None, b""
        message = bytes(SaslAuthenticateRequest.decode(body, version=version).auth_bytes)
        try:
            challenge = self._door.judge(message)
        except Refused as refused:
            code, text = FAILED, str(refused)
        else:
            self._enter()
        return SaslAuthenticateResponse(
            error_code=code,
            error_message=text,
            auth_bytes=challenge,
            session_lifetime_ms=self._door.lifetime_ms,
        )

    def _enter(self) -> None:
        life = self._door.lifetime_ms / 1000 or 3600.0
        self._logging_in = False
        self._ends_at = time.monotonic() + life
        with self._door.lock:
            self._door.logins += 1
