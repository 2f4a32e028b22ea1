"""A broker with every kind of login, with its token server and its KDC.

    source       PLAIN, as users write it for a managed source: TLSv1.2 and a JKS store
    scram256     user and password                        scram512   the same
    unsecured    a token that nobody signed               tokens     of a server, with its keys
    kerberos     tickets of a real KDC
    short        SCRAM-SHA-512 in sessions that last some seconds
    iam          AWS_MSK_IAM, at a stand-in that checks signatures

All of them are SASL_SSL; the first four are those of `tests.secure_cluster`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.config.clients import ClientConfig, parse_client
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.class_archive import class_archive_args
from sparkmirror.embedded.java import QUICK_JVM_ARGS
from sparkmirror.embedded.ports import HOST
from tests.kafka.iam_line import IamLine
from tests.kerberos import REALM, Kdc
from tests.secure_cluster import (
    CLIENT_LOGINS,
    USER,
    USER_PASSWORD,
    SecureCluster,
    start_secure_cluster,
)
from tests.token_server import AUDIENCE, CLIENT, ISSUER, SECRET, TokenServer
from tests.wire.fake_login import Door
from tests.wire.fake_msk import Msk

SESSION_MS = 2500
ALIASES = ("source", "scram256", "scram512", "unsecured", "tokens", "kerberos", "iam", "short")
_MECHANISMS = {
    "source": "PLAIN",
    "scram256": "SCRAM-SHA-256",
    "scram512": "SCRAM-SHA-512",
    "unsecured": "OAUTHBEARER",
    "tokens": "OAUTHBEARER",
    "kerberos": "GSSAPI",
    "iam": "AWS_MSK_IAM",
    "short": "SCRAM-SHA-512",
}
_LISTENERS = dict.fromkeys(("TOKENS", "KERBEROS", "SHORT"), "SASL_SSL") | {"IAM": "PLAINTEXT"}
_AWS = "software.amazon.msk.auth.iam."
_AWS_KEY, _AWS_SECRET = "AKMIRROR", "aws/+secret"
TOKEN_PASSWORD = "token-secret"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required"


@dataclass(frozen=True)
class LoginCluster:
    """The broker, and the settings with which clients are let in."""

    secure: SecureCluster
    tokens: TokenServer
    kdc: Kdc
    alice: Path
    iam: IamLine

    @property
    def kafka(self) -> KafkaCluster:
        return self.secure.kafka

    def client(self, alias: str) -> dict[str, str]:
        """As users write them."""
        listener = alias.upper() if alias.upper() in _LISTENERS else "SASL_SSL"
        settings = {
            "bootstrap.servers": self._servers(listener),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": _MECHANISMS[alias],
            **self.secure.trust(),
        }
        return settings | self._login(alias)

    def _servers(self, listener: str) -> str:
        return f"{HOST}:{self.iam.port}" if listener == "IAM" else self.kafka.servers_of(listener)

    def _managed(self) -> dict[str, str]:
        line = f'{_PLAIN} required username="token" password="{TOKEN_PASSWORD}";'
        return {
            "ssl.protocol": "TLSv1.2",
            "ssl.truststore.type": "JKS",
            "ssl.truststore.location": str(self.secure.certificates.trust_jks),
            "sasl.jaas.config": line,
        }

    def config(self, alias: str, **changes: str) -> ClientConfig:
        """The same, read; `changes` have underscores for dots."""
        settings = self.client(alias)
        settings |= {name.replace("_", "."): value for name, value in changes.items()}
        findings = Findings()
        config = parse_client(Settings(settings, findings), alias)
        findings.raise_errors()
        return config

    def _login(self, alias: str) -> dict[str, str]:
        if alias == "source":
            return self._managed()
        if alias == "iam":
            return {
                "sasl.jaas.config": f"{_AWS}IAMLoginModule required;",
                "sasl.client.callback.handler.class": f"{_AWS}IAMClientCallbackHandler",
            }
        if alias == "tokens":
            line = f'{_OAUTH}.OAuthBearerLoginModule required clientId="{CLIENT}" '
            return {
                "sasl.jaas.config": f'{line}clientSecret="{SECRET}" scope="kafka";',
                "sasl.login.callback.handler.class": f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
                "sasl.oauthbearer.token.endpoint.url": self.tokens.token_url,
            }
        if alias == "kerberos":
            line = f'{_KERBEROS} useKeyTab=true storeKey=true keyTab="{self.alice}" '
            return {
                "sasl.jaas.config": f'{line}principal="alice@{REALM}";',
                "sasl.kerberos.service.name": "kafka",
            }
        return {"sasl.jaas.config": CLIENT_LOGINS[_MECHANISMS[alias]]}


@contextmanager
def start_login_cluster(folder: Path) -> Iterator[LoginCluster]:
    """Everything; this process and its children have the KDC and the AWS keys while it runs."""
    for name in ("kdc", "certificates"):
        (folder / name).mkdir()
    door = Door(_MECHANISMS["iam"], Msk({_AWS_KEY: _AWS_SECRET}).judge)
    with (
        TokenServer() as tokens,
        Kdc(folder / "kdc") as kdc,
        IamLine(door) as iam,
        _environment(kdc),
    ):
        keytab = kdc.add(f"kafka/{HOST}")
        alice = kdc.add("alice")
        with start_secure_cluster(
            folder / "certificates",
            _properties(tokens, keytab),
            _LISTENERS,
            jvm_args=_jvm_args(tokens, kdc),
            advertised_ports={"IAM": iam.port},
        ) as secure:
            port = secure.kafka.brokers[0].other_ports["IAM"]
            iam.lead_to(port, secure.certificates.pem("broker"))
            yield LoginCluster(secure, tokens, kdc, alice, iam)
        assert door.violations == []


@contextmanager
def _environment(kdc: Kdc) -> Iterator[None]:
    changes = {
        "KRB5_CONFIG": str(kdc.config),
        "AWS_ACCESS_KEY_ID": _AWS_KEY,
        "AWS_SECRET_ACCESS_KEY": _AWS_SECRET,
        "AWS_REGION": "eu-central-1",
    }
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def _jvm_args(tokens: TokenServer, kdc: Kdc) -> tuple[str, ...]:
    return (
        *QUICK_JVM_ARGS,
        *class_archive_args(),
        f"-Djava.security.krb5.conf={kdc.config}",
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.keys_url}",
    )


def _properties(tokens: TokenServer, keytab: Path) -> dict[str, str]:
    name = "listener.name"
    server_login = (
        f'{_KERBEROS} useKeyTab=true storeKey=true keyTab="{keytab}" '
        f'principal="kafka/{HOST}@{REALM}";'
    )
    validator = f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
    users = f'user_token="{TOKEN_PASSWORD}" user_{USER}="{USER_PASSWORD}"'
    return {
        f"{name}.sasl_ssl.plain.sasl.jaas.config": f"{_PLAIN} required {users};",
        f"{name}.kerberos.sasl.enabled.mechanisms": "GSSAPI",
        f"{name}.kerberos.gssapi.sasl.jaas.config": server_login,
        f"{name}.kerberos.sasl.kerberos.service.name": "kafka",
        f"{name}.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{name}.tokens.oauthbearer.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
        f"{name}.tokens.oauthbearer.sasl.server.callback.handler.class": validator,
        f"{name}.tokens.sasl.oauthbearer.jwks.endpoint.url": tokens.keys_url,
        f"{name}.tokens.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{name}.tokens.sasl.oauthbearer.expected.issuer": ISSUER,
        f"{name}.short.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"{name}.short.scram-sha-512.sasl.jaas.config": _SCRAM,
        f"{name}.short.scram-sha-512.connections.max.reauth.ms": str(SESSION_MS),
    }
