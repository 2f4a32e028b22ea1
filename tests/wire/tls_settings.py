"""TLS settings for tests, and what a context trusts."""

from __future__ import annotations

import ssl
from typing import Any

from sparkmirror.wire.tls.tls_context import TlsSettings

SUITE_12, SUITE_13 = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def settings(**values: Any) -> TlsSettings:
    """ssl.x.y is written ssl_x_y."""
    named = {name.replace("_", "."): value for name, value in values.items()}
    return TlsSettings(named, "cluster 'a'")


def names_of(context: ssl.SSLContext) -> set[str]:
    authorities: list[dict[str, Any]] = context.get_ca_certs()
    return {dict(part[0] for part in ca["subject"])["commonName"] for ca in authorities}
