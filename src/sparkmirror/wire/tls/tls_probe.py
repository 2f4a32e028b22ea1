"""The certificate that a broker shows, and whether we accept it.

Runs on: wherever `sparkmirror check` is called; blocking, one connection of its own.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.wire.tls.tls_context import TlsSettings, make_client_context
from sparkmirror.wire.tls.tls_failures import explain_handshake

PATIENCE_SECONDS = 10.0
CHECKS_NAME = "ssl.endpoint.identification.algorithm"


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """A certificate that was accepted: its chain is trusted, and its name fits if it must."""

    subject: str
    issuer: str
    not_after: datetime
    version: str
    suite: str
    is_name_checked: bool

    @property
    def days_left(self) -> int:
        """Until it expires."""
        return (self.not_after - datetime.now(UTC)).days


def fetch_certificate(config: ClientConfig, server: str) -> ShownCertificate:
    """Shake hands with one broker of the cluster.

    Raises:
        ConfigError: a store of ours cannot be read.
        KafkaError: names cluster, address, cause and remedy.
    """
    settings = TlsSettings(config.security, f"cluster '{config.alias}'")
    context = make_client_context(settings).ssl
    host, _, port = server.rpartition(":")
    try:
        plain = socket.create_connection((host.strip("[]"), int(port)), PATIENCE_SECONDS)
    except OSError as error:
        raise TransportError(_about(config, server, error.strerror or error)) from error
    with plain:
        try:
            with context.wrap_socket(plain, server_hostname=host.strip("[]")) as secured:
                shown = secured.getpeercert(binary_form=True) or b""
                version, suite = secured.version() or "", (secured.cipher() or ("",))[0]
        except OSError as error:
            cause = explain_handshake(error, has_own_key=settings.own_key() is not None)
            raise KafkaError(_about(config, server, cause)) from error
    try:
        certificate = x509.load_der_x509_certificate(shown)
        return ShownCertificate(
            certificate.subject.rfc4514_string(),
            certificate.issuer.rfc4514_string(),
            certificate.not_valid_after_utc,
            version,
            suite,
            is_name_checked=bool(settings[CHECKS_NAME]),
        )
    except ValueError as error:
        text = f"its certificate cannot be read: {error}"
        raise KafkaError(_about(config, server, text)) from error


def _about(config: ClientConfig, server: str, cause: object) -> str:
    return f"cluster '{config.alias}', broker {server}: {cause}"
