"""What a SASL mechanism and a login are to the rest of the program.

A Login exists once per process and set of security settings; it has the credentials. A Mechanism
is one exchange of messages with one broker, begun by the Login for every (re-)authentication.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future


class Mechanism(ABC):
    """One exchange; knows bytes, not sockets. Errors are AuthenticationErrors without secrets."""

    @abstractmethod
    def start(self) -> bytes:
        """The first message; called once."""

    @abstractmethod
    def respond(self, challenge: bytes) -> bytes | None:
        """The next message, or None: the broker has proved its identity, the exchange is over."""


class Login(ABC):
    """Credentials of one set of security settings; used by all threads of the process."""

    mechanism: str
    # The user as the broker sees it, for messages; empty when only the broker knows.
    user: str = ""

    @abstractmethod
    def begin(self, host: str) -> Future[Mechanism]:
        """Begin an exchange with the broker `host`.

        Done at once when the credentials are at hand. Else they are fetched on another thread; the
        future fails with a KafkaError that names the request and the server.
        """

    def advice(self) -> str:
        """What to do when the broker rejects this login."""
        return "check user name and password in sasl.jaas.config"


def done(mechanism: Mechanism) -> Future[Mechanism]:
    """A future of what is there already."""
    future: Future[Mechanism] = Future()
    future.set_result(mechanism)
    return future
