"""One real broker that listens in every way: TLS, client certificates, logins.

The fixture `secure_cluster` (conftest.py) is shared by the session, so every test works on topics
and users' rights of its own. Its plain listener is for the tests' own clients (`tests.clusters`).

    SSL             TLS                      EXPIRED, WRONG_NAME   the same with bad certificates
    MTLS            TLS, wants a client certificate
    SASL_PLAINTEXT  SASL_SSL                 PLAIN, SCRAM-SHA-256 and -512, OAUTHBEARER
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from sparkmirror.embedded import KafkaCluster
from tests.certificates import PASSWORD, Certificates
from tests.clusters import start_cluster

LISTENERS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "EXPIRED": "SSL",
    "WRONG_NAME": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
}
SASL_LISTENERS = ("SASL_PLAINTEXT", "SASL_SSL")
USER, USER_PASSWORD = "alice", "alice-secret"
SCRAM = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_MODULES = "org.apache.kafka.common.security"
# What the broker knows of each mechanism.
SERVER_LOGINS = {
    "PLAIN": f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{USER_PASSWORD}";',
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule required;",
    "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
}
_USER_WORDS = f'username="{USER}" password="{USER_PASSWORD}"'
# What a client writes into sasl.jaas.config.
CLIENT_LOGINS = {
    "PLAIN": f"{_MODULES}.plain.PlainLoginModule required {_USER_WORDS};",
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule required {_USER_WORDS};",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule required {_USER_WORDS};",
    "OAUTHBEARER": (
        f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
        f'unsecuredLoginStringClaim_sub="{USER}";'
    ),
}


@dataclass(frozen=True)
class SecureCluster:
    """The cluster, its certificates, and the settings of clients that are let in."""

    kafka: KafkaCluster
    certificates: Certificates

    def client(self, listener: str, mechanism: str = "PLAIN", host: str = "") -> dict[str, str]:
        """Settings as users write them: PKCS12 stores, user alice."""
        servers = self.kafka.servers_of(listener)
        protocol = LISTENERS[listener]
        settings = {
            "bootstrap.servers": servers.replace("127.0.0.1", host) if host else servers,
            "security.protocol": protocol,
        }
        if protocol.endswith("SSL"):
            settings |= self.trust()
        if listener == "MTLS":
            settings |= self.own_key()
        if protocol.startswith("SASL_"):
            settings |= {"sasl.mechanism": mechanism, "sasl.jaas.config": CLIENT_LOGINS[mechanism]}
        return settings

    def trust(self) -> dict[str, str]:
        """The CA, as a PKCS12 store that keytool made."""
        return {
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.certificates.trust_pkcs12),
            "ssl.truststore.password": PASSWORD,
        }

    def own_key(self, name: str = "client") -> dict[str, str]:
        """A client certificate, as a PKCS12 store."""
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.certificates.pkcs12(name)),
            "ssl.keystore.password": PASSWORD,
        }


def broker_properties(
    certificates: Certificates, others: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Everything that the listeners need; a key for the `others`."""
    settings = {
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca_pem),
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(SERVER_LOGINS),
    }
    keys = {"ssl": "broker", "mtls": "broker", "sasl_ssl": "broker"}
    keys |= {"expired": "expired", "wrong_name": "wrong_name"}
    keys |= {name.lower(): "broker" for name in others or {}}
    for listener, name in keys.items():
        prefix = f"listener.name.{listener}.ssl.keystore"
        settings |= {f"{prefix}.type": "PEM", f"{prefix}.location": str(certificates.pem(name))}
    for listener in SASL_LISTENERS:
        for mechanism, login in SERVER_LOGINS.items():
            prefix = f"listener.name.{listener.lower()}.{mechanism.lower()}"
            settings[f"{prefix}.sasl.jaas.config"] = login
    return settings


@contextmanager
def start_secure_cluster(
    folder: Path,
    properties: Mapping[str, str] | None = None,
    listeners: Mapping[str, str] | None = None,
    **others: Any,
) -> Iterator[SecureCluster]:
    """The broker, with its users; `properties` and `listeners` go on top."""
    certificates = Certificates(folder)
    settings = {**broker_properties(certificates, listeners), **(properties or {})}
    all_listeners = {**LISTENERS, **(listeners or {})}
    with start_cluster("secure", properties=settings, listeners=all_listeners, **others) as kafka:
        add_scram_user(kafka, USER, USER_PASSWORD)
        yield SecureCluster(kafka, certificates)


def add_scram_user(cluster: KafkaCluster, user: str, password: str) -> None:
    """Tell the broker about a user, for both SCRAM mechanisms."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for mechanism in SCRAM.values():
        credential = ScramCredentialInfo(mechanism, 4096)
        change = UserScramCredentialUpsertion(user, credential, password.encode())
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(30.0)
