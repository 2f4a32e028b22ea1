"""Which login settings fit together."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config.config_def import Secret
from sparkmirror.config.findings import Findings
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.config.security.sasl import MECHANISMS, SaslProblem, check_sasl, login_module

KAFKA = "org.apache.kafka.common.security."
WITH_PASSWORD = 'required username="u" password="hush";'
LINES = {
    "PLAIN": f"{KAFKA}plain.PlainLoginModule {WITH_PASSWORD}",
    "SCRAM-SHA-256": f"{KAFKA}scram.ScramLoginModule {WITH_PASSWORD}",
    "SCRAM-SHA-512": f"{KAFKA}scram.ScramLoginModule {WITH_PASSWORD}",
    "OAUTHBEARER": f"{KAFKA}oauthbearer.OAuthBearerLoginModule required clientId=c;",
    "GSSAPI": 'com.sun.security.auth.module.Krb5LoginModule required serviceName="kafka";',
    "AWS_MSK_IAM": "software.amazon.msk.auth.iam.IAMLoginModule required;",
}


def keys(mechanism: str, line: str | None = None, **others: Any) -> dict[str, Any]:
    """All security keys; those in `others` with underscores for dots."""
    values = {key.name: key.default for key in SECURITY_KEYS}
    values["security.protocol"] = "SASL_SSL"
    values["sasl.mechanism"] = mechanism
    text = LINES.get(mechanism) if line is None else line
    values["sasl.jaas.config"] = Secret(text) if text else None
    return values | {name.replace("_", "."): value for name, value in others.items()}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_has_a_login_module(mechanism: str) -> None:
    assert login_module(keys(mechanism)).name in LINES[mechanism]


FITTING = {
    "Scram's module for PLAIN": keys("PLAIN", LINES["SCRAM-SHA-256"]),
    "Plain's module for SCRAM": keys("SCRAM-SHA-512", LINES["PLAIN"]),
    "Databricks' names": keys("PLAIN", "kafkashaded." + LINES["PLAIN"]),
    "service name as a setting": keys(
        "GSSAPI", "com.sun.security.auth.module.Krb5LoginModule required;",
        sasl_kerberos_service_name="kafka",
    ),
    "MSK's handler": keys(
        "AWS_MSK_IAM",
        sasl_client_callback_handler_class="software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    ),
    "token server's handler": keys(
        "OAUTHBEARER",
        sasl_login_callback_handler_class=f"{KAFKA}oauthbearer.OAuthBearerLoginCallbackHandler",
    ),
}  # fmt: skip


@pytest.mark.parametrize("settings", FITTING.values(), ids=FITTING)
def test_it_fits(settings: dict[str, Any]) -> None:
    assert not login_module(settings).name.startswith("kafkashaded")


NOT_FITTING = {
    "no such mechanism": (keys("DIGEST-MD5", "x.Y required;"), "sasl.mechanism", "SCRAM-SHA-512"),
    "no line": (keys("PLAIN", ""), "sasl.jaas.config", "PlainLoginModule required"),
    "a line that cannot be read": (keys("PLAIN", "a.B required x"), "sasl.jaas.config", "name="),
    "another's module": (keys("PLAIN", LINES["GSSAPI"]), "sasl.jaas.config", "PlainLoginModule"),
    "unknown module": (keys("PLAIN", "my.Login required;"), "sasl.jaas.config", "ScramLoginModule"),
    "no password": (
        keys("PLAIN", f'{KAFKA}plain.PlainLoginModule required username="u";'),
        "sasl.jaas.config",
        "password=",
    ),
    "unknown handler": (
        keys("PLAIN", sasl_login_callback_handler_class="my.Handler"),
        "sasl.login.callback.handler.class",
        "remove it",
    ),
    "unknown retriever": (
        keys("OAUTHBEARER", sasl_oauthbearer_jwt_retriever_class="my.Retriever"),
        "sasl.oauthbearer.jwt.retriever.class",
        "JwtBearerJwtRetriever",
    ),
    "no URL": (
        keys("OAUTHBEARER", sasl_oauthbearer_token_endpoint_url="tokens.example.com/hush"),
        "sasl.oauthbearer.token.endpoint.url",
        "https://",
    ),
    "no service name": (
        keys("GSSAPI", "com.sun.security.auth.module.Krb5LoginModule required;"),
        "sasl.kerberos.service.name",
        "kafka",
    ),
    "service with a host": (
        keys("GSSAPI", sasl_kerberos_service_name="kafka@elsewhere"),
        "sasl.kerberos.service.name",
        "kafka",
    ),
    "region with a host": (
        keys("AWS_MSK_IAM", LINES["AWS_MSK_IAM"].replace(";", ' awsStsRegion="x@hush.test/";')),
        "sasl.jaas.config",
        "eu-west-1",
    ),
    "keytab of nobody": (
        keys("GSSAPI", LINES["GSSAPI"].replace(";", " useKeyTab=true;")),
        "sasl.jaas.config",
        "principal",
    ),
}


@pytest.mark.parametrize(("settings", "key", "remedy"), NOT_FITTING.values(), ids=NOT_FITTING)
def test_it_does_not_fit(settings: dict[str, Any], key: str, remedy: str) -> None:
    with pytest.raises(SaslProblem) as caught:
        login_module(settings)
    assert caught.value.key == key
    assert remedy in caught.value.remedy
    findings = Findings()
    check_sasl(settings, findings)
    (text,) = findings.errors
    assert text.key == key
    assert "hush" not in str(text)


def test_nothing_is_checked_without_a_login() -> None:
    findings = Findings()
    check_sasl(keys("PLAIN", "", security_protocol="SSL"), findings)
    assert not findings.errors


@pytest.mark.parametrize(("mechanism", "expected"), [("PLAIN", 1), ("SCRAM-SHA-256", 0)])
def test_unencrypted_passwords_are_reported(mechanism: str, expected: int) -> None:
    findings = Findings()
    check_sasl(keys(mechanism, security_protocol="SASL_PLAINTEXT"), findings)
    assert len([text for text in findings.warnings if "SASL_SSL" in text]) == expected


@pytest.mark.parametrize(("scheme", "expected"), [("http", 1), ("https", 0)])
def test_token_servers_without_tls_are_reported(scheme: str, expected: int) -> None:
    url = {"sasl_oauthbearer_token_endpoint_url": f"{scheme}://tokens.test/"}
    findings = Findings()
    check_sasl(keys("OAUTHBEARER", **url), findings)
    assert findings.errors == ()
    assert len([text for text in findings.warnings if "not encrypted" in text]) == expected
