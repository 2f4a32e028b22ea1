"""TLS of the REST API: for its listeners, and for its requests to other workers.

Runs on: worker. Stores are reread when they change; open connections stay open.
"""

from __future__ import annotations

import functools
import logging
import ssl

from sparkmirror.config.worker.rest_security import RestTls
from sparkmirror.rest.request_forwarder import ClientTls
from sparkmirror.rest.transport.rate_limit import RateLimit
from sparkmirror.wire.tls.tls_context import (
    ContextSource,
    TlsContext,
    TlsSettings,
    make_server_context,
)

log = logging.getLogger(__name__)


# Limits log lines of failed handshakes, so that clients cannot flood the log.
_LINES_PER_SECOND, _LINES = 0.2, 20
_lines = RateLimit(_LINES_PER_SECOND, _LINES)


class _Handshake(ssl.SSLObject):
    """Logs why a client was rejected, which asyncio does not show."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            if not _lines.seconds_to_wait(""):
                _lines.take("")
                log.warning("TLS rejected a client of the REST API: %s", _reason(error))
            raise


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()


class _ListenerContext(ssl.SSLContext):
    """Hands every new connection to the newest context of a source."""

    _source: ContextSource

    @classmethod
    def of(cls, source: ContextSource) -> _ListenerContext:
        context = cls(ssl.PROTOCOL_TLS_SERVER)
        context._source = source
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Called by asyncio for each connection."""
        newest = self._source.current().ssl
        return newest.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def listener_context(tls: RestTls) -> ssl.SSLContext:
    """For https listeners. Raises ConfigError for a store that cannot be used."""

    def make(settings: TlsSettings) -> TlsContext:
        context = make_server_context(settings, tls.client_auth)
        context.ssl.sslobject_class = _Handshake
        if context.ssl.suites13:
            log.warning(
                "%s: ssl.cipher.suites: clients of a listener choose among all suites of TLS 1.3",
                settings.where,
            )
        return context

    return _ListenerContext.of(ContextSource(_settings(tls), make))


def client_contexts(tls: RestTls) -> ClientTls:
    """For requests to other workers; nothing is read until there is one over https."""
    source = functools.cache(lambda: ContextSource(_settings(tls)))
    return lambda: source().current().ssl


def _settings(tls: RestTls) -> TlsSettings:
    return TlsSettings(tls.security, f"REST API ({tls.prefix}ssl.*)")
