"""The REST API over https: key stores, certificates of callers, new certificates, forwarding."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from sparkmirror.config.config_def import Secret
from sparkmirror.config.worker.rest_security import RestTls
from sparkmirror.errors import ConfigError
from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.security.tls import client_contexts, listener_context
from sparkmirror.rest.security.users import Users
from tests.certificates import PASSWORD, Certificates
from tests.rest.fake_herder import FakeHerder
from tests.rest.requests import HEARTBEAT, NAME
from tests.rest.security.test_users import basic

Settings = dict[str, str | Secret]


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def _pem_store(certificates: Certificates, name: str = "broker") -> Settings:
    return {
        "ssl.keystore.location": str(certificates.pem(name)),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca_pem),
        "ssl.truststore.type": "PEM",
    }


def _stores(certificates: Certificates, kind: str) -> Settings:
    if kind == "PEM":
        return _pem_store(certificates)
    if kind == "inline PEM":
        own = certificates.broker
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": Secret(own.key_pem()),
            "ssl.keystore.certificate.chain": Secret(own.pem),
        }
    made = certificates.key_jks("broker") if kind == "JKS" else certificates.pkcs12("broker")
    return {
        "ssl.keystore.location": str(made),
        "ssl.keystore.password": Secret(PASSWORD),
        "ssl.keystore.type": kind,
    }


class Https:
    """Servers with TLS, and clients of them that trust the CA."""

    def __init__(self, certificates: Certificates, stack: ExitStack) -> None:
        self._certificates = certificates
        self._stack = stack

    def serve(self, herder: FakeHerder, tls: RestTls, users: Users | None = None) -> str:
        options = RestOptions(client_tls=client_contexts(tls), users=users)
        server = RestServer([("127.0.0.1", 0)], [listener_context(tls)])
        self._stack.enter_context(server).start(make_app(herder, options))
        return f"https://127.0.0.1:{server.ports[0]}"

    def request(
        self, url: str, method: str = "GET", path: str = "/connectors", **more: object
    ) -> httpx.Response:
        own = more.pop("own", None)
        context = ssl.create_default_context(cafile=self._certificates.ca_pem)
        if own is not None:
            context.load_cert_chain(self._certificates.pem(str(own)))
        with httpx.Client(verify=context, trust_env=False, timeout=20) as client:
            return client.request(method, url + path, **more)  # type: ignore[arg-type]


@pytest.fixture
def https(certificates: Certificates) -> Iterator[Https]:
    with ExitStack() as stack:
        yield Https(certificates, stack)


@pytest.mark.parametrize("kind", ["PEM", "inline PEM", "PKCS12", "JKS"])
def test_listener_with_a_key_store(https: Https, certificates: Certificates, kind: str) -> None:
    url = https.serve(FakeHerder(), RestTls(_stores(certificates, kind)))
    response = https.request(url)
    assert (response.status_code, response.json()) == (200, [])
    assert response.headers["cache-control"] == "no-store"


def test_location_of_a_new_connector_is_https(https: Https, certificates: Certificates) -> None:
    url = https.serve(FakeHerder(), RestTls(_pem_store(certificates)))
    body = {"name": "h", "config": HEARTBEAT}
    assert https.request(url, "POST", json=body).headers["location"] == f"{url}/connectors/h"


def test_plain_and_https_listeners_side_by_side(https: Https, certificates: Certificates) -> None:
    context = listener_context(RestTls(_pem_store(certificates)))
    addresses = [("127.0.0.1", 0)] * 3
    with RestServer(addresses, [None, context, None]).start(make_app(FakeHerder())) as server:
        first, second, third = server.ports
        for port in (first, third):
            response = httpx.get(f"http://127.0.0.1:{port}/connectors", trust_env=False)
            assert response.status_code == 200
            assert "cache-control" not in response.headers
        assert https.request(f"https://127.0.0.1:{second}").status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"http://127.0.0.1:{second}/", trust_env=False)
        with pytest.raises(httpx.ConnectError, match="SSL"):
            https.request(f"https://127.0.0.1:{first}")


@pytest.mark.parametrize(
    ("client_auth", "own", "is_answered"),
    [
        ("required", "client", True),
        ("required", None, False),
        ("required", "stranger", False),
        ("requested", "client", True),
        ("requested", None, True),
        ("requested", "stranger", False),
        ("none", None, True),
        ("none", "stranger", True),
    ],
)
def test_certificates_of_callers(
    https: Https, certificates: Certificates, client_auth: str, own: str | None, is_answered: bool
) -> None:
    url = https.serve(FakeHerder(), RestTls(_pem_store(certificates), client_auth))
    if is_answered:
        assert https.request(url, own=own).status_code == 200
    else:
        with pytest.raises(httpx.TransportError):
            https.request(url, own=own)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (None, "peer did not return a certificate"),
        ("stranger", "its certificate: unable to get local issuer certificate"),
    ],
)
def test_log_says_why_a_client_was_rejected(
    https: Https, certificates: Certificates, caplog: pytest.LogCaptureFixture, *,
    own: str | None, reason: str,
) -> None:  # fmt: skip
    url = https.serve(FakeHerder(), RestTls(_pem_store(certificates), "required"))
    with pytest.raises(httpx.TransportError):
        https.request(url, own=own)
    assert caplog.messages == [f"TLS rejected a client of the REST API: {reason}"]


def test_new_certificate_is_used_without_a_restart(
    https: Https, certificates: Certificates
) -> None:
    settings = _pem_store(certificates)
    url = https.serve(FakeHerder(), RestTls(settings))
    assert https.request(url).status_code == 200
    renewed = certificates.other_ca.issue("renewed")
    path = Path(str(settings["ssl.keystore.location"]))
    path.write_text("neither key nor certificate")
    assert https.request(url).status_code == 200  # the one of before
    path.write_text(renewed.key_pem() + renewed.pem)
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        https.request(url)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ssl.keystore.location": "/nowhere"}, r"ssl\.keystore\.location=/nowhere: the file can"),
        ({"ssl.keystore.type": "JKS"}, r"ssl\.keystore\.type"),
    ],
)
def test_store_that_cannot_be_used_is_an_error_at_start(
    certificates: Certificates, change: Settings, reason: str
) -> None:
    with pytest.raises(ConfigError, match=rf"REST API \(listeners\.https\.ssl\.\*\): {reason}"):
        listener_context(RestTls(_pem_store(certificates) | change, "none", "listeners.https."))


def test_workers_forward_over_https_with_their_certificate_and_the_callers_login(
    https: Https, certificates: Certificates, tmp_path: Path
) -> None:
    file = tmp_path / "users"
    file.write_text("admin: all-of-it\n")
    # Workers ask for certificates, also of each other: theirs is in the same store.
    tls = RestTls(_pem_store(certificates), "required")
    leader = FakeHerder()
    leader_url = https.serve(leader, tls, Users(file))
    follower_url = https.serve(FakeHerder(leader_url), tls, Users(file))
    headers = {"authorization": basic("admin:all-of-it")}
    put = https.request(
        follower_url, "PUT", f"/connectors/{NAME}/config", json=HEARTBEAT, headers=headers,
        own="client",
    )  # fmt: skip
    assert put.status_code == 201
    assert put.headers["location"].startswith(follower_url)
    assert leader.connectors() == [NAME]


def test_untrusted_leader_never_gets_the_password(https: Https, certificates: Certificates) -> None:
    leader = FakeHerder()
    leader_url = https.serve(leader, RestTls(_pem_store(certificates)))
    other = certificates.write("other-ca.pem", certificates.other_ca.pem)
    tls = RestTls(_pem_store(certificates) | {"ssl.truststore.location": str(other)})
    follower_url = https.serve(FakeHerder(leader_url), tls)
    response = https.request(follower_url, "DELETE", "/connectors/x")
    assert response.status_code == 500
    message = response.json()["message"]
    assert message.startswith("IO Error trying to forward REST request: ")
    assert "certificate" in message.lower()
    assert leader.asked == []


@pytest.mark.parametrize(("algorithm", "status"), [("https", 500), ("", 404)])
def test_name_in_the_leaders_certificate(
    https: Https, certificates: Certificates, algorithm: str, status: int
) -> None:
    named = certificates.wrong_name
    path = certificates.write("wrong.pem", named.key_pem() + named.pem)
    leader_tls = RestTls(_pem_store(certificates) | {"ssl.keystore.location": str(path)})
    leader_url = https.serve(FakeHerder(), leader_tls)
    check: Settings = {"ssl.endpoint.identification.algorithm": algorithm}
    follower_url = https.serve(FakeHerder(leader_url), RestTls(_pem_store(certificates) | check))
    assert https.request(follower_url, "DELETE", "/connectors/x").status_code == status


def test_suites_of_tls_1_3_cannot_be_chosen_and_that_is_reported(
    https: Https, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    suites = {"ssl.cipher.suites": ("TLS_AES_256_GCM_SHA384",)}
    tls = RestTls(_pem_store(certificates) | suites)
    url = https.serve(FakeHerder(), tls)
    assert https.request(url).status_code == 200
    assert "clients of a listener choose among all suites of TLS 1.3" in caplog.text
