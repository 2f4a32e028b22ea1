"""Which versions and suites of TLS a connection may use, of every kind of connection."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.clients import parse_client
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.errors import ConfigError
from sparkmirror.wire.admin.admin_client import client_options
from sparkmirror.wire.tls.tls_context import (
    ContextSource,
    make_client_context,
)
from sparkmirror.wire.tls.tls_suites import SuiteRefused, openssl_name
from tests.certificates import Certificates
from tests.wire.tls_peers import TlsPeer, server_context
from tests.wire.tls_settings import SUITE_12, SUITE_13, V12, V13, settings


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def trusting(certificates: Certificates) -> dict[str, Any]:
    return {
        "ssl_truststore_location": str(certificates.ca_pem),
        "ssl_truststore_type": "PEM",
    }


def shake_hands_blocking(context: ssl.SSLContext | ContextSource, port: int) -> None:
    """As most libraries do it."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        context.wrap_socket(sock, server_hostname="127.0.0.1").close()


def shake_hands_like_kafka_python(context: ssl.SSLContext | ContextSource, port: int) -> None:
    """It wraps first and shakes hands later; see kafka.net.transport."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        options: Any = {"server_hostname": "127.0.0.1", "do_handshake_on_connect": False}
        with context.wrap_socket(sock, **options) as tls:
            tls.do_handshake()


def shake_hands_like_asyncio(context: ssl.SSLContext | ContextSource, port: int) -> None:
    """Requests to other workers do it so: TLS without a socket of its own."""
    assert isinstance(context, ContextSource)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.current().ssl.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
                incoming.write(sock.recv(65536))
            else:
                sock.sendall(outgoing.read())
                return


@pytest.mark.parametrize(
    "shake_hands",
    [shake_hands_blocking, shake_hands_like_kafka_python, shake_hands_like_asyncio],
)
@pytest.mark.parametrize(
    ("suites", "is_refused"),
    [(("TLS_AES_128_CCM_SHA256",), True), (("TLS_AES_256_GCM_SHA384",), False), ((), False)],
)
def test_suites_of_tls_1_3_count_for_every_kind_of_connection(
    certificates: Certificates,
    shake_hands: Callable[[ContextSource, int], None],
    suites: tuple[str, ...],
    is_refused: bool,
) -> None:
    source = ContextSource(settings(**trusting(certificates), ssl_cipher_suites=suites))
    with TlsPeer(server_context(certificates, certificates.broker)) as peer:
        if is_refused:
            with pytest.raises(SuiteRefused, match=r"TLS_AES_256_GCM_SHA384 is not in ssl\.cipher"):
                shake_hands(source, peer.port)
        else:
            shake_hands(source, peer.port)


def test_admin_clients_get_a_context_that_obeys(certificates: Certificates) -> None:
    client = parse_client(
        Settings(
            {
                "bootstrap.servers": "127.0.0.1:1",
                "security.protocol": "SSL",
                "ssl.cipher.suites": "TLS_AES_128_CCM_SHA256",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(certificates.ca_pem),
            },
            Findings(),
        ),
        "a",
    )
    source = client_options(client, 1000)["ssl_context"]
    with (
        TlsPeer(server_context(certificates, certificates.broker)) as peer,
        pytest.raises(SuiteRefused),
    ):
        shake_hands_like_kafka_python(source, peer.port)


@pytest.mark.parametrize(
    ("values", "versions"),
    [
        pytest.param({}, (V12, V13), id="default"),
        pytest.param({"ssl_protocol": "TLS"}, (V12, V13), id="any"),
        pytest.param({"ssl_protocol": "TLSv1.2"}, (V12, V12), id="never newer"),
        pytest.param({"ssl_enabled_protocols": ("TLSv1.3",)}, (V13, V13), id="enabled"),
        pytest.param({"ssl_enabled_protocols": ("TLSv1.1", "TLSv1.2")}, (V12, V12), id="no old"),
        pytest.param({"ssl_enabled_protocols": ()}, (V12, V13), id="empty"),
        pytest.param({"ssl_cipher_suites": (SUITE_12,)}, (V12, V12), id="suites of 1.2"),
        pytest.param({"ssl_cipher_suites": (SUITE_13,)}, (V13, V13), id="suites of 1.3"),
        pytest.param({"ssl_cipher_suites": (SUITE_12, SUITE_13)}, (V12, V13), id="suites"),
    ],
)
def test_versions_follow_protocol_enabled_and_suites(
    certificates: Certificates,
    values: dict[str, Any],
    versions: tuple[ssl.TLSVersion, ssl.TLSVersion],
) -> None:
    context = make_client_context(settings(**trusting(certificates), **values)).ssl
    assert (context.minimum_version, context.maximum_version) == versions


def test_no_version_left_is_reported(certificates: Certificates) -> None:
    both = {"ssl_protocol": "TLSv1.2", "ssl_enabled_protocols": ("TLSv1.3",)}
    with pytest.raises(ConfigError, match=r"no TLS version is left with ssl\.protocol=TLSv1\.2"):
        make_client_context(settings(**trusting(certificates), **both))


def test_suites_that_openssl_lacks_are_logged_and_left_out(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    suites = ("TLS_RSA_WITH_RC4_128_MD5", SUITE_12)
    with caplog.at_level(logging.WARNING):
        context = make_client_context(settings(**trusting(certificates), ssl_cipher_suites=suites))
    offered = {suite["name"] for suite in context.ssl.get_ciphers()}
    assert "ECDHE-RSA-AES256-GCM-SHA384" in offered
    assert "OpenSSL has no TLS_RSA_WITH_RC4_128_MD5" in caplog.text


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
        ("SSL_RSA_WITH_3DES_EDE_CBC_SHA", "DES-CBC3-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_suites_have_names_of_openssl(suite: str, name: str) -> None:
    assert openssl_name(suite) == name
