"""What people bring to log in: JAAS settings and key stores."""

from __future__ import annotations

import datetime
import functools
import hashlib
from collections.abc import Iterator

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.security.jaas import parse_jaas
from sparkmirror.wire.tls import jks
from sparkmirror.wire.tls.key_stores import STORE_TYPES, BadStore, read_own_key, read_trusted
from tests.fuzz.target import Choices, Target

PASSWORD = "changeit"
_AT = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


# -- JAAS -----------------------------------------------------------------------------------------


def run_jaas(data: bytes) -> None:
    """A value of sasl.jaas.config: its secrets are in no error."""
    text = data.decode(errors="replace")
    try:
        module = parse_jaas(text)
    except BadValue as error:
        assert "hunter2" not in f"{error.reason}{error.remedy}"  # noqa: PT017
        return
    assert all(isinstance(each, str) for pair in module.options.items() for each in pair)
    assert "hunter2" not in repr(module)


def jaas_seeds() -> Iterator[bytes]:
    yield b'org.apache.kafka.common.security.plain.PlainLoginModule required u="a" p="hunter2";'
    yield b"X.Y requisite // comment\n /* more */ a='b\\'\\101\\n' c=\"\";"
    yield b"M optional useKeyTab=true a=-1.5 principal=hunter2@REALM;"
    yield b'\xc3\xa4 sufficient a="\\\\" ; N required;'


# -- key stores -----------------------------------------------------------------------------------


def run_stores(data: bytes) -> None:
    """A store: as it is, with a digest that fits, and the protected key of one."""
    choices = Choices(data)
    which, kind = choices.number() % 3, choices.pick(STORE_TYPES)
    content = choices.rest()
    if which == 1:
        content = _signed(jks.MAGIC + content)
    if which == 2:
        try:
            jks.decrypt_key(content, PASSWORD)
        except (jks.DamagedStore, jks.WrongPassword):
            return
    for password in (None, PASSWORD):
        try:
            assert all(isinstance(each, bytes) for each in read_trusted(content, kind, password))
        except BadStore as error:
            assert PASSWORD not in f"{error.reason}{error.remedy}"  # noqa: PT017
        try:
            read_own_key(content, kind, password, None)
        except BadStore as error:
            assert PASSWORD not in f"{error.reason}{error.remedy}"  # noqa: PT017


def _signed(body: bytes) -> bytes:
    secret = PASSWORD.encode("utf-16-be")
    return body + hashlib.sha1(secret + b"Mighty Aphrodite" + body, usedforsecurity=False).digest()


@functools.cache
def _key_and_certificate() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.derive_private_key(12345, ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(_AT)
        .not_valid_after(_AT + datetime.timedelta(days=36500))
        .sign(key, hashes.SHA256())
    )
    return key, certificate


def stores_seeds() -> Iterator[bytes]:
    key, certificate = _key_and_certificate()
    der = certificate.public_bytes(serialization.Encoding.DER)
    plain = key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    protected = _protected(plain)
    body = _jks_body(protected, der)
    # The fewest rounds: a fuzzer that waits for a key derivation gets nowhere.
    encryption = (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(1)
        .hmac_hash(hashes.SHA256())
        .build(PASSWORD.encode())
    )
    store = pkcs12.serialize_key_and_certificates(b"me", key, certificate, None, encryption)
    pem = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    yield b"\0\0" + _signed(body)
    yield b"\1\0" + body[len(jks.MAGIC) :]
    yield b"\2\0" + protected
    yield b"\0\1" + store
    yield b"\0\2" + pem


def _jks_body(protected: bytes, der: bytes) -> bytes:
    certificate = b"\0\5X.509" + len(der).to_bytes(4, "big") + der
    alias, created = b"\0\2me", bytes(8)
    own = (1).to_bytes(4, "big") + alias + created + len(protected).to_bytes(4, "big") + protected
    own += (1).to_bytes(4, "big") + certificate
    trusted = (2).to_bytes(4, "big") + alias + created + certificate
    return jks.MAGIC + (2).to_bytes(4, "big") + (2).to_bytes(4, "big") + own + trusted


def _protected(key: bytes) -> bytes:
    """As Sun's KeyProtector does it, with a salt of zeros."""
    secret, salt = PASSWORD.encode("utf-16-be"), bytes(20)
    stream, block = b"", salt
    while len(stream) < len(key):
        block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
        stream += block
    mixed = bytes(a ^ b for a, b in zip(key, stream, strict=False))
    octets = salt + mixed + hashlib.sha1(secret + key, usedforsecurity=False).digest()
    algorithm = _der(0x30, bytes.fromhex("060a2b060104012a021101010500"))
    return _der(0x30, algorithm + _der(0x04, octets))


def _der(tag: int, content: bytes) -> bytes:
    return bytes((tag, 0x82)) + len(content).to_bytes(2, "big") + content


TARGETS = (
    Target("jaas", run_jaas, jaas_seeds),
    Target("key-stores", run_stores, stores_seeds),
)
