"""Names that we have for ourselves, whatever the files with them hold."""

from __future__ import annotations

import base64

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sparkmirror.config.clients import ClientConfig
from sparkmirror.wire.principal import principal_of


def test_certificate_that_cannot_be_read_gives_no_name() -> None:
    key = ec.derive_private_key(5, ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    label = "CERTIFICATE"
    body = base64.b64encode(b"no certificate").decode()
    settings = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key.decode(),
        "ssl.keystore.certificate.chain": f"-----BEGIN {label}-----{body}-----END {label}-----",
    }
    config = ClientConfig("a", ("h:9092",), security=settings)
    assert principal_of(config) == "User:<of the certificate>"
