"""From settings to a login: which credentials, from where, and the files that executors need."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.config_def import Secret
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.errors import AuthenticationError, ConfigError, MissingPart
from sparkmirror.wire.sasl import gss_library
from sparkmirror.wire.sasl.gssapi import GssapiLogin
from sparkmirror.wire.sasl.mechanism import Login
from sparkmirror.wire.sasl.msk_iam import MskIamLogin, MskTokenLogin
from sparkmirror.wire.sasl.plain import PlainLogin
from sparkmirror.wire.sasl.scram import ScramLogin
from sparkmirror.wire.security import Security
from tests.token_server import CLIENT, SECRET, TokenServer, encode

WAIT_SECONDS = 10.0
KAFKA = "org.apache.kafka.common.security."
OAUTH = f"{KAFKA}oauthbearer.OAuthBearerLoginModule required"
HANDLER = "sasl.login.callback.handler.class"
URL = "sasl.oauthbearer.token.endpoint.url"
ASSERTION = "sasl.oauthbearer.assertion."
JWT_BEARER = {"sasl.oauthbearer.jwt.retriever.class": f"{KAFKA}oauthbearer.JwtBearerJwtRetriever"}


@pytest.fixture(scope="module")
def server() -> Iterator[TokenServer]:
    with TokenServer() as server:
        yield server


def security(mechanism: str, line: str, others: Mapping[str, Any] | None = None) -> Security:
    values: dict[str, Any] = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
    values["sasl.jaas.config"] = Secret(line)
    for name, text in (others or {}).items():
        values[name] = SECURITY_KEYS[name].parse(text)
    return Security.of(ClientConfig("x", ("h:1",), security=values))


def login(mechanism: str, line: str, others: Mapping[str, Any] | None = None) -> Login:
    found = security(mechanism, line, others)._login
    assert found is not None
    return found


def first_message(mechanism: str, line: str, others: Mapping[str, Any] | None = None) -> bytes:
    return login(mechanism, line, others).begin("h").result(WAIT_SECONDS).start()


PASSWORD = 'required username="u" password="p";'
KINDS = {
    "PLAIN": (PlainLogin, f"{KAFKA}plain.PlainLoginModule {PASSWORD}"),
    "SCRAM-SHA-256": (ScramLogin, f"{KAFKA}scram.ScramLoginModule {PASSWORD}"),
    "SCRAM-SHA-512": (ScramLogin, f"{KAFKA}scram.ScramLoginModule {PASSWORD}"),
    "AWS_MSK_IAM": (MskIamLogin, "software.amazon.msk.auth.iam.IAMLoginModule required;"),
    "GSSAPI": (
        GssapiLogin,
        "com.sun.security.auth.module.Krb5LoginModule required serviceName=kafka;",
    ),
}


@pytest.mark.parametrize("mechanism", KINDS)
def test_each_mechanism_has_its_login(mechanism: str) -> None:
    kind, line = KINDS[mechanism]
    found = login(mechanism, line)
    assert type(found) is kind
    assert found.mechanism == mechanism


def test_delegation_tokens() -> None:
    line = f'{KAFKA}scram.ScramLoginModule required username="u" password="p" tokenauth="true";'
    assert b",tokenauth=true" in first_message("SCRAM-SHA-256", line)


def test_iam_as_a_token() -> None:
    handler = {HANDLER: "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"}
    assert type(login("OAUTHBEARER", f"{OAUTH};", handler)) is MskTokenLogin


def test_unsecured_tokens_with_extensions() -> None:
    line = f'{OAUTH} unsecuredLoginStringClaim_sub="me" unsecuredLoginExtension_traceId="1";'
    message = first_message("OAUTHBEARER", line)
    assert message.endswith(b"\x01traceId=1\x01\x01")


def test_a_token_file(tmp_path: Path) -> None:
    file = tmp_path / "my token"
    file.write_text("opaque-token\n")
    url = {URL: f"file://{tmp_path}/my%20token"}
    assert b"auth=Bearer opaque-token\x01" in first_message("OAUTHBEARER", f"{OAUTH};", url)
    assert security("OAUTHBEARER", f"{OAUTH};", url).files() == (str(file),)


SPELLINGS: dict[str, tuple[str, dict[str, str]]] = {
    "options": (f'{OAUTH} clientId="{CLIENT}" clientSecret="{SECRET}" scope="s";', {}),
    "keys": (
        f"{OAUTH};",
        {
            "sasl.oauthbearer.client.credentials.client.id": CLIENT,
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
            "sasl.oauthbearer.scope": "s",
        },
    ),
    "keys before options": (
        f'{OAUTH} clientId="old" clientSecret="old" scope="old";',
        {
            "sasl.oauthbearer.client.credentials.client.id": CLIENT,
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
            "sasl.oauthbearer.scope": "s",
        },
    ),
    "Strimzi's": (
        f'{OAUTH} oauth.client.id="{CLIENT}" oauth.client.secret="{SECRET}" oauth.scope="s";',
        {HANDLER: "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"},
    ),
}


@pytest.mark.parametrize(("line", "others"), SPELLINGS.values(), ids=SPELLINGS)
def test_client_credentials(server: TokenServer, line: str, others: dict[str, str]) -> None:
    message = first_message("OAUTHBEARER", line, {URL: server.token_url, **others})
    assert message.startswith(b"n,,\x01auth=Bearer ey")
    assert server.requests[-1] == {"grant_type": "client_credentials", "scope": "s"}


def test_extensions_of_a_managed_service(server: TokenServer) -> None:
    line = (
        f'{OAUTH} clientId="{CLIENT}" clientSecret="{SECRET}" '
        'extension_logicalCluster="lkc-1" extension_identityPoolId="pool-1";'
    )
    message = first_message("OAUTHBEARER", line, {URL: server.token_url})
    assert message.endswith(b"\x01logicalCluster=lkc-1\x01identityPoolId=pool-1\x01\x01")


def test_no_place_to_get_a_token_from() -> None:
    with pytest.raises(ConfigError, match=r"cluster 'x': sasl.oauthbearer.token.endpoint.url: is"):
        login("OAUTHBEARER", f"{OAUTH};")


def test_extensions_that_cannot_travel() -> None:
    with pytest.raises(ConfigError, match="'1' is no name for an extension"):
        login("OAUTHBEARER", f'{OAUTH} extension_1="x" unsecuredLoginStringClaim_sub="u";')


def decoded(text: str) -> dict[str, Any]:
    found = json.loads(base64.urlsafe_b64decode(text + "=="))
    assert isinstance(found, dict)
    return found


def write_key(folder: Path, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> Path:
    protection = serialization.BestAvailableEncryption(b"pass")
    form = serialization.PrivateFormat.PKCS8
    path = folder / "key.pem"
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, protection))
    return path


def assertion_settings(server: TokenServer, key: Path, algorithm: str) -> dict[str, str]:
    return {
        URL: server.token_url,
        **JWT_BEARER,
        f"{ASSERTION}private.key.file": str(key),
        f"{ASSERTION}private.key.passphrase": "pass",
        f"{ASSERTION}algorithm": algorithm,
        f"{ASSERTION}claim.aud": "server",
        f"{ASSERTION}claim.iss": "me",
        f"{ASSERTION}claim.sub": "me too",
        f"{ASSERTION}claim.jti.include": "true",
    }


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_assertions_that_we_sign(server: TokenServer, tmp_path: Path, algorithm: str) -> None:
    rsa_key = rsa.generate_private_key(65537, 2048)
    ec_key = ec.generate_private_key(ec.SECP256R1())
    path = write_key(tmp_path, rsa_key if algorithm == "RS256" else ec_key)
    template = tmp_path / "template.json"
    template.write_text('{"header": {"kid": "k"}, "payload": {"extra": 1}}')
    settings = assertion_settings(server, path, algorithm)
    settings[f"{ASSERTION}template.file"] = str(template)
    first_message("OAUTHBEARER", f'{OAUTH} scope="s";', settings)
    form = server.requests[-1]
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert form["scope"] == "s"
    header, payload, signature = form["assertion"].split(".")
    assert decoded(header) == {"typ": "JWT", "kid": "k", "alg": algorithm}
    claims = decoded(payload)
    assert claims["exp"] - claims["iat"] == 300
    assert claims["iat"] - claims["nbf"] == 60
    assert len(claims["jti"]) == 36
    assert (claims["aud"], claims["iss"], claims["sub"]) == ("server", "me", "me too")
    assert claims["extra"] == 1
    signed, raw = f"{header}.{payload}".encode(), base64.urlsafe_b64decode(signature + "==")
    if algorithm == "RS256":
        rsa_key.public_key().verify(raw, signed, padding.PKCS1v15(), hashes.SHA256())
    else:
        pair = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
        ec_key.public_key().verify(pair, signed, ec.ECDSA(hashes.SHA256()))
    found = security("OAUTHBEARER", f'{OAUTH} scope="s";', settings)
    assert found.files() == (str(path), str(template))


def test_an_assertion_of_a_file(server: TokenServer, tmp_path: Path) -> None:
    file = tmp_path / "assertion"
    file.write_text(f"{encode(b'{}')}.{encode(b'{}')}.x\n")
    settings = {URL: server.token_url, **JWT_BEARER, f"{ASSERTION}file": str(file)}
    first_message("OAUTHBEARER", f"{OAUTH};", settings)
    assert server.requests[-1]["assertion"] == file.read_text().strip()


def test_keys_that_cannot_sign(server: TokenServer, tmp_path: Path) -> None:
    path = write_key(tmp_path, ec.generate_private_key(ec.SECP256R1()))
    settings = assertion_settings(server, path, "RS256")
    with pytest.raises(AuthenticationError, match="cannot sign with RS256"):
        first_message("OAUTHBEARER", f"{OAUTH};", settings)
    settings |= {f"{ASSERTION}private.key.passphrase": "hush"}
    with pytest.raises(AuthenticationError, match="passphrase does not open it") as caught:
        first_message("OAUTHBEARER", f"{OAUTH};", settings)
    assert "hush" not in str(caught.value)
    settings |= {f"{ASSERTION}private.key.file": "/nowhere"}
    with pytest.raises(AuthenticationError, match="No such file"):
        first_message("OAUTHBEARER", f"{OAUTH};", settings)


def test_files_of_kerberos() -> None:
    line = (
        "com.sun.security.auth.module.Krb5LoginModule required serviceName=kafka useKeyTab=true "
        'principal="a@B" keyTab="FILE:/etc/a.keytab";'
    )
    assert security("GSSAPI", line).files() == ("/etc/a.keytab",)


def test_a_machine_without_kerberos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gss_library, "LIBRARIES", ("libnowhere.so",))
    gss_library.library.cache_clear()
    line = "com.sun.security.auth.module.Krb5LoginModule required serviceName=other;"
    try:
        with pytest.raises(MissingPart, match="install libgssapi-krb5-2"):
            login("GSSAPI", line)
    finally:
        gss_library.library.cache_clear()


def test_settings_that_do_not_fit_are_reported_with_the_cluster() -> None:
    with pytest.raises(ConfigError, match=r"cluster 'x': sasl.jaas.config"):
        login("PLAIN", f"{OAUTH};")
