"""PKCS12 trust stores: Java and this program trust the same certificates of the same files."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.spark import machine
from sparkmirror.wire.tls.der import BadDer, element
from sparkmirror.wire.tls.key_stores import BadStore, read_own_key, read_trusted
from sparkmirror.wire.tls.pkcs12_bags import trusted_certificates
from sparkmirror.wire.tls.pkcs12_ciphers import UnknownCipher
from tests.certificates import PASSWORD, Certificates, Issued, _keytool

LEGACY = "-J-Dkeystore.pkcs12.legacy"
PLAIN_CERTIFICATES = "-J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("trust"))


@pytest.fixture(scope="module")
def stores(certificates: Certificates) -> dict[str, Path]:
    """Stores by what is in them, as keytool and others write them."""
    folder = certificates.folder
    chain = certificates.pkcs12("client")
    unmarked = certificates.write("unmarked.p12", _certificates_only(certificates))
    return {
        "trusted": certificates.trust_pkcs12,
        "trusted, as Java 8 wrote it": certificates.import_ca("8.p12", "PKCS12", PASSWORD, LEGACY),
        "trusted, in the clear": certificates.import_ca(
            "plain.p12", "PKCS12", PASSWORD, PLAIN_CERTIFICATES
        ),
        "a key and its chain": chain,
        "a key and its chain, by keytool": _copied(chain, folder / "by-keytool.p12"),
        "a key, its chain, another CA": _with_ca(certificates, folder / "mixed.p12"),
        "a key, its chain, its CA": _with_ca(certificates, folder / "both.p12", own=True),
        "two keys": _copied(
            certificates.pkcs12("stranger"), _copied(chain, folder / "two.p12"), "other"
        ),
        "a key, as Java 8 wrote it": _copied(chain, folder / "key8.p12", "client", LEGACY),
        "unmarked certificates": unmarked,
    }


def _copied(source: Path, target: Path, alias: str = "client", *options: str) -> Path:
    words = ("-srckeystore", source, "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD)
    into = ("-destkeystore", target, "-deststoretype", "PKCS12", "-deststorepass", PASSWORD)
    names = ("-srcalias", "client", "-destalias", alias)
    _keytool("-importkeystore", "-noprompt", *words, *into, *names, *options)
    return target


def _with_ca(certificates: Certificates, target: Path, *, own: bool = False) -> Path:
    _copied(certificates.pkcs12("client"), target)
    ca = certificates.ca if own else certificates.other_ca
    file = certificates.write("added.pem", ca.pem)
    store = ("-keystore", target, "-storetype", "PKCS12", "-storepass", PASSWORD)
    _keytool("-importcert", "-noprompt", "-alias", "added", "-file", file, *store)
    return target


def _certificates_only(certificates: Certificates) -> bytes:
    """As `openssl pkcs12 -export -nokeys` makes it."""
    protection = serialization.BestAvailableEncryption(PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(
        None, None, None, [certificates.ca.certificate], protection
    )


@pytest.fixture(scope="module")
def trusted_by_java(stores: dict[str, Path]) -> dict[str, set[str]]:
    program = Path(__file__).with_name("TrustedBy.java")
    command = [str(machine.java_program()), str(program), PASSWORD, *map(str, stores.values())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
    return {name: set(lines[str(path)].split()) for name, path in stores.items()}


def ours(path: Path) -> set[str]:
    try:
        found = read_trusted(path.read_bytes(), "PKCS12", PASSWORD)
    except BadStore:
        return set()
    return {hashlib.sha256(each).hexdigest() for each in found}


def test_the_same_certificates_are_trusted_as_by_java(
    stores: dict[str, Path], trusted_by_java: dict[str, set[str]]
) -> None:
    assert {name: ours(path) for name, path in stores.items()} == trusted_by_java


@pytest.mark.parametrize(
    ("store", "names"),
    [
        ("trusted", {"ca"}),
        ("trusted, as Java 8 wrote it", {"ca"}),
        ("trusted, in the clear", {"ca"}),
        ("a key and its chain", {"client"}),
        ("a key and its chain, by keytool", {"client"}),
        ("a key, its chain, another CA", {"client", "other_ca"}),
        ("a key, its chain, its CA", {"client", "ca"}),
        ("two keys", {"client", "stranger"}),
        ("a key, as Java 8 wrote it", {"client"}),
        ("unmarked certificates", set()),
    ],
)
def test_what_is_trusted(
    certificates: Certificates, stores: dict[str, Path], store: str, names: set[str]
) -> None:
    issued: dict[str, Issued] = {name: getattr(certificates, name) for name in names}
    assert ours(stores[store]) == {hashlib.sha256(each.der).hexdigest() for each in issued.values()}


def test_the_chain_of_a_key_is_still_sent(
    certificates: Certificates, stores: dict[str, Path]
) -> None:
    data = stores["a key and its chain"].read_bytes()
    own = read_own_key(data, "PKCS12", PASSWORD, None)
    assert own.chain == (certificates.client.der, certificates.ca.der)


def test_unmarked_certificates_are_reported_with_the_remedy(stores: dict[str, Path]) -> None:
    data = stores["unmarked certificates"].read_bytes()
    with pytest.raises(BadStore, match="none is marked as trusted") as raised:
        read_trusted(data, "PKCS12", PASSWORD)
    assert "keytool -importcert" in raised.value.remedy


@given(st.data())
def test_damaged_bytes_are_refused_in_our_words(data: st.DataObject) -> None:
    store = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        store[data.draw(st.integers(0, len(store) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BadDer, UnknownCipher):
        trusted_certificates(bytes(store[: data.draw(st.integers(0, len(store)))]), PASSWORD)


def _small_store() -> bytes:
    """Few rounds of hashing, so that many can be read."""
    protection = (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(1)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .build(PASSWORD.encode())
    )
    issued = Certificates(Path()).client
    return pkcs12.serialize_key_and_certificates(
        b"a", issued.key, issued.certificate, [Certificates(Path()).ca.certificate], protection
    )


WHOLE = _small_store()


@pytest.mark.parametrize(
    ("data", "name"),
    [("06092a864886f70d010701", "1.2.840.113549.1.7.1"), ("0603550403", "2.5.4.3")],
)
def test_names_of_objects(data: str, name: str) -> None:
    assert element(bytes.fromhex(data)).name() == name
