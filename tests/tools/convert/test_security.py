"""Every type of authentication: the settings, the Secrets, and a login that this program makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.mm2 import load_mm2
from sparkmirror.wire.security import Security
from tests.tools.convert.resources import (
    SET_UP_B,
    Json,
    Pod,
    changed,
    errors_of,
    notes_of,
    objects_of,
    run,
)

SECRETS = "/etc/sparkmirror/secrets"
KAFKA = "org.apache.kafka.common.security."
PASSWORD = {"secretName": "user", "password": "password"}
CA = {"trustedCertificates": [{"secretName": "source-ca", "certificate": "ca.crt"}]}
OAUTH = {
    "type": "oauth",
    "tokenEndpointUri": "https://login.example.com/token",
    "clientId": "mirror",
    "clientSecret": {"secretName": "client", "key": "secret"},
}
AT = "spec.clusters[0].authentication"


def with_login(login: Json, tls: Json = None) -> str:
    return changed(
        SET_UP_B, spec__clusters__0__authentication=login, spec__clusters__0__tls=tls or CA
    )


def source_settings(text: str) -> dict[str, str]:
    """The lines about the source, without the prefix."""
    lines = run(text).files["mm2.properties"].splitlines()
    pairs = [line.partition("=") for line in lines if line.startswith("source.")]
    return {key.removeprefix("source."): value for key, _, value in pairs}


def source_security(text: str, folder: Path) -> Security:
    """What the program makes of the file in a pod."""
    pod = Pod(folder, run(text))
    [flow] = load_mm2(pod.at("/etc/sparkmirror/mm2.properties")).flows
    return Security.of(flow.source.source_client)


def volumes_of(text: str) -> dict[str, list[str]]:
    """The keys of the mounted Secrets."""
    spec = objects_of(run(text))["Deployment"]["spec"]["template"]["spec"]
    secrets = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
    return {each["secretName"]: [item["key"] for item in each["items"]] for each in secrets}


@pytest.mark.parametrize(
    ("kind", "mechanism", "module"),
    [
        ("scram-sha-256", "SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("scram-sha-512", "SCRAM-SHA-512", "scram.ScramLoginModule"),
        ("plain", "PLAIN", "plain.PlainLoginModule"),
    ],
)
def test_passwords(kind: str, mechanism: str, module: str, tmp_path: Path) -> None:
    text = with_login({"type": kind, "username": 'al"ice', "passwordSecret": PASSWORD})
    found = source_settings(text)
    assert found["security.protocol"] == "SASL_SSL"
    assert found["sasl.mechanism"] == mechanism
    # Properties double the backslash of the login module.
    assert found["sasl.jaas.config"] == (
        f'{KAFKA}{module} required username="al\\\\"ice" '
        f'password="${{directory:{SECRETS}/user:password}}";'
    )
    assert volumes_of(text) == {"source-ca": ["ca.crt"], "user": ["password"]}
    security = source_security(text, tmp_path)
    assert security.is_sasl
    assert security.is_tls
    assert security.authenticator("broker") is not None


def test_a_login_without_tls() -> None:
    login = {"type": "plain", "username": "a", "passwordSecret": PASSWORD}
    text = changed(SET_UP_B, spec__clusters__1__authentication=login)
    assert "target.security.protocol=SASL_PLAINTEXT" in run(text).files["mm2.properties"]


def test_a_certificate_of_ones_own(tmp_path: Path) -> None:
    both = {"secretName": "user", "certificate": "user.crt", "key": "user.key"}
    text = with_login({"type": "tls", "certificateAndKey": both})
    found = source_settings(text)
    assert found["security.protocol"] == "SSL"
    assert found["ssl.keystore.type"] == "PEM"
    assert found["ssl.keystore.certificate.chain"] == f"${{directory:{SECRETS}/user:user.crt}}"
    assert found["ssl.keystore.key"] == f"${{directory:{SECRETS}/user:user.key}}"
    assert volumes_of(text)["user"] == ["user.crt", "user.key"]
    assert source_security(text, tmp_path).is_tls


def test_a_certificate_without_tls_has_no_effect_as_in_strimzi() -> None:
    both = {"secretName": "user", "certificate": "user.crt", "key": "user.key"}
    login = {"type": "tls", "certificateAndKey": both}
    done = run(changed(SET_UP_B, spec__clusters__1__authentication=login))
    assert "target.security.protocol=PLAINTEXT" in done.files["mm2.properties"]
    assert "has no effect without tls" in notes_of(done)["spec.clusters[1].authentication"]


def test_client_credentials(tmp_path: Path) -> None:
    text = with_login(
        OAUTH
        | {
            "scope": "kafka",
            "connectTimeoutSeconds": 5,
            "readTimeoutSeconds": 7,
            "httpRetryPauseMs": 300,
            "tlsTrustedCertificates": [{"secretName": "login-ca", "certificate": "login.crt"}],
            "disableTlsHostnameVerification": True,
        }
    )
    found = source_settings(text)
    assert found["security.protocol"] == "SASL_SSL"
    assert found["sasl.mechanism"] == "OAUTHBEARER"
    assert found["sasl.oauthbearer.token.endpoint.url"] == "https://login.example.com/token"
    credentials = "sasl.oauthbearer.client.credentials.client"
    assert found[f"{credentials}.id"] == "mirror"
    assert found[f"{credentials}.secret"] == f"${{directory:{SECRETS}/client:secret}}"
    assert found["sasl.oauthbearer.scope"] == "kafka"
    assert found["sasl.login.connect.timeout.ms"] == "5000"
    assert found["sasl.login.read.timeout.ms"] == "7000"
    assert found["sasl.login.retry.backoff.ms"] == "300"
    assert found["sasl.jaas.config"] == (
        f'{KAFKA}oauthbearer.OAuthBearerLoginModule required ssl.truststore.type="PEM" '
        f'ssl.truststore.location="{SECRETS}/login-ca/login.crt" '
        'ssl.endpoint.identification.algorithm="";'
    )
    assert source_security(text, tmp_path).authenticator("broker") is not None


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({"accessToken": {"secretName": "t", "key": "k"}}, f"file://{SECRETS}/t/k"),
        ({"accessTokenLocation": "/mnt/token"}, "file:///mnt/token"),
    ],
)
def test_tokens_of_files(fields: dict[str, Any], url: str, tmp_path: Path) -> None:
    text = with_login({"type": "oauth", **fields})
    assert source_settings(text)["sasl.oauthbearer.token.endpoint.url"] == url
    assert source_security(text, tmp_path).authenticator("broker") is not None


def test_a_token_is_stronger_than_a_server() -> None:
    text = with_login(OAUTH | {"accessToken": {"secretName": "t", "key": "k"}})
    assert source_settings(text)["sasl.oauthbearer.token.endpoint.url"].startswith("file:")
    assert f"{AT}.tokenEndpointUri" in notes_of(run(text))


def test_a_login_in_ones_own_words(tmp_path: Path) -> None:
    jaas = (
        f"{KAFKA}oauthbearer.OAuthBearerLoginModule required "
        'oauth.token.endpoint.uri="https://login.example.com/token" oauth.client.id="mirror" '
        'oauth.client.secret="${strimzisecrets:kafka/client:secret}";'
    )
    config = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": jaas,
        "sasl.login.callback.handler.class": (
            "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
        ),
        "acks": "all",
    }
    text = with_login({"type": "custom", "sasl": True, "config": config})
    found = source_settings(text)
    assert found["security.protocol"] == "SASL_SSL"
    assert f"${{directory:{SECRETS}/client:secret}}" in found["sasl.jaas.config"]
    notes = notes_of(run(text))
    assert "acks" not in found
    assert "Strimzi takes only" in notes[f"{AT}.config.acks"]
    assert source_security(text, tmp_path).authenticator("broker") is not None


def test_a_custom_login_without_sasl() -> None:
    text = with_login({"type": "custom", "sasl": False, "config": {"ssl.keystore.type": "PEM"}})
    assert source_settings(text)["security.protocol"] == "SSL"


# -- certificates ----------------------------------------------------------------------------------


def trusting(*certificates: Json) -> str:
    return changed(SET_UP_B, spec__clusters__0__tls={"trustedCertificates": list(certificates)})


def test_several_certificates_are_trusted(tmp_path: Path) -> None:
    text = trusting(
        {"secretName": "a", "certificate": "a.crt"}, {"secretName": "b", "certificate": "b.crt"}
    )
    found = source_settings(text)
    assert found["ssl.truststore.certificates"] == (
        f"${{directory:{SECRETS}/a:a.crt}}\\n${{directory:{SECRETS}/b:b.crt}}"
    )
    assert "ssl.truststore.location" not in found
    assert "once, at the start" in notes_of(run(text))["spec.clusters[0].tls.trustedCertificates"]
    assert source_security(text, tmp_path).is_tls


def test_a_pattern_stands_for_the_certificate_of_the_ca() -> None:
    text = trusting({"secretName": "a", "pattern": "*.crt"})
    assert source_settings(text)["ssl.truststore.location"] == f"{SECRETS}/a/ca.crt"
    path = "spec.clusters[0].tls.trustedCertificates[0].pattern"
    assert "it trusts only ca.crt" in notes_of(run(text))[path]


def test_a_pattern_without_wildcards_is_a_name() -> None:
    text = trusting({"secretName": "a", "pattern": "my.crt"})
    assert source_settings(text)["ssl.truststore.location"] == f"{SECRETS}/a/my.crt"


def test_tls_without_certificates_trusts_those_of_the_image() -> None:
    found = source_settings(changed(SET_UP_B, spec__clusters__0__tls={}))
    assert found == {
        "bootstrap.servers": "source.example.com:443",
        "security.protocol": "SSL",
    }


# -- errors ----------------------------------------------------------------------------------------

TYPES = "use one of tls, scram-sha-256, scram-sha-512, plain, oauth, custom"


@pytest.mark.parametrize(
    ("login", "errors"),
    [
        (
            {"type": "kerberos"},
            [f"{AT}.type=kerberos: is not a known type of authentication; {TYPES}"],
        ),
        ({"username": "a"}, [f"{AT}.type: is missing; {TYPES}"]),
        (
            {"type": "tls"},
            [f"{AT}.certificateAndKey: is missing; name a Secret, its certificate and its key"],
        ),
        (
            {"type": "plain"},
            [
                f"{AT}.username: is missing; name the user",
                f"{AT}.passwordSecret: is missing; name a Secret and its key",
            ],
        ),
        (
            {"type": "plain", "username": "a", "passwordSecret": {"secretName": "../a"}},
            [
                f"{AT}.passwordSecret.password: is missing; name a key of the Secret",
                (
                    f"{AT}.passwordSecret.secretName=../a: is not the name of a Secret; "
                    "write it with the characters [a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
                ),
            ],
        ),
        (
            {"type": "oauth", "clientId": "a"},
            [
                (
                    f"{AT}: names neither a token nor a token server; set tokenEndpointUri, "
                    "accessToken or accessTokenLocation"
                )
            ],
        ),
        (
            {"type": "custom", "sasl": "yes, please"},
            [f"{AT}.sasl=yes, please: is neither true nor false; write true or false"],
        ),
        ("tls", [f"{AT}=tls: is not a mapping; write a mapping"]),
    ],
)
def test_logins_that_cannot_be_converted(login: Json, errors: list[str]) -> None:
    assert errors_of(with_login(login)) == [f"mirror.yaml: {error}" for error in errors]


def test_a_pattern_that_does_not_match_the_certificate_of_the_ca() -> None:
    [error] = errors_of(trusting({"secretName": "a", "pattern": "*.pem"}))
    assert "pattern=*.pem: does not match ca.crt" in error
    assert error.endswith("name the key itself with certificate instead of pattern")
