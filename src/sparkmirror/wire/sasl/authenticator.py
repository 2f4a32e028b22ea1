"""The login of one connection: before anything else, and again before each session ends.

Runs on: executor and worker, on the event loop's thread. Mirrors: KIP-152, KIP-368.

    us      SaslHandshake(mechanism)      SaslAuthenticate(message) ... as often as it takes
    broker  the mechanisms it offers      its message, the last one with the session's lifetime
"""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable
from concurrent.futures import Future

from sparkmirror.errors import AuthenticationError, KafkaError, MirrorError
from sparkmirror.wire.net.buffer_pool import PooledBuffer
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.protocol.api_versions import SASL_AUTHENTICATE, SASL_HANDSHAKE
from sparkmirror.wire.protocol.error_codes import error_code
from sparkmirror.wire.sasl import messages
from sparkmirror.wire.sasl.mechanism import Login, Mechanism

# How often we check whether another thread has got the credentials.
POLL_SECONDS = 0.01
# Part of a session after which it is renewed, as Java's clients do it: not all at once. A broker
# closes connections whose session has ended (KIP-368: connections.max.reauth.ms).
EARLIEST, LATEST = 0.85, 0.95
# Brokers reject a new session when the last one has just begun.
SHORTEST_SESSION_SECONDS = 1.0


class Authenticator:
    """Logs one connection in; on failure the connection fails with an AuthenticationError.

    During a login the connection holds back requests: a broker accepts nothing else then. Requests
    in flight get their responses first, so none is lost and none changes its place.
    """

    def __init__(self, login: Login, host: str) -> None:
        self.login = login
        # Logins so far, and how long the session of the last one lasts; 0 is for ever.
        self.logins = 0
        self.lifetime_ms = 0
        self._host = host

    def start(self, connection: Connection, timeout: float, on_done: Callable[[], None]) -> None:
        """Log in, then call `on_done`; renew the session in good time, as often as it takes."""
        exchange = _Exchange(self, connection, timeout, on_done)
        exchange.wait_for(self.login.begin(self._host))

    def renew(self, connection: Connection | None, timeout: float) -> None:
        """Log in again, on a connection that is in use."""
        if connection is not None and not connection.closed:
            self.start(connection, timeout, _nothing)


class _Exchange:
    """One login under way."""

    def __init__(
        self,
        owner: Authenticator,
        connection: Connection,
        timeout: float,
        on_done: Callable[[], None],
    ) -> None:
        self._owner = owner
        self._login = owner.login
        self._loop = connection.loop
        self._connection = connection
        self._timeout = timeout
        self._on_done = on_done
        self._deadline = connection.loop.clock() + timeout

    def wait_for(self, future: Future[Mechanism]) -> None:
        """Requests continue while another thread gets the credentials."""
        if self._connection.closed:
            return
        if not future.done():
            if self._loop.clock() < self._deadline:
                self._loop.call_later(POLL_SECONDS, lambda: self.wait_for(future))
            else:
                self._connection.fail(self._error("the credentials did not come in time"))
            return
        try:
            self._shake_hands(future.result())
        except KafkaError as error:
            self._connection.fail(error)
        except MirrorError as error:
            self._connection.fail(AuthenticationError(str(error)))

    def _shake_hands(self, mechanism: Mechanism) -> None:
        self._connection.hold_back()
        body = messages.encode_handshake(self._login.mechanism)

        def on_response(response: memoryview, _: PooledBuffer | None) -> None:
            self._check_offer(messages.decode_handshake(response))
            self._send_step(mechanism, mechanism.start())

        self._send(self._connection.choose(SASL_HANDSHAKE), body, on_response)

    def _check_offer(self, offer: messages.Handshake) -> None:
        name = self._login.mechanism
        if offer.code == messages.ILLEGAL_SASL_STATE:
            raise AuthenticationError(
                f"{name} login: this listener has no logins; set security.protocol to PLAINTEXT "
                "or SSL as the listener has it, or use the port of the SASL listener"
            )
        if offer.code == messages.UNSUPPORTED_SASL_MECHANISM or (
            not offer.code and name not in offer.mechanisms
        ):
            offered = ", ".join(offer.mechanisms) or "nothing"
            raise AuthenticationError(
                f"{name} login: the broker offers {offered} on this listener; set sasl.mechanism "
                "and sasl.jaas.config accordingly"
            )
        if offer.code:
            raise self._error(error_code(offer.code).name)

    def _send_step(self, mechanism: Mechanism, message: bytes) -> None:
        key, version = self._connection.choose(SASL_AUTHENTICATE)

        def on_response(response: memoryview, _: PooledBuffer | None) -> None:
            step = messages.decode_authenticate(response, version)
            if step.code:
                raise self._rejected(step)
            following = mechanism.respond(step.challenge)
            if following is None:
                self._finish(step.lifetime_ms)
            else:
                self._send_step(mechanism, following)

        self._send((key, version), messages.encode_authenticate(message), on_response)

    def _send(
        self,
        api: tuple[int, int],
        body: bytes,
        on_response: Callable[[memoryview, PooledBuffer | None], None],
    ) -> None:
        self._connection.send(api, [body], on_response, _ignore, self._timeout, ahead=True)

    def _finish(self, lifetime_ms: int) -> None:
        owner = self._owner
        owner.logins += 1
        owner.lifetime_ms = lifetime_ms
        if lifetime_ms:
            seconds = lifetime_ms / 1000 * random.uniform(EARLIEST, LATEST)
            wait = max(seconds, SHORTEST_SESSION_SECONDS)
            # Sessions may last for hours, connections may not: the timer must not keep one alive.
            reference, timeout = weakref.ref(self._connection), self._timeout
            self._loop.call_later(wait, lambda: owner.renew(reference(), timeout))
        self._on_done()
        self._connection.send_held()

    def _rejected(self, step: messages.SaslStep) -> AuthenticationError:
        if step.code != messages.SASL_AUTHENTICATION_FAILED:
            return self._error(f"{error_code(step.code).name} {step.text or ''}".rstrip())
        # Brokers reveal no more than this, on purpose.
        return self._error(f"{step.text or 'rejected'}; {self._login.advice()}")

    def _error(self, why: str) -> AuthenticationError:
        whom = f" as '{self._login.user}'" if self._login.user else ""
        return AuthenticationError(f"{self._login.mechanism} login{whom}: {why}")


def _ignore(_: KafkaError) -> None:
    """The connection's owner is notified."""


def _nothing() -> None:
    """The connection is in use already."""
