"""Key and trust stores: what keytool writes, what people do wrong with it, and damaged bytes."""

from __future__ import annotations

import hashlib
import struct

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.wire.tls import jks
from sparkmirror.wire.tls.key_stores import (
    BadStore,
    certificate_pem,
    pem_certificates,
    pem_own_key,
    read_own_key,
    read_trusted,
)
from tests.certificates import PASSWORD, Certificates, Issued, make_ca


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def trust_jks(certificates: Certificates) -> bytes:
    """As `keytool` of every Java still writes it on demand."""
    data = certificates.trust_jks.read_bytes()
    assert data.startswith(jks.MAGIC)
    return data


@pytest.fixture(scope="module")
def key_jks(certificates: Certificates) -> bytes:
    """A key with a password of its own."""
    return certificates.key_jks("client", key_password="key-password").read_bytes()


def is_key_of(pem: bytes, issued: Issued) -> bool:
    """Whether both are the same private key."""
    return pem.decode() == issued.key_pem()


def test_trust_store_in_javas_old_format(certificates: Certificates, trust_jks: bytes) -> None:
    assert read_trusted(trust_jks, "JKS", PASSWORD) == (certificates.ca.der,)


def test_trust_store_without_password_is_read_unchecked_as_in_java(
    certificates: Certificates, trust_jks: bytes
) -> None:
    changed = bytearray(trust_jks)
    changed[-1] ^= 1
    assert read_trusted(bytes(changed), "JKS", None) == (certificates.ca.der,)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "jks"])
def test_type_does_not_have_to_be_what_the_file_is(
    certificates: Certificates, trust_jks: bytes, kind: str
) -> None:
    newer = certificates.trust_pkcs12.read_bytes()
    assert read_trusted(trust_jks, kind, PASSWORD) == (certificates.ca.der,)
    assert read_trusted(newer, kind, PASSWORD) == (certificates.ca.der,)


def test_pkcs12_as_java_8_encrypted_it(certificates: Certificates) -> None:
    old = certificates.import_ca("old.p12", "PKCS12", PASSWORD, "-J-Dkeystore.pkcs12.legacy")
    assert read_trusted(old.read_bytes(), "PKCS12", PASSWORD) == (certificates.ca.der,)


def test_certificate_in_the_place_of_a_store_is_reported(certificates: Certificates) -> None:
    with pytest.raises(BadStore, match="is a certificate, not a store") as raised:
        read_trusted(certificates.ca.der, "JKS", PASSWORD)
    assert raised.value.about == "location"


def test_key_store_in_javas_old_format(certificates: Certificates, key_jks: bytes) -> None:
    own = read_own_key(key_jks, "JKS", PASSWORD, "key-password")
    assert is_key_of(own.key, certificates.client)
    assert own.chain == (certificates.client.der, certificates.ca.der)


def test_keys_first_certificate_is_trusted_as_in_java(
    certificates: Certificates, key_jks: bytes
) -> None:
    assert read_trusted(key_jks, "JKS", PASSWORD) == (certificates.client.der,)


def test_password_of_the_store_is_the_keys_unless_it_has_one(certificates: Certificates) -> None:
    data = certificates.key_jks("broker").read_bytes()
    assert is_key_of(read_own_key(data, "JKS", PASSWORD, None).key, certificates.broker)


def test_key_store_as_pkcs12_has_its_chain_in_order() -> None:
    middle = make_ca().issue("Middle CA", (), is_ca=True)
    leaf = middle.issue("leaf")
    assert middle.issuer is not None
    own = read_own_key(_pkcs12(leaf, middle, middle.issuer), "PKCS12", PASSWORD, None)
    assert own.chain == (leaf.der, middle.der, middle.issuer.der)


def _pkcs12(leaf: Issued, *others: Issued) -> bytes:
    # From the last to the first, to see that they are sorted.
    chain = [other.certificate for other in reversed(others)]
    protection = serialization.BestAvailableEncryption(PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(
        b"leaf", leaf.key, leaf.certificate, chain, protection
    )


# -- PEM -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("password", [None, "key-password"], ids=["plain", "encrypted"])
def test_pem_key_and_certificate_in_one_file(
    certificates: Certificates, password: str | None
) -> None:
    data = certificates.pem("client", password).read_bytes()
    own = read_own_key(data, "PEM", None, password)
    assert is_key_of(own.key, certificates.client)
    assert own.chain == (certificates.client.der,)


def test_pem_lines_may_be_joined_by_blanks(certificates: Certificates) -> None:
    key, chain = certificates.client.key_pem(), certificates.client.pem + certificates.ca.pem
    own = pem_own_key(key.replace("\n", " "), chain.replace("\n", " "), None)
    assert is_key_of(own.key, certificates.client)
    assert own.chain == (certificates.client.der, certificates.ca.der)
    assert own.pem().startswith(b"-----BEGIN CERTIFICATE-----\n")


def test_password_for_a_key_that_needs_none_does_no_harm(certificates: Certificates) -> None:
    key, chain = certificates.client.key_pem(), certificates.client.pem
    assert is_key_of(pem_own_key(key, chain, "needless").key, certificates.client)


def test_old_pem_forms_are_read(certificates: Certificates) -> None:
    for password in (None, "old"):
        protection: serialization.KeySerializationEncryption = (
            serialization.BestAvailableEncryption(b"old")
            if password
            else serialization.NoEncryption()
        )
        form = serialization.PrivateFormat.TraditionalOpenSSL
        key = certificates.client.key.private_bytes(serialization.Encoding.PEM, form, protection)
        own = pem_own_key(key.decode(), certificates.client.pem, password)
        assert is_key_of(own.key, certificates.client)


def test_certificates_survive_the_way_to_pem_and_back(certificates: Certificates) -> None:
    text = certificate_pem(certificates.ca.der).decode()
    assert pem_certificates("words before\n" + text) == (certificates.ca.der,)


# -- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind", "about", "reason"),
    [
        pytest.param(b"", "JKS", "location", "neither a JKS nor a PKCS12 store", id="empty"),
        pytest.param(b"PK\3\4", "JKS", "location", "neither a JKS nor a PKCS12", id="archive"),
        pytest.param(b"\xce" * 40, "JCEKS", "type", "only JKS, PKCS12, PEM", id="unknown type"),
        pytest.param(b"\xce" * 40, "JKS", "location", "JCEKS store", id="other Java format"),
        pytest.param(b"-----BEGIN CERT", "JKS", "type", "the file is PEM", id="PEM, type JKS"),
        pytest.param(jks.MAGIC, "PEM", "type", "the file is not PEM", id="JKS, type PEM"),
        pytest.param(b"\x30\x03abc", "PKCS12", "password", "the password is wrong", id="DER"),
        pytest.param(b"-----BEGIN X-----", "PEM", "location", "no certificate", id="PEM of none"),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----",
            "PEM",
            "location",
            "not base64",
            id="damaged PEM",
        ),
    ],
)
def test_what_is_no_store_is_reported(data: bytes, kind: str, about: str, reason: str) -> None:
    with pytest.raises(BadStore, match=reason) as raised:
        read_trusted(data, kind, PASSWORD)
    assert raised.value.about == about


@pytest.mark.parametrize("kind", ["jks", "pkcs12", "key jks"])
def test_wrong_password_is_reported_without_it(
    certificates: Certificates, trust_jks: bytes, key_jks: bytes, kind: str
) -> None:
    data = {"jks": trust_jks, "key jks": key_jks}.get(kind, certificates.trust_pkcs12.read_bytes())
    with pytest.raises(BadStore, match="the password is wrong") as raised:
        read_trusted(data, "JKS", "secret-word")
    assert raised.value.about == "password"
    assert "secret-word" not in str(raised.value)


@pytest.mark.parametrize("form", ["jks", "pem"])
def test_wrong_password_of_the_key_is_reported(
    certificates: Certificates, key_jks: bytes, form: str
) -> None:
    pem = certificates.pem("client", "key-password").read_bytes()
    data, kind = (key_jks, "JKS") if form == "jks" else (pem, "PEM")
    with pytest.raises(BadStore, match="cannot be decrypted") as raised:
        read_own_key(data, kind, PASSWORD if form == "jks" else None, "other")
    assert raised.value.about == "key password"


def test_missing_passwords_are_reported(certificates: Certificates, key_jks: bytes) -> None:
    pem = certificates.pem("client", "key-password").read_bytes()
    with pytest.raises(BadStore, match="encrypted, and no password"):
        read_own_key(pem, "PEM", None, None)
    with pytest.raises(BadStore, match="encrypted, and no password"):
        read_own_key(key_jks, "JKS", None, None)
    with pytest.raises(BadStore, match="needs a password"):
        read_trusted(certificates.trust_pkcs12.read_bytes(), "PKCS12", None)


@pytest.mark.parametrize("form", ["jks", "pkcs12", "pem"])
def test_trust_store_in_the_place_of_a_key_store_is_reported(
    certificates: Certificates, trust_jks: bytes, form: str
) -> None:
    data, kind = {
        "jks": (trust_jks, "JKS"),
        "pkcs12": (certificates.trust_pkcs12.read_bytes(), "PKCS12"),
        "pem": (certificates.ca.pem.encode(), "PEM"),
    }[form]
    with pytest.raises(BadStore, match="has no private key"):
        read_own_key(data, kind, PASSWORD, None)


# -- JKS, byte by byte ---------------------------------------------------------------------------


def store(*entries: bytes, version: int = 2, count: int | None = None) -> bytes:
    """A JKS file of these entries, with a correct digest."""
    head = jks.MAGIC + struct.pack(">II", version, len(entries) if count is None else count)
    body = head + b"".join(entries)
    salted = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(salted, usedforsecurity=False).digest()


def trusted_entry(certificate: bytes, version: int = 2) -> bytes:
    """One trusted certificate."""
    kind = struct.pack(">H5s", 5, b"X.509") if version > 1 else b""
    head = struct.pack(">IH2sQ", 2, 2, b"ca", 0)
    return head + kind + struct.pack(">I", len(certificate)) + certificate


@pytest.mark.parametrize("version", [1, 2])
def test_both_versions_of_jks_are_read(version: int) -> None:
    data = store(trusted_entry(b"one", version), trusted_entry(b"two", version), version=version)
    assert jks.read(data, PASSWORD).trusted == (b"one", b"two")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(store(version=3), "version is 3", id="version"),
        pytest.param(store(b"\0\0\0\7\0\0" + bytes(8)), "has the tag 7", id="tag"),
        pytest.param(store(trusted_entry(b"x"), count=2), "ends in the middle", id="too few"),
        pytest.param(store(trusted_entry(b"x"), count=0), "bytes follow", id="too many"),
        pytest.param(store(count=0xFFFFFFFF), "ends in the middle", id="endless"),
        pytest.param(
            store(struct.pack(">IHQII", 1, 0, 0, 0, 0xFFFFFFFF)),
            "longer than the file",
            id="endless chain",
        ),
    ],
)
def test_damaged_jks_is_reported(data: bytes, reason: str) -> None:
    with pytest.raises(BadStore, match=reason):
        read_trusted(data, "JKS", PASSWORD)


@given(st.binary(max_size=200))
def test_any_bytes_behind_the_magic_are_read_or_refused(data: bytes) -> None:
    try:
        found = read_trusted(jks.MAGIC + data, "JKS", None)
    except BadStore:
        return
    assert found


@given(st.binary(max_size=200))
def test_any_protected_key_is_decrypted_or_refused(data: bytes) -> None:
    with pytest.raises((jks.DamagedStore, jks.WrongPassword)):
        jks.decrypt_key(data, PASSWORD)


def test_every_cut_of_a_real_store_is_refused(key_jks: bytes) -> None:
    for size in range(len(key_jks)):
        with pytest.raises(BadStore):
            read_own_key(key_jks[:size], "JKS", PASSWORD, "key-password")
