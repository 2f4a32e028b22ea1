"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, KIP-84): both sides prove that they know the password.

we      n,,n=<user>,r=<our nonce>[,tokenauth=true]
broker  r=<our nonce><its nonce>,s=<salt>,i=<iterations>
we      c=biws,r=<both nonces>,p=<proof>
broker  v=<its signature>     or     e=<error>
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
from concurrent.futures import Future

from sparkmirror.errors import AuthenticationError
from sparkmirror.wire.sasl.mechanism import Login, Mechanism, done

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# RFC 7677 asks for at least 4096; more than Kafka's brokers can store would only cost time.
FEWEST_ITERATIONS = 4096
MOST_ITERATIONS = 1_000_000
HEADER = "n,,"  # no channel binding, no other identity


class ScramLogin(Login):
    """User name and password, or a delegation token's id and key (`token`, KIP-48).

    The salted password is kept: it is the slow part, and the same for every broker.
    """

    def __init__(self, mechanism: str, user: str, password: str, *, token: bool = False) -> None:
        self.mechanism = mechanism
        self.user = user
        self.hash = HASHES[mechanism]
        self.token = token
        self._password = password
        self._lock = threading.Lock()
        self._salted: tuple[bytes, int, bytes] | None = None

    def begin(self, host: str) -> Future[Mechanism]:
        return done(Scram(self, secrets.token_urlsafe(24)))

    def salted_password(self, salt: bytes, iterations: int) -> bytes:
        """The key that the password becomes with this salt."""
        with self._lock:
            if self._salted is None or self._salted[:2] != (salt, iterations):
                data = self._password.encode()
                key = hashlib.pbkdf2_hmac(self.hash, data, salt, iterations)
                self._salted = (salt, iterations, key)
            return self._salted[2]


class Scram(Mechanism):
    """One exchange; `nonce` is printable and has no comma."""

    def __init__(self, login: ScramLogin, nonce: str) -> None:
        self._login = login
        self._nonce = nonce
        self._first = f"n={_escape(login.user)},r={nonce}"
        if login.token:
            self._first += ",tokenauth=true"
        self._signature: bytes | None = None
        self._is_done = False

    def start(self) -> bytes:
        return (HEADER + self._first).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if self._signature is None:
            return self._prove(challenge)
        if not self._is_done:
            self._check(challenge)
        return None

    def _prove(self, challenge: bytes) -> bytes:
        server_first, fields = self._fields(challenge)
        nonce, salt, iterations = self._offer(fields)
        channel = base64.b64encode(HEADER.encode()).decode()
        final = f"c={channel},r={nonce}"
        message = f"{self._first},{server_first},{final}".encode()
        salted = self._login.salted_password(salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._login.hash, client_key).digest()
        proof = _xor(client_key, self._hmac(stored_key, message))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _offer(self, fields: dict[str, str]) -> tuple[str, bytes, int]:
        try:
            nonce, iterations = fields["r"], int(fields["i"])
            salt = base64.b64decode(fields["s"], validate=True)
        except (KeyError, ValueError) as error:
            raise self._nonsense() from error
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise self._nonsense()
        if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise AuthenticationError(
                f"{self._login.mechanism}: the broker asks for {iterations} iterations, "
                f"{FEWEST_ITERATIONS} to {MOST_ITERATIONS} are allowed"
            )
        return nonce, salt, iterations

    def _check(self, challenge: bytes) -> None:
        _, fields = self._fields(challenge)
        if "e" in fields:
            raise AuthenticationError(f"{self._login.mechanism}: {fields['e']}")
        try:
            signature = base64.b64decode(fields["v"], validate=True)
        except (KeyError, ValueError) as error:
            raise self._nonsense() from error
        if self._signature is None or not hmac.compare_digest(signature, self._signature):
            raise AuthenticationError(
                f"{self._login.mechanism}: the broker does not know the password of "
                f"'{self._login.user}'; it may not be the broker that it seems to be"
            )
        self._is_done = True

    def _fields(self, challenge: bytes) -> tuple[str, dict[str, str]]:
        try:
            text = challenge.decode()
        except UnicodeDecodeError as error:
            raise self._nonsense() from error
        pairs = (part.partition("=") for part in text.split(","))
        return text, {name: value for name, _, value in pairs}

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._login.hash)

    def _nonsense(self) -> AuthenticationError:
        return AuthenticationError(
            f"{self._login.mechanism}: the broker's response does not follow RFC 5802"
        )


def _escape(user: str) -> str:
    return user.replace("=", "=3D").replace(",", "=2C")


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(left, right, strict=True))
