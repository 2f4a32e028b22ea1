"""The worker's certificate for the control link: made at every start, known to its tasks only.

Runs on: worker.
"""

from __future__ import annotations

import datetime
import hashlib
import ssl
import tempfile
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

# Tasks look at the fingerprint only: the clock of another machine must not matter.
VALIDITY = datetime.timedelta(days=3650)


class LinkIdentity(NamedTuple):
    """The listening side's TLS, and the fingerprint by which tasks know it."""

    context: ssl.SSLContext
    fingerprint: str


def make_identity() -> LinkIdentity:
    """A new key and its certificate; neither outlives this process."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sparkmirror control link")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALIDITY)
        .not_valid_after(now + VALIDITY)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    context = _context(pem + certificate.public_bytes(Encoding.PEM))
    fingerprint = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
    return LinkIdentity(context, fingerprint)


def _context(pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Sessions are never resumed, and an unread session ticket would turn a close into a reset.
    context.num_tickets = 0
    # Python's ssl takes keys from files only. The folder is ours alone, and gone in a moment.
    with tempfile.TemporaryDirectory(prefix="sparkmirror-link-") as folder:
        path = Path(folder) / "link.pem"
        path.touch(mode=0o600)
        path.write_bytes(pem)
        context.load_cert_chain(path)
    return context
