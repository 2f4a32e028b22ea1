"""TLS between our connections and a peer: handshakes, bytes, and everything that goes wrong."""

from __future__ import annotations

import random
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from sparkmirror.errors import AuthenticationError, KafkaError, TransportError
from sparkmirror.wire.net.buffer_pool import BufferPool, PooledBuffer
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.tls.tls_context import TlsSettings, make_client_context
from sparkmirror.wire.tls.tls_stream import TlsStream
from tests.certificates import PASSWORD, Certificates
from tests.wire.tls_peers import Forwarder, TlsPeer, read_exactly, server_context

WAIT_SECONDS = 20.0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


def trust(certificates: Certificates) -> dict[str, Any]:
    return {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca_pem),
    }


class Line:
    """One connection over TLS, and what it reports."""

    def __init__(self, port: int, settings: Mapping[str, Any], host: str = "127.0.0.1") -> None:
        self.loop = EventLoop()
        self.opened = False
        self.errors: list[KafkaError] = []
        self.responses: list[bytes] = []
        context = make_client_context(TlsSettings(settings, "cluster 'a'"))
        self.connection = Connection(
            self.loop,
            TlsStream(host, port, -1, -1, context=context),
            "test",
            BufferPool(1 << 20),
            on_open=self._on_open,
            on_closed=self.errors.append,
        )

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.fail(TransportError("the test is over"))
        self.loop.close()

    def _on_open(self) -> None:
        self.opened = True

    def ask(self, *body: bytes | memoryview, keep: bool = False) -> None:
        """Send a request; its response comes to `responses`."""

        def on_response(response: memoryview, buffer: PooledBuffer | None) -> None:
            self.responses.append(bytes(response))
            if buffer is not None:
                buffer.release()

        self.connection.send((0, 0), body, on_response, self.errors.append, 60.0, keep=keep)

    def run_until(self, done: Callable[[], bool]) -> None:
        assert self.loop.run_until(done, WAIT_SECONDS), (self.opened, self.errors, self.responses)


def response(correlation: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation) + body


def read_request(tls: ssl.SSLSocket) -> bytes:
    (size,) = struct.unpack(">i", read_exactly(tls, 4))
    return read_exactly(tls, size)[14:]  # behind the header and the client id


# -- bytes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [False, True], ids=["small", "kept"])
def test_responses_of_one_record_are_all_delivered(certificates: Certificates, keep: bool) -> None:
    def script(tls: ssl.SSLSocket) -> None:
        for _ in range(3):
            read_request(tls)
        tls.sendall(response(1, b"one") + response(2, b"two" * 30_000) + response(3, b"three"))
        tls.recv(1)

    with (
        TlsPeer(server_context(certificates, certificates.broker), script) as peer,
        Line(peer.port, trust(certificates)) as line,
    ):
        for _ in range(3):
            line.ask(b"?", keep=keep)
        line.run_until(lambda: len(line.responses) == 3)
        assert line.responses == [b"one", b"two" * 30_000, b"three"]


@pytest.mark.parametrize("piece_bytes", [977, 30_011, 1 << 20], ids=["cut", "halves", "whole"])
def test_large_responses_come_however_records_are_cut(
    certificates: Certificates, piece_bytes: int
) -> None:
    content = random.Random(1).randbytes(3 << 20)

    def script(tls: ssl.SSLSocket) -> None:
        for correlation in (1, 2):
            read_request(tls)
            whole = response(correlation, content) if correlation == 1 else response(2, b"end")
            for at in range(0, len(whole), 50_000):
                tls.sendall(whole[at : at + 50_000])
        tls.recv(1)

    with (
        TlsPeer(server_context(certificates, certificates.broker), script) as peer,
        Forwarder(peer.port, piece_bytes) as forwarder,
        Line(forwarder.port, trust(certificates)) as line,
    ):
        line.ask(b"?", keep=True)
        line.ask(b"?", keep=True)
        line.run_until(lambda: len(line.responses) == 2)
        assert line.responses == [content, b"end"]


def test_requests_arrive_whole_at_a_peer_that_is_slow(certificates: Certificates) -> None:
    chance = random.Random(2)
    bodies = [
        [chance.randbytes(chance.choice((1, 61, 5_000, 20_000, 300_000))) for _ in range(12)]
        for _ in range(20)
    ]
    received: list[bytes] = []

    def script(tls: ssl.SSLSocket) -> None:
        time.sleep(0.3)  # until the client's buffers are full
        for correlation in range(1, len(bodies) + 1):
            received.append(read_request(tls))
            tls.sendall(response(correlation, b""))
            time.sleep(0.002)
        tls.recv(1)

    with (
        TlsPeer(server_context(certificates, certificates.broker), script) as peer,
        Line(peer.port, trust(certificates)) as line,
    ):
        line.run_until(lambda: line.opened)
        for body in bodies:
            # Between two requests the first may wait for room, in the middle of a record.
            line.ask(*(memoryview(piece) for piece in body))
            line.loop.run_once(0.0)
        line.run_until(lambda: len(line.responses) == len(bodies))
    assert received == [b"".join(body) for body in bodies]


def test_end_of_the_stream_is_reported(certificates: Certificates) -> None:
    def script(tls: ssl.SSLSocket) -> None:
        read_request(tls)

    with (
        TlsPeer(server_context(certificates, certificates.broker), script) as peer,
        Line(peer.port, trust(certificates)) as line,
    ):
        line.ask(b"?")
        line.run_until(lambda: bool(line.errors))
        assert "the broker closed the connection" in str(line.errors[0])


# -- handshakes ----------------------------------------------------------------------------------


def refusal(port: int, settings: Mapping[str, Any], host: str = "127.0.0.1") -> KafkaError:
    """Why no response can be had."""
    with Line(port, settings, host) as line:
        line.ask(b"?")
        line.run_until(lambda: bool(line.errors) or bool(line.responses))
        assert line.responses == []
        return line.errors[0]


def test_client_certificate_is_shown(certificates: Certificates) -> None:
    names: list[Any] = []

    def script(tls: ssl.SSLSocket) -> None:
        read_request(tls)
        names.append(tls.getpeercert())
        tls.sendall(response(1, b"welcome"))
        tls.recv(1)

    context = server_context(certificates, certificates.broker, trusts=certificates.ca)
    own = {"ssl.keystore.location": str(certificates.pkcs12("client"))}
    settings = {**trust(certificates), **own, "ssl.keystore.password": PASSWORD}
    with TlsPeer(context, script) as peer, Line(peer.port, settings) as line:
        line.ask(b"?")
        line.run_until(lambda: bool(line.responses))
    assert names[0]["subject"] == ((("commonName", "client"),),)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        pytest.param("expired", "certificate has expired; renew it", id="expired"),
        pytest.param("wrong_name", "for another host name", id="host name"),
        pytest.param("unknown", "signed by no CA that we trust; put its CA", id="unknown CA"),
        pytest.param("early", "not valid yet; check this machine's clock", id="clock"),
    ],
)
def test_certificates_that_we_refuse(certificates: Certificates, shown: str, reason: str) -> None:
    issued = {
        "expired": certificates.expired,
        "wrong_name": certificates.wrong_name,
        "unknown": certificates.other_ca.issue("broker"),
        "early": certificates.ca.issue("early", starts=timedelta(days=2)),
    }[shown]
    with TlsPeer(server_context(certificates, issued), _wait) as peer:
        error = refusal(peer.port, trust(certificates))
    assert isinstance(error, AuthenticationError)
    assert str(error).startswith("TLS handshake: ")
    assert reason in str(error)
    assert "\n" not in str(error)


def _wait(tls: ssl.SSLSocket) -> None:
    tls.recv(1)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize(
    ("key", "reason"),
    [
        pytest.param(None, " wants a client certificate; ", id="none"),
        pytest.param("stranger", "does not accept our client certificate", id="unknown"),
    ],
)
def test_client_certificates_that_the_broker_refuses(
    certificates: Certificates, version: str, key: str | None, reason: str
) -> None:
    context = server_context(certificates, certificates.broker, trusts=certificates.ca)
    settings = {**trust(certificates), "ssl.protocol": version}
    if key is not None:
        own = {"ssl.keystore.location": str(certificates.pkcs12(key))}
        settings |= {**own, "ssl.keystore.password": PASSWORD}
    with TlsPeer(context, _wait) as peer:
        error = refusal(peer.port, settings)
    assert reason in str(error)
    assert "ssl.keystore.location" in str(error)


def test_host_name_may_be_left_unchecked(certificates: Certificates) -> None:
    settings = {**trust(certificates), "ssl.endpoint.identification.algorithm": ""}
    with (
        TlsPeer(server_context(certificates, certificates.wrong_name), _wait) as peer,
        Line(peer.port, settings) as line,
    ):
        line.run_until(lambda: line.opened)


def test_no_common_version_is_reported(certificates: Certificates) -> None:
    context = server_context(certificates, certificates.broker)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with TlsPeer(context) as peer:
        error = refusal(peer.port, {**trust(certificates), "ssl.protocol": "TLSv1.2"})
    assert "no TLS version or cipher suite in common; check ssl.enabled.protocols" in str(error)


def test_cipher_suites_are_those_of_the_list(certificates: Certificates) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    found: list[Any] = []

    def script(tls: ssl.SSLSocket) -> None:
        found.append(tls.cipher())
        tls.recv(1)

    with (
        TlsPeer(server_context(certificates, certificates.broker), script) as peer,
        Line(peer.port, {**trust(certificates), "ssl.cipher.suites": (suite,)}) as line,
    ):
        line.run_until(lambda: line.opened and bool(found))
    assert found[0][0] == "ECDHE-ECDSA-AES128-GCM-SHA256"


def test_broker_with_an_old_list_of_suites_is_reached_as_by_java(
    certificates: Certificates,
) -> None:
    context = server_context(certificates, certificates.broker)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES256-SHA")
    with TlsPeer(context, _wait) as peer, Line(peer.port, trust(certificates)) as line:
        line.run_until(lambda: line.opened)


@pytest.fixture(scope="module")
def weak(certificates: Certificates) -> ssl.SSLContext:
    """A broker with a key of 1024 bits."""
    key = rsa.generate_private_key(65537, 1024)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "weak")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key_pem = key.private_bytes(pem, form, serialization.NoEncryption())
    shown = certificate.public_bytes(pem)
    certificates.write("weak-ca.pem", shown)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.load_cert_chain(certificates.write("weak.pem", key_pem + shown))
    return context


def test_weak_certificate_is_reported_and_can_be_allowed(
    certificates: Certificates, weak: ssl.SSLContext
) -> None:
    place = {"ssl.truststore.location": str(certificates.folder / "weak-ca.pem")}
    settings = {"ssl.truststore.type": "PEM", **place}
    with TlsPeer(weak, _wait) as peer:
        error = refusal(peer.port, settings)
        assert "too weak; renew it (RSA 2048, SHA-256); until then ssl.cipher.suites=" in str(error)
        allowed = {**settings, "ssl.cipher.suites": ("DEFAULT@SECLEVEL=0",)}
        with Line(peer.port, allowed) as line:
            line.run_until(lambda: line.opened)


def test_suite_of_tls13_that_is_not_in_the_list_is_refused(certificates: Certificates) -> None:
    settings = {**trust(certificates), "ssl.cipher.suites": ("TLS_AES_128_CCM_SHA256",)}
    with TlsPeer(server_context(certificates, certificates.broker), _wait) as peer:
        error = refusal(peer.port, settings)
    assert "which ssl.cipher.suites does not have" in str(error)


@pytest.mark.parametrize(
    "greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["hangs up", "talks"]
)
def test_peer_without_tls_is_reported(certificates: Certificates, greeting: bytes) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        Line(listener.getsockname()[1], trust(certificates)) as line,
    ):
        peer, _ = listener.accept()
        with peer:
            peer.sendall(greeting)
            peer.shutdown(socket.SHUT_WR)
            line.run_until(lambda: bool(line.errors))
        assert "does not speak TLS; check the port" in str(line.errors[0])


def test_silent_peer_is_no_hang_and_no_busy_loop(certificates: Certificates) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        Line(listener.getsockname()[1], trust(certificates)) as line,
    ):
        turns, deadline = 0, time.monotonic() + 0.3
        while time.monotonic() < deadline:
            line.loop.run_once(0.1)
            turns += 1
        assert not line.opened
        assert turns < 10
