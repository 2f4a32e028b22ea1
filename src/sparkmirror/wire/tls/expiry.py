"""When the certificates that settings name expire.

Runs on: worker; reads files.
"""

from __future__ import annotations

from collections.abc import Iterator

from cryptography import x509

from sparkmirror.wire.tls.tls_context import TlsSettings

KEYSTORE, TRUSTSTORE = "keystore", "truststore"


def expiry_times(settings: TlsSettings) -> Iterator[tuple[str, float]]:
    """(store, seconds since 1970) of what is set.

    Of our own chain the certificate that expires first. Of those that we trust the one that expires
    last: stores keep old ones beside their successors.

    Raises:
        ConfigError: a store cannot be read.
    """
    own = settings.own_key()
    if own is not None:
        yield KEYSTORE, min(map(_end, own.chain))
    trusted = settings.trusted()
    if trusted:
        yield TRUSTSTORE, max(map(_end, trusted))


def _end(der: bytes) -> float:
    return x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp()
