"""How clients of one cluster prove who they are, and how they know whom they talk to.

Runs on: executor and worker. `Security.of(config)` is made once per process and set of settings:
it holds the TLS contexts and the login, so that certificates, tokens and tickets are read once and
not per connection. Everything that opens a connection to a broker asks it: the event loop's
`Cluster` and, with the same objects, kafka-python's admin client.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from threading import Lock
from typing import Any, Protocol

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.security_keys import SECURITY_KEYS, SECURITY_PROTOCOL
from sparkmirror.wire.connection import Connection
from sparkmirror.wire.stream import PlainStream, Stream

OnAuthenticated = Callable[[float | None], None]
"""Called with the seconds until the broker wants another login; None if it never does."""


class Authenticator(Protocol):
    """One login over one connection; none of the methods blocks."""

    def start(self, connection: Connection, timeout: float, on_done: OnAuthenticated) -> None:
        """Begin. When it fails, `connection.fail` is called with an AuthenticationError.

        Also called for a login that is to be renewed: then requests of others are in flight, and
        go on.
        """


class Security:
    """Protocol, TLS and login of one cluster's clients; shared by threads."""

    def __init__(self, alias: str, settings: Mapping[str, Any]) -> None:
        self.alias = alias
        self.protocol: str = settings.get(SECURITY_PROTOCOL.name, SECURITY_PROTOCOL.default)
        self._settings = settings

    @staticmethod
    def of(config: ClientConfig) -> Security:
        """The one for these settings.

        Raises:
            ConfigErrors: a store, key or login line that cannot be used.
        """
        key = (config.alias, tuple(sorted(config.security.items(), key=lambda item: item[0])))
        with _lock:
            if key not in _cache:
                _cache[key] = Security(config.alias, config.security)
            return _cache[key]

    @property
    def is_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def is_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    def setting(self, name: str) -> Any:
        """The value of a security key, or Kafka's default."""
        return self._settings.get(name, SECURITY_KEYS[name].default)

    def open_stream(
        self, host: str, port: int, attempt: int, send_buffer: int, receive_buffer: int
    ) -> Stream:
        """A stream that is being connected; raises KafkaError."""
        return PlainStream(host, port, send_buffer, receive_buffer, attempt)

    def authenticator(self, host: str) -> Authenticator | None:
        """A new login for a connection to the broker `host`; None without SASL."""
        return None

    def files(self) -> tuple[str, ...]:
        """Paths of the files that these settings name: what an executor needs."""
        return ()

    def kafka_python_options(self) -> dict[str, Any]:
        """The same for kafka-python's clients."""
        return {"security_protocol": self.protocol}


_cache: dict[Hashable, Security] = {}
_lock = Lock()
