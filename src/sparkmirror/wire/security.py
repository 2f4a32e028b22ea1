"""How clients of one cluster prove who they are, and how they verify the brokers.

Runs on: executor and worker. `Security.of(config)` is made once per process and set of settings:
it holds the TLS contexts and the login, so that certificates, tokens and tickets are read once and
not per connection. Everything that opens a connection to a broker asks it: the event loop's
`NetworkClient` and, with the same objects, kafka-python's admin client.
"""

from __future__ import annotations

import ssl
from collections.abc import Hashable, Mapping
from threading import Lock
from typing import Any

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.keys.security_keys import SECURITY_KEYS, SECURITY_PROTOCOL
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.stream import PlainStream, Stream
from sparkmirror.wire.sasl import kafka_python
from sparkmirror.wire.sasl.authenticator import Authenticator
from sparkmirror.wire.sasl.logins import LoginMaker
from sparkmirror.wire.tls.tls_context import ContextSource, TlsSettings
from sparkmirror.wire.tls.tls_stream import TlsStream


class Security:
    """Protocol, TLS and login of one cluster's clients; shared by threads."""

    def __init__(self, alias: str, settings: Mapping[str, Any]) -> None:
        self.alias = alias
        self.protocol: str = settings.get(SECURITY_PROTOCOL.name, SECURITY_PROTOCOL.default)
        self._settings = settings
        self._tls = ContextSource(self._tls_settings()) if self.is_tls else None
        self._login = self._login_maker().make() if self.is_sasl else None

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
        buffers = send_buffer, receive_buffer
        if self._tls is None:
            return PlainStream(host, port, *buffers, attempt)
        return TlsStream(host, port, *buffers, attempt, context=self._tls.current())

    def authenticator(self, host: str) -> Authenticator | None:
        """A new login for a connection to the broker `host`; None without SASL."""
        return None if self._login is None else Authenticator(self._login, host)

    def hint(self, connection: Connection) -> str:
        """Why a broker may have hung up without a response."""
        if connection.responses == 0 and not self.is_tls:
            return "; perhaps it wants TLS: check security.protocol and the port"
        if connection.responses == 1 and not self.is_sasl:
            return "; perhaps it wants a login: check security.protocol and the port"
        return ""

    def files(self) -> tuple[str, ...]:
        """Paths of the files that these settings name: what an executor needs."""
        of_tls = self._tls_settings().files() if self.is_tls else ()
        return (*of_tls, *(self._login_maker().files() if self.is_sasl else ()))

    def kafka_python_options(self) -> dict[str, Any]:
        """The same for kafka-python's clients."""
        options: dict[str, Any] = {"security_protocol": self.protocol}
        if self._tls is not None:
            options["ssl_context"] = self._tls
        if self._login is not None:
            options |= kafka_python.options(self._login)
        return options

    def _tls_settings(self) -> TlsSettings:
        return TlsSettings(self._settings, f"cluster '{self.alias}'")

    def _login_maker(self) -> LoginMaker:
        settings = {key.name: self.setting(key.name) for key in SECURITY_KEYS}
        return LoginMaker(self.alias, settings, self._token_server_context)

    def _token_server_context(self, options: Mapping[str, str]) -> ssl.SSLContext:
        """TLS for a token server, which has ssl.* options of its own in sasl.jaas.config."""
        known = {name: text for name, text in options.items() if name in SECURITY_KEYS}
        values = SECURITY_KEYS.parse(known)
        where = f"cluster '{self.alias}': sasl.jaas.config"
        settings = TlsSettings({name: values[name] for name in known}, where)
        return ContextSource(settings).current().ssl


_cache: dict[Hashable, Security] = {}
_lock = Lock()
