"""Certificates for tests: a CA of our own, what it signs, and stores as Java programs keep them.

Keys are elliptic curves, which are made at once. JKS stores are made by Java's `keytool`, as those
of users are.
"""

from __future__ import annotations

import ipaddress
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from sparkmirror.spark import machine

PASSWORD = "store-password"
LOCAL = ("localhost", "127.0.0.1")
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A private key and its certificate; `issuer` signed it, None if it did so itself."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuer: Issued | None = None

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> str:
        """The certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        """The key as PKCS8, encrypted if there is a password."""
        protection: serialization.KeySerializationEncryption = (
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption()
        )
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(serialization.Encoding.PEM, form, protection).decode()

    def pkcs12(self, password: str = PASSWORD) -> bytes:
        """Key and certificates, the CA's too."""
        chain = [self.issuer.certificate] if self.issuer else []
        protection = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"client", self.key, self.certificate, chain, protection
        )

    def issue(
        self,
        name: str,
        hosts: Sequence[str] = LOCAL,
        *,
        starts: timedelta = -_DAY,
        lasts: timedelta = 365 * _DAY,
        is_ca: bool = False,
    ) -> Issued:
        """A certificate signed by this one."""
        return _issue(self, name, hosts, (datetime.now(UTC) + starts, lasts), is_ca)


def make_ca(name: str = "Test CA") -> Issued:
    """A CA that nobody has heard of."""
    return _issue(None, name, (), (datetime.now(UTC) - _DAY, 3650 * _DAY), is_ca=True)


def _issue(
    issuer: Issued | None,
    name: str,
    hosts: Sequence[str],
    valid: tuple[datetime, timedelta],
    is_ca: bool,
) -> Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    starts, lasts = valid
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(starts)
        .not_valid_after(starts + lasts)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(
            x509.SubjectAlternativeName(list(map(_name, hosts))), critical=False
        )
    certificate = builder.sign(issuer.key if issuer else key, hashes.SHA256())
    return Issued(key, certificate, issuer)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


@dataclass(frozen=True)
class Certificates:
    """The usual set, in files of one folder; each file is made when somebody asks for it."""

    folder: Path

    # -- what there is ---------------------------------------------------------------------------

    @cached_property
    def ca(self) -> Issued:
        return make_ca()

    @cached_property
    def other_ca(self) -> Issued:
        return make_ca("Somebody else's CA")

    @cached_property
    def broker(self) -> Issued:
        return self.ca.issue("broker")

    @cached_property
    def client(self) -> Issued:
        return self.ca.issue("client", hosts=())

    @cached_property
    def expired(self) -> Issued:
        """A broker's, until yesterday."""
        return self.ca.issue("expired", starts=-10 * _DAY, lasts=9 * _DAY)

    @cached_property
    def wrong_name(self) -> Issued:
        """A broker's on another machine."""
        return self.ca.issue("elsewhere", ("elsewhere.example",))

    @cached_property
    def stranger(self) -> Issued:
        """A client's that brokers do not know."""
        return self.other_ca.issue("stranger", hosts=())

    # -- files -----------------------------------------------------------------------------------

    @cached_property
    def ca_pem(self) -> Path:
        return self.write("ca.pem", self.ca.pem)

    def pem(self, name: str, key_password: str | None = None) -> Path:
        """Key and certificate of `client`, `broker`, ... in one file, as Kafka reads PEM."""
        issued: Issued = getattr(self, name)
        return self.write(f"{name}.pem", issued.key_pem(key_password) + issued.pem)

    def pkcs12(self, name: str, password: str = PASSWORD) -> Path:
        """The same as PKCS12."""
        path = self.folder / f"{name}.p12"
        if not path.exists():
            issued: Issued = getattr(self, name)
            self.write(path.name, issued.pkcs12(password))
        return path

    @cached_property
    def trust_pkcs12(self) -> Path:
        """The CA, in a trust store that Java wrote."""
        return self.import_ca("truststore.p12", "PKCS12")

    @cached_property
    def trust_jks(self) -> Path:
        """The CA, in a trust store of Java's old format."""
        return self.import_ca("truststore.jks", "JKS")

    def import_ca(self, name: str, kind: str, password: str = PASSWORD, *options: str) -> Path:
        """What users do: `keytool -importcert` with the CA of their brokers."""
        path = self.folder / name
        arguments = ("-importcert", "-noprompt", "-alias", "ca", "-file", self.ca_pem)
        store = ("-keystore", path, "-storetype", kind, "-storepass", password)
        _keytool(*arguments, *store, *options)
        return path

    def key_jks(self, name: str, password: str = PASSWORD, key_password: str | None = None) -> Path:
        """Key and certificates of `client`, ... in Java's old format."""
        path = self.folder / f"{name}.jks"
        source = ("-srckeystore", self.pkcs12(name), "-srcstoretype", "PKCS12")
        target = ("-destkeystore", path, "-deststoretype", "JKS", "-deststorepass", password)
        words = ("-srcstorepass", PASSWORD, "-alias", "client")
        of_key = ("-destkeypass", key_password or password)
        _keytool("-importkeystore", "-noprompt", *source, *words, *target, *of_key)
        return path

    def write(self, name: str, content: str | bytes) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def _keytool(*arguments: str | Path) -> None:
    program = Path(machine.java_program()).with_name("keytool")
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
