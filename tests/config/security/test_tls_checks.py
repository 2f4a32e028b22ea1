"""TLS settings that cannot work are reported before a file is opened."""

from __future__ import annotations

import pytest

from sparkmirror.config.clients import parse_client
from sparkmirror.config.findings import Findings, Settings

TLS = {"bootstrap.servers": "h:1", "security.protocol": "SSL"}
PEM_TEXT = "-----BEGIN CERTIFICATE-----"


def check(settings: dict[str, str]) -> Findings:
    findings = Findings()
    parse_client(Settings({**TLS, **settings}, findings), "A")
    return findings


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="defaults"),
        pytest.param({"ssl.protocol": "TLS"}, id="any version"),
        pytest.param({"ssl.protocol": "TLSv1.2"}, id="managed cluster"),
        pytest.param({"ssl.endpoint.identification.algorithm": "HTTPS"}, id="upper case"),
        pytest.param(
            {"ssl.truststore.location": "t.jks", "ssl.truststore.password": "p"}, id="users"
        ),
        pytest.param({"ssl.truststore.location": "t.jks"}, id="trust store without password"),
        pytest.param(
            {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": PEM_TEXT}, id="inline"
        ),
        pytest.param(
            {
                "ssl.keystore.type": "pem",
                "ssl.keystore.key": PEM_TEXT,
                "ssl.keystore.certificate.chain": PEM_TEXT,
                "ssl.key.password": "p",
            },
            id="inline key",
        ),
        pytest.param(
            {"ssl.keystore.location": "k.p12", "ssl.keystore.password": "p"}, id="client key"
        ),
        pytest.param({"ssl.keystore.location": "k.pem", "ssl.keystore.type": "PEM"}, id="PEM file"),
        pytest.param({"ssl.keystore.location": "", "ssl.truststore.location": ""}, id="templates"),
        pytest.param({"ssl.keystore.password": ""}, id="empty password"),
    ],
)
def test_what_kafka_accepts_is_accepted(settings: dict[str, str]) -> None:
    findings = check(settings)
    assert findings.errors == ()
    assert findings.warnings == ()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(
            {"ssl.protocol": "SSLv3"},
            "ssl.protocol=SSLv3: no TLS version that can be used; use one of TLSv1.2, TLSv1.3",
            id="protocol",
        ),
        pytest.param(
            {"ssl.enabled.protocols": "TLSv1,TLSv1.1"},
            "ssl.enabled.protocols=TLSv1,TLSv1.1: all are too old; use one of TLSv1.2, TLSv1.3",
            id="old versions",
        ),
        pytest.param(
            {"ssl.enabled.protocols": "TLS1.2"},
            "ssl.enabled.protocols=TLS1.2: no TLS version; use one of TLSv1.2, TLSv1.3",
            id="misspelt version",
        ),
        pytest.param(
            {"ssl.endpoint.identification.algorithm": "LDAPS"},
            "ssl.endpoint.identification.algorithm=LDAPS: not known; use https, or leave it empty "
            "to skip the name check",
            id="endpoint",
        ),
        pytest.param(
            {"ssl.truststore.password": "hunter2"},
            "ssl.truststore.password=[hidden]: it has no store; set ssl.truststore.location",
            id="password without store",
        ),
        pytest.param(
            {"ssl.keystore.location": "k.jks"},
            "ssl.keystore.location=k.jks: the key store needs a password; set "
            "ssl.keystore.password",
            id="key store without password",
        ),
        pytest.param(
            {"ssl.truststore.certificates": PEM_TEXT},
            "ssl.truststore.certificates=[hidden]: is PEM, but ssl.truststore.type is JKS; set "
            "ssl.truststore.type=PEM",
            id="inline without type",
        ),
        pytest.param(
            {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": PEM_TEXT,
                "ssl.truststore.location": "t.pem",
            },
            "ssl.truststore.location=t.pem: ssl.truststore.certificates is set too; set only one "
            "of them",
            id="inline and file",
        ),
        pytest.param(
            {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "t.pem",
                "ssl.truststore.password": "hunter2",
            },
            "ssl.truststore.password=[hidden]: a PEM store has no password; remove it; a key's "
            "password is ssl.key.password",
            id="PEM with password",
        ),
        pytest.param(
            {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": PEM_TEXT},
            "ssl.keystore.certificate.chain=[hidden]: there is no private key for it; set "
            "ssl.keystore.key",
            id="chain without key",
        ),
        pytest.param(
            {"ssl.keystore.type": "PEM", "ssl.keystore.key": PEM_TEXT},
            "ssl.keystore.key=[hidden]: has no certificate; set ssl.keystore.certificate.chain",
            id="key without chain",
        ),
    ],
)
def test_what_cannot_work_is_an_error(settings: dict[str, str], expected: str) -> None:
    assert [str(error) for error in check(settings).errors] == [expected]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(
            {"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"},
            "ssl.enabled.protocols: TLSv1.1 is too old and not offered",
            id="old version",
        ),
        pytest.param(
            {"ssl.endpoint.identification.algorithm": ""},
            "ssl.endpoint.identification.algorithm: is empty: anyone with a certificate of the CA "
            "can impersonate a broker",
            id="names are not checked",
        ),
        pytest.param(
            {"ssl.engine.factory.class": "com.example.Engines"},
            "ssl.engine.factory.class: has no effect: there is no JVM that could load it; use key "
            "and trust stores",
            id="Java class",
        ),
        pytest.param(
            {"ssl.provider": "BC"},
            "ssl.provider: has no effect: it names a part of the JVM, but TLS uses OpenSSL here",
            id="JVM",
        ),
    ],
)
def test_what_works_otherwise_is_a_warning(settings: dict[str, str], expected: str) -> None:
    findings = check(settings)
    assert findings.errors == ()
    assert findings.warnings == (expected,)


def test_nothing_is_checked_without_tls() -> None:
    findings = check({"security.protocol": "PLAINTEXT", "ssl.protocol": "SSLv3"})
    assert findings.errors == ()
