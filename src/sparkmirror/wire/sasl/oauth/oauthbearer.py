"""OAUTHBEARER (RFC 7628, KIP-255): a token instead of a password.

we      n,,^Aauth=Bearer <token>^A<extension>=<value>^A^A
broker  nothing: welcome      or      {"status":"invalid_token"}: we send ^A, and it rejects us
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future

from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.sasl.mechanism import Login, Mechanism
from sparkmirror.wire.sasl.oauth.jwt import BearerToken
from sparkmirror.wire.sasl.renewing import Renewing, then

SEPARATOR = "\x01"
EXTENSION_NAME = re.compile(r"[A-Za-z]+")
EXTENSION_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")


class OAuthBearer(Mechanism):
    """One message; a broker that rejects the token sends the reason."""

    def __init__(self, token: BearerToken) -> None:
        self._token = token

    def start(self) -> bytes:
        pairs = [f"auth=Bearer {self._token.text}"]
        pairs += [f"{name}={value}" for name, value in self._token.extensions.items()]
        return ("n,," + "".join(SEPARATOR + pair for pair in pairs) + SEPARATOR * 2).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        return SEPARATOR.encode()  # the broker repeats its reason with the rejection


class OAuthLogin(Login):
    """Tokens of one source; `where` names it, without secrets."""

    mechanism = "OAUTHBEARER"

    def __init__(
        self, tokens: Renewing[BearerToken], where: str, skew: Callable[[], float]
    ) -> None:
        """`skew` is how far this clock is ahead of the token server's, as far as it is known."""
        self._tokens = tokens
        self._where = where
        self._skew = skew

    def begin(self, host: str) -> Future[Mechanism]:
        return then(self._tokens.get(), self._exchange)

    def advice(self) -> str:
        return f"check the token of {self._where}{clock_advice(self._skew())}"

    def _exchange(self, token: BearerToken) -> Mechanism:
        self.user = token.subject
        return OAuthBearer(token)


def clock_advice(skew_seconds: float) -> str:
    """What to add to an error when clocks may be the cause."""
    if abs(skew_seconds) < 10:
        return ""
    side = "ahead of" if skew_seconds > 0 else "behind"
    return f"; this machine's clock is {abs(skew_seconds):.0f} s {side} the server's: correct it"


def check_extensions(extensions: dict[str, str]) -> dict[str, str]:
    """Names and values that may travel. Raises AuthenticationError."""
    for name, value in extensions.items():
        if name == "auth" or not EXTENSION_NAME.fullmatch(name):
            raise AuthenticationError(f"OAUTHBEARER: '{name}' is no name for an extension")
        if not EXTENSION_VALUE.fullmatch(value):
            raise AuthenticationError(f"OAUTHBEARER: the extension '{name}' has no usable value")
    return extensions
