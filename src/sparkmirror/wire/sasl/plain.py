"""PLAIN (RFC 4616): user name and password as they are, so it belongs on TLS."""

from __future__ import annotations

from concurrent.futures import Future

from sparkmirror.wire.sasl.mechanism import Login, Mechanism, done


class Plain(Mechanism):
    """One message, and an empty response."""

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password

    def start(self) -> bytes:
        # The authorization identity stays empty, as Java's client leaves it.
        return f"\0{self._user}\0{self._password}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        return None


class PlainLogin(Login):
    """User name and password of the login module."""

    mechanism = "PLAIN"

    def __init__(self, user: str, password: str) -> None:
        self.user = user
        self._password = password

    def begin(self, host: str) -> Future[Mechanism]:
        return done(Plain(self.user, self._password))
