"""Every security key reaches the code that makes TLS contexts and logins, or is explained.

That code looks settings up by their names, in mappings that note it here.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sparkmirror.config.clients import parse_client
from sparkmirror.config.config_def import Key, KeySupport
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.keys.security_keys import SECURITY_KEYS, SECURITY_PROTOCOL
from sparkmirror.config.security.sasl import JWT_BEARER
from sparkmirror.config.worker.rest_security import TLS_KEYS, TlsUse, rest_tls
from sparkmirror.errors import MirrorError
from sparkmirror.wire.sasl.logins import LoginMaker
from sparkmirror.wire.security import Security
from sparkmirror.wire.tls.tls_context import TlsSettings, make_client_context, make_server_context
from tests.certificates import Certificates
from tests.every_key.recorder import RecordedMapping
from tests.every_key.values import other_value

SERVERS = {"bootstrap.servers": "h:1"}
PLAIN_JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
)
OAUTH_JAAS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'clientId="c" clientSecret="s";'
)
KERBEROS_JAAS = (
    "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
    'keyTab="/none" principal="me@REALM" serviceName="kafka";'
)
TOKENS = "https://tokens.example.com/token"


def tls_reads(folder: Path) -> Iterator[str]:
    """What contexts for clients and for listeners look up, with stores in files and in PEM."""
    made = Certificates(folder)
    stores = (
        {
            "ssl.keystore.location": str(made.pem("client")),
            "ssl.keystore.type": "PEM",
            "ssl.truststore.location": str(made.ca_pem),
            "ssl.truststore.type": "PEM",
        },
        {
            "ssl.keystore.key": made.client.key_pem(),
            "ssl.keystore.certificate.chain": made.client.pem,
            "ssl.keystore.type": "PEM",
            "ssl.truststore.certificates": made.ca.pem,
            "ssl.truststore.type": "PEM",
        },
    )
    for props in stores:
        values = SECURITY_KEYS.parse(props)
        recorded = RecordedMapping({name: values[name] for name in props})
        settings = TlsSettings(recorded, "here")
        make_client_context(settings)
        make_server_context(settings, "required")
        yield from recorded.read


def login_reads() -> Iterator[str]:
    """What the logins of every mechanism look up."""
    oauth = {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": OAUTH_JAAS}
    cases = (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN_JAAS},
        {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": KERBEROS_JAAS},
        {**oauth, "sasl.oauthbearer.token.endpoint.url": TOKENS},
        {
            **oauth,
            "sasl.oauthbearer.token.endpoint.url": TOKENS,
            "sasl.oauthbearer.jwt.retriever.class": JWT_BEARER,
            "sasl.oauthbearer.assertion.private.key.file": "/none",
        },
        {
            **oauth,
            "sasl.oauthbearer.token.endpoint.url": TOKENS,
            "sasl.oauthbearer.jwt.retriever.class": JWT_BEARER,
            "sasl.oauthbearer.assertion.file": "/none",
        },
    )
    for props in cases:
        recorded = RecordedMapping(SECURITY_KEYS.parse(props))
        maker = LoginMaker("a", recorded, lambda _: ssl.create_default_context())
        maker.files()
        for step in (maker.make, maker._form, maker._client_header):
            # There is no key file, and this machine may have no Kerberos; they were looked up.
            with suppress(MirrorError):
                step()
        yield from recorded.read


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    protocol = RecordedMapping({SECURITY_PROTOCOL.name: "PLAINTEXT"})
    Security("a", protocol)
    folder = tmp_path_factory.mktemp("tls")
    return frozenset((*protocol.read, *tls_reads(folder), *login_reads()))


HONOURED = [key for key in SECURITY_KEYS if key.status is KeySupport.HONOURED]
EXPLAINED = [key for key in SECURITY_KEYS if key.status is not KeySupport.HONOURED]


@pytest.mark.parametrize("key", HONOURED, ids=lambda key: key.name)
def test_a_security_key_reaches_contexts_or_logins(key: Key, reads: frozenset[str]) -> None:
    findings = Findings()
    value = other_value(key)
    client = parse_client(Settings({**SERVERS, key.name: value}, findings), "a")
    assert client.security[key.name] == key.parse(value)
    assert key.name in reads


@pytest.mark.parametrize("key", EXPLAINED, ids=lambda key: key.name)
def test_a_security_key_without_effect_is_told(key: Key) -> None:
    findings = Findings()
    parse_client(Settings({**SERVERS, key.name: other_value(key)}, findings), "a")
    about = [error.key for error in findings.errors]
    about += [text.split(": ")[0] for text in findings.warnings]
    assert key.name in about


@pytest.mark.parametrize("prefix", ["listeners.https.", "admin.listeners.https."])
@pytest.mark.parametrize("key", TLS_KEYS, ids=lambda key: key.name)
def test_a_tls_key_of_the_rest_api_reaches_its_contexts(
    key: Key, prefix: str, reads: frozenset[str]
) -> None:
    findings = Findings()
    name, value = f"{prefix}{key.name}", other_value(key)
    tls = rest_tls(Settings({name: value}, findings), TlsUse("listeners", prefix, is_https=False))
    if key.status is not KeySupport.HONOURED:
        assert [text.split(": ")[0] for text in findings.warnings] == [name]
    elif key.name == "ssl.client.auth":
        assert tls.client_auth == value
    else:
        assert tls.security[key.name] == key.parse(value)
        assert key.name in reads
