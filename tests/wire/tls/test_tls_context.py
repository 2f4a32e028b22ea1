"""TLS settings as contexts: what they get wrong, what they allow, and files that change."""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.config_def import Secret
from sparkmirror.errors import ConfigError
from sparkmirror.wire import secret_files
from sparkmirror.wire.security import Security
from sparkmirror.wire.tls.tls_context import (
    ContextSource,
    make_client_context,
    make_server_context,
)
from tests.certificates import PASSWORD, Certificates
from tests.wire.tls_settings import SUITE_13, names_of, settings


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


# -- stores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["inline", "PEM", "PKCS12"])
def test_trust_store_decides_whom_to_trust(certificates: Certificates, form: str) -> None:
    forms: dict[str, dict[str, Any]] = {
        "inline": {
            "ssl_truststore_certificates": Secret(certificates.ca.pem),
            "ssl_truststore_type": "PEM",
        },
        "PEM": {
            "ssl_truststore_location": str(certificates.ca_pem),
            "ssl_truststore_type": "PEM",
        },
        "PKCS12": {
            "ssl_truststore_location": str(certificates.pkcs12("ca")),
            "ssl_truststore_password": Secret(PASSWORD),
        },
    }
    context = make_client_context(settings(**forms[form]))
    assert names_of(context.ssl) == {"Test CA"}
    assert not context.has_own_key
    assert context.ssl.check_hostname
    assert context.ssl.verify_mode == ssl.CERT_REQUIRED


def test_machines_own_authorities_count_without_a_trust_store(
    monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca_pem))
    assert names_of(make_client_context(settings()).ssl) >= {"Test CA"}


def test_machine_without_authorities_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "no.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="this machine has no CA certificates of its own"):
        make_client_context(settings())


@pytest.mark.parametrize("form", ["inline", "PEM", "PKCS12"])
def test_own_key_is_taken(certificates: Certificates, form: str) -> None:
    forms: dict[str, dict[str, Any]] = {
        "inline": {
            "ssl_keystore_key": Secret(certificates.client.key_pem("word")),
            "ssl_keystore_certificate_chain": Secret(certificates.client.pem),
            "ssl_key_password": Secret("word"),
            "ssl_keystore_type": "PEM",
        },
        "PEM": {
            "ssl_keystore_location": str(certificates.pem("client")),
            "ssl_keystore_type": "PEM",
        },
        "PKCS12": {
            "ssl_keystore_location": str(certificates.pkcs12("client")),
            "ssl_keystore_password": Secret(PASSWORD),
        },
    }
    assert make_client_context(settings(**trusting(certificates), **forms[form])).has_own_key


def trusting(certificates: Certificates) -> dict[str, Any]:
    return {
        "ssl_truststore_location": str(certificates.ca_pem),
        "ssl_truststore_type": "PEM",
    }


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        pytest.param(
            {"ssl_truststore_location": "FOLDER/none.jks"},
            "cluster 'a': ssl.truststore.location=FOLDER/none.jks: the file cannot be read: No "
            "such file or directory; check the path and its permissions",
            id="missing file",
        ),
        pytest.param(
            {"ssl_truststore_location": "FOLDER"},
            "cluster 'a': ssl.truststore.location=FOLDER: the file cannot be read: Is a directory; "
            "check the path and its permissions",
            id="folder",
        ),
        pytest.param(
            {"ssl_truststore_location": "FOLDER/ca.p12", "ssl_truststore_password": Secret("x1y")},
            "cluster 'a': ssl.truststore.password: FOLDER/ca.p12: the password is wrong, or the "
            "file is damaged; check it with keytool -list",
            id="wrong password",
        ),
        pytest.param(
            {"ssl_truststore_location": "FOLDER/text", "ssl_truststore_password": Secret("x1y")},
            "cluster 'a': ssl.truststore.location=FOLDER/text: is neither a JKS nor a PKCS12 "
            "store; check that it is the right file",
            id="not a store",
        ),
        pytest.param(
            {"ssl_truststore_location": "FOLDER/ca.pem"},
            "cluster 'a': ssl.truststore.type: FOLDER/ca.pem: the type is JKS, but the file is "
            "PEM; set the type to what the file is",
            id="type",
        ),
        pytest.param(
            {"ssl_truststore_certificates": Secret("x1y"), "ssl_truststore_type": "PEM"},
            "cluster 'a': ssl.truststore.certificates: has no certificate in PEM; it starts with "
            "-----BEGIN CERTIFICATE-----",
            id="inline",
        ),
        pytest.param(
            {"ssl_keystore_location": "FOLDER/ca.p12", "ssl_keystore_password": Secret("x1y")},
            "cluster 'a': ssl.keystore.password: FOLDER/ca.p12: the password is wrong, or the file "
            "is damaged; check it with keytool -list",
            id="key store's password",
        ),
        pytest.param(
            {
                "ssl_keystore_location": "FOLDER/client.pem",
                "ssl_keystore_type": "PEM",
                "ssl_key_password": Secret("x1y"),
            },
            "cluster 'a': ssl.key.password: FOLDER/client.pem: the private key cannot be decrypted "
            "or is damaged; check ssl.key.password",
            id="key's password",
        ),
        pytest.param(
            {"ssl_keystore_location": "FOLDER/mixed.pem", "ssl_keystore_type": "PEM"},
            "cluster 'a': ssl.keystore.location=FOLDER/mixed.pem: key and certificate cannot be "
            "used: KEY_VALUES_MISMATCH; check that they belong together",
            id="key of another certificate",
        ),
        pytest.param(
            {"ssl_cipher_suites": ("TLS_OLD",)},
            "cluster 'a': ssl.cipher.suites=TLS_OLD: names no cipher suite that OpenSSL has; "
            "TLS_AES_256_GCM_SHA384 is one",
            id="suites",
        ),
        pytest.param(
            {"ssl_protocol": "TLSv1.2", "ssl_cipher_suites": (SUITE_13,)},
            f"cluster 'a': ssl.cipher.suites={SUITE_13}: has no suite for the TLS versions "
            "that may be used; add one, or allow TLSv1.2",
            id="suites of another version",
        ),
    ],
)
def test_bad_settings_are_reported_with_key_and_file(
    certificates: Certificates, values: dict[str, Any], reason: str
) -> None:
    folder = str(certificates.folder)
    certificates.pkcs12("ca")
    certificates.pem("client", "word")
    certificates.write("text", "no store")
    certificates.write("mixed.pem", certificates.client.key_pem() + certificates.broker.pem)
    place = {
        name: value.replace("FOLDER", folder) if isinstance(value, str) else value
        for name, value in values.items()
    }
    defaults = {} if any("truststore" in name for name in place) else trusting(certificates)
    assert certificates.ca_pem.exists()
    with pytest.raises(ConfigError) as raised:
        make_client_context(settings(**defaults, **place))
    assert str(raised.value) == reason.replace("FOLDER", folder)
    assert "x1y" not in str(raised.value)


def test_expired_certificate_of_our_own_is_logged_and_used(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    own = {"ssl_keystore_location": str(certificates.pem("expired")), "ssl_keystore_type": "PEM"}
    with caplog.at_level(logging.WARNING):
        context = make_client_context(settings(**trusting(certificates), **own))
    assert context.has_own_key
    assert re.search(r"the certificate in .*expired\.pem expired on 20\d\d-", caplog.text)


# -- every connection obeys ----------------------------------------------------------------------


# -- versions and suites -------------------------------------------------------------------------


# -- listeners -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client_auth", "mode"),
    [
        ("none", ssl.CERT_NONE),
        ("requested", ssl.CERT_OPTIONAL),
        ("required", ssl.CERT_REQUIRED),
    ],
)
def test_listener_asks_for_certificates_as_configured(
    certificates: Certificates, client_auth: str, mode: ssl.VerifyMode
) -> None:
    own = {"ssl_keystore_location": str(certificates.pem("broker")), "ssl_keystore_type": "PEM"}
    context = make_server_context(settings(**trusting(certificates), **own), client_auth)
    assert context.ssl.verify_mode == mode


def test_listener_needs_a_key(certificates: Certificates) -> None:
    with pytest.raises(ConfigError, match="needs a key and a certificate; name a key store"):
        make_server_context(settings(**trusting(certificates)))


# -- files that change ---------------------------------------------------------------------------


@pytest.fixture
def nothing_provided() -> Iterator[None]:
    yield
    secret_files.forget_provided()


def test_changed_file_is_read_again(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    source = ContextSource(settings(**trusting(certificates)))
    before = source.current()
    assert source.current() is before
    certificates.write("ca.pem", certificates.ca.pem + certificates.other_ca.pem)
    with caplog.at_level(logging.INFO):
        after = source.current()
    assert names_of(after.ssl) == {"Test CA", "Somebody else's CA"}
    assert source.current() is after
    assert "cluster 'a': certificates were read again" in caplog.text


def test_file_that_became_unusable_is_logged_once_and_the_old_one_stays(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    source = ContextSource(settings(**trusting(certificates)))
    before = source.current()
    certificates.write("ca.pem", "-----BEGIN half")
    with caplog.at_level(logging.WARNING):
        assert source.current() is before
        assert source.current() is before
    assert caplog.text.count("the certificates read before stay in use") == 1
    certificates.write("ca.pem", certificates.other_ca.pem)
    assert names_of(source.current().ssl) == {"Somebody else's CA"}


@pytest.mark.usefixtures("nothing_provided")
def test_files_that_came_over_the_link_need_no_disk(certificates: Certificates) -> None:
    values = {"ssl_truststore_location": "/no/such/ca.pem", "ssl_truststore_type": "PEM"}
    secret_files.provide("/no/such/ca.pem", certificates.ca.pem.encode())
    source = ContextSource(settings(**values))
    assert names_of(source.current().ssl) == {"Test CA"}
    secret_files.provide("/no/such/ca.pem", certificates.other_ca.pem.encode())
    assert names_of(source.current().ssl) == {"Somebody else's CA"}


# -- one object per cluster ----------------------------------------------------------------------


def test_security_is_made_once_for_equal_settings(certificates: Certificates) -> None:
    values = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(certificates.ca_pem),
        "ssl.truststore.type": "PEM",
    }
    first = Security.of(ClientConfig("a", ("h:1",), security=values))
    assert Security.of(ClientConfig("a", ("other:1",), security=dict(values))) is first
    assert Security.of(ClientConfig("b", ("h:1",), security=values)) is not first
    assert first.files() == (str(certificates.ca_pem),)
    assert first.is_tls
    assert not first.is_sasl


def test_security_that_failed_is_tried_again(certificates: Certificates) -> None:
    path = certificates.folder / "late.pem"
    values = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(path),
        "ssl.truststore.type": "PEM",
    }
    config = ClientConfig("a", ("h:1",), security=values)
    with pytest.raises(ConfigError, match="No such file"):
        Security.of(config)
    path.write_text(certificates.ca.pem)
    assert Security.of(config).is_tls
