"""Keys and certificates from files of Java programs: PKCS12, JKS and PEM (KIP-651).

Runs on: executor and worker. Java finds out by content whether a file is JKS or PKCS12, whatever
its name and type are (keytool writes PKCS12 into *.jks since Java 9), and so does this. What cannot
be read raises `BadStore`, without the password. JKS itself is in jks.py.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import Certificate, load_der_x509_certificate

from sparkmirror.config.config_def import BadValue
from sparkmirror.wire.tls import jks
from sparkmirror.wire.tls.der import BadDer
from sparkmirror.wire.tls.pkcs12_bags import trusted_certificates
from sparkmirror.wire.tls.pkcs12_ciphers import UnknownCipher

PEM = "PEM"
STORE_TYPES = ("JKS", "PKCS12", PEM)
LOCATION, PASSWORD, KEY_PASSWORD, TYPE = "location", "password", "key password", "type"

_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_DER_SEQUENCE = b"\x30"
# The text up to the next dashes, whatever they begin or end.
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]++)-----((?:[^-]|-(?!----))*+)-----END \1-----")
_CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE")
_TO_TRUST = (
    "add one with keytool -importcert, or with openssl pkcs12 -export -nokeys "
    "-jdktrust anyExtendedKeyUsage"
)
_TO_PKCS12 = "convert it with keytool -importkeystore -deststoretype PKCS12"


class BadStore(BadValue):
    """A store that cannot be read; `about` names the setting to look at."""

    def __init__(self, reason: str, remedy: str = "", about: str = LOCATION) -> None:
        super().__init__(reason, remedy)
        self.args = (reason, remedy, about)
        self.about = about


@dataclass(frozen=True, slots=True, repr=False)
class OwnKey:
    """A private key, and its certificates in DER, its own first."""

    key: bytes
    chain: tuple[bytes, ...]

    def pem(self) -> bytes:
        """Certificates and the key, unencrypted, as OpenSSL reads them."""
        return b"".join(map(certificate_pem, self.chain)) + self.key


def certificate_pem(der: bytes) -> bytes:
    """One certificate in PEM."""
    return _block("CERTIFICATE", der)


def read_trusted(data: bytes, kind: str, password: str | None) -> tuple[bytes, ...]:
    """The certificates, in DER, that a trust store vouches for.

    Those are its trusted entries and, as in Java, the first certificate of every key. A certificate
    that only completes the chain of a key is none of them.

    Raises:
        BadStore: wrong password, damaged, of another type, empty.
    """
    kind = _kind(data, kind)
    if kind == PEM:
        return pem_certificates(_text(data))
    if kind == "JKS":
        store = _read_jks(data, password)
        found = (*store.trusted, *(entry.chain[0] for entry in store.keys if entry.chain))
    else:
        found = _pkcs12_trusted(data, password)
    if not found:
        raise BadStore("has no certificate to trust", _TO_TRUST)
    return found


def read_own_key(data: bytes, kind: str, password: str | None, key_password: str | None) -> OwnKey:
    """The first private key of a key store, with its certificates; raises BadStore."""
    kind = _kind(data, kind)
    if kind == PEM:
        text = _text(data)
        return pem_own_key(text, text, key_password)
    if kind == "JKS":
        return _jks_own_key(data, password, key_password or password)
    content = _load_pkcs12(data, password)
    if content.key is None or content.cert is None:
        raise _no_key()
    others = [each.certificate for each in content.additional_certs]
    chain = _chain(content.cert.certificate, others)
    return OwnKey(_key_pem(content.key), tuple(map(_der, chain)))


def pem_certificates(text: str) -> tuple[bytes, ...]:
    """Every certificate in PEM text, in DER; lines may be joined by spaces, as in properties."""
    blocks = _PEM_BLOCK.findall(text)
    found = tuple(_decode(body) for label, body in blocks if label in _CERTIFICATES)
    if not found:
        raise BadStore("has no certificate in PEM", "it starts with -----BEGIN CERTIFICATE-----")
    return found


def pem_own_key(key: str, chain: str, key_password: str | None) -> OwnKey:
    """A private key and its certificates, each in PEM text; both may be the same text."""
    blocks = [(label, body) for label, body in _PEM_BLOCK.findall(key) if "PRIVATE KEY" in label]
    if not blocks:
        raise BadStore("has no private key in PEM", "it starts with -----BEGIN PRIVATE KEY-----")
    label, body = blocks[0]
    # Old encrypted keys have headers above the base64 text.
    pem = f"-----BEGIN {label}-----{body}-----END {label}-----\n".encode()
    return OwnKey(
        _load_key(pem if ":" in body else _block(label, _decode(body)), key_password),
        pem_certificates(chain),
    )


def _kind(data: bytes, kind: str) -> str:
    """What the bytes are; `kind` is from the settings."""
    if kind.upper() not in STORE_TYPES:
        known = ", ".join(STORE_TYPES)
        raise BadStore(f"only {known} can be read, not {kind}", _TO_PKCS12, about=TYPE)
    looks_pem = b"-----BEGIN " in data
    if kind.upper() == PEM or looks_pem:
        if not (looks_pem and kind.upper() == PEM):
            found = PEM if looks_pem else "not PEM"
            remedy = "set the type to what the file is"
            raise BadStore(f"the type is {kind}, but the file is {found}", remedy, about=TYPE)
        return PEM
    if data.startswith(jks.MAGIC):
        return "JKS"
    if data.startswith(_JCEKS_MAGIC):
        raise BadStore("is a JCEKS store, which cannot be read", _TO_PKCS12)
    if not data.startswith(_DER_SEQUENCE):
        raise BadStore("is neither a JKS nor a PKCS12 store", "check that it is the right file")
    return "PKCS12"


def _text(data: bytes) -> str:
    return data.decode("ascii", "replace")


# -- PEM -----------------------------------------------------------------------------------------


def _block(label: str, der: bytes) -> bytes:
    body = base64.encodebytes(der)
    return b"-----BEGIN %s-----\n%s-----END %s-----\n" % (label.encode(), body, label.encode())


def _decode(body: str) -> bytes:
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except ValueError as error:  # binascii's is one, as is that about what is not ASCII
        raise BadStore("a PEM block is not base64", "copy the file again") from error


def _load_key(pem: bytes, password: str | None) -> bytes:
    secret = _encoded(password) if password else None
    try:
        try:
            key = serialization.load_pem_private_key(pem, secret)
        except TypeError:  # a password is missing, or there is one too many
            key = serialization.load_pem_private_key(pem, None)
    except TypeError as error:
        reason = "the private key is encrypted, and no password is given"
        raise BadStore(reason, "set ssl.key.password", about=KEY_PASSWORD) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _bad_key() from error
    return _key_pem(key)


def _bad_key() -> BadStore:
    reason = "the private key cannot be decrypted or is damaged"
    return BadStore(reason, "check ssl.key.password", about=KEY_PASSWORD)


def _key_pem(key: object) -> bytes:
    assert hasattr(key, "private_bytes")
    return bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


# -- JKS -----------------------------------------------------------------------------------------


def _read_jks(data: bytes, password: str | None) -> jks.Store:
    try:
        return jks.read(data, password)
    except jks.WrongPassword as error:
        raise _wrong_password() from error
    except jks.DamagedStore as error:
        raise BadStore(f"is a damaged JKS store: {error}", "make it again with keytool") from error


def _jks_own_key(data: bytes, password: str | None, key_password: str | None) -> OwnKey:
    entries = _read_jks(data, password).keys
    if not entries:
        raise _no_key()
    if key_password is None:
        reason = "the private key is encrypted, and no password is given"
        raise BadStore(reason, "set ssl.keystore.password", about=PASSWORD)
    try:
        der = jks.decrypt_key(entries[0].protected, key_password)
        key = serialization.load_der_private_key(der, None)
    except (
        jks.WrongPassword,
        jks.DamagedStore,
        ValueError,
        TypeError,
        UnsupportedAlgorithm,
    ) as error:
        raise _bad_key() from error
    return OwnKey(_key_pem(key), entries[0].chain)


# -- PKCS12 --------------------------------------------------------------------------------------


def _pkcs12_trusted(data: bytes, password: str | None) -> tuple[bytes, ...]:
    content = _load_pkcs12(data, password)
    try:
        found = trusted_certificates(data, password)
    except UnknownCipher as error:
        raise BadStore(f"is encrypted in a way that cannot be read: {error}", _TO_PKCS12) from error
    except BadDer as error:
        raise BadStore(f"cannot be read: {error}", _TO_PKCS12) from error
    if not found and content.additional_certs:
        reason = "has certificates, but none is marked as trusted, so Java trusts none"
        raise BadStore(reason, _TO_TRUST)
    return found


def _load_pkcs12(data: bytes, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(data, _encoded(password) if password is not None else None)
    except UnsupportedAlgorithm as error:
        raise BadStore(f"is encrypted in a way that cannot be read: {error}", _TO_PKCS12) from error
    except (ValueError, TypeError) as error:
        if _is_certificate(data):
            remedy = "put it into one with keytool -importcert, or use PEM and the type PEM"
            raise BadStore("is a certificate, not a store", remedy) from error
        if password is None:
            raise BadStore("needs a password", "set it", about=PASSWORD) from error
        raise _wrong_password() from error


def _is_certificate(data: bytes) -> bool:
    try:
        load_der_x509_certificate(data)
    except ValueError:
        return False
    return True


def _encoded(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")  # a wrong one, not a bug


def _wrong_password() -> BadStore:
    reason = "the password is wrong, or the file is damaged"
    return BadStore(reason, "check it with keytool -list", about=PASSWORD)


def _no_key() -> BadStore:
    reason = "has no private key: it looks like a trust store"
    return BadStore(reason, "name the file with the client's own key")


def _chain(own: Certificate, others: Iterable[Certificate]) -> list[Certificate]:
    """The certificate and those that vouch for it, in order: brokers do not sort them."""
    issuers = {each.subject: each for each in others}
    chain = [own]
    while chain[-1].issuer in issuers and chain[-1].issuer != chain[-1].subject:
        chain.append(issuers.pop(chain[-1].issuer))
    return chain


def _der(certificate: Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)
