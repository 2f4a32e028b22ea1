"""TLS and client certificates at a real broker: source and target of a mirror, and failures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkmirror.config.clients import ClientConfig, parse_client
from sparkmirror.config.findings import Findings, Settings
from sparkmirror.errors import AuthenticationError, ConfigError, KafkaError, TransportError
from sparkmirror.wire.admin.admin_client import AdminClient
from sparkmirror.wire.client.metadata import BOOTSTRAP
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.client.reachability import check_reachable
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.event_loop import EventLoop
from tests.certificates import PASSWORD, Certificates
from tests.clusters import create_topic, unique_name
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import assert_identical, fill, wait_for_end
from tests.secure_cluster import SecureCluster

pytestmark = pytest.mark.kafka

RECORDS = 500
WAIT_SECONDS = 20.0
CONFIGURATION, UNREACHABLE = 2, 1


def client_config(settings: dict[str, str], alias: str = "a") -> ClientConfig:
    findings = Findings()
    config = parse_client(Settings(settings, findings), alias)
    findings.raise_errors()
    return config


# -- copying -------------------------------------------------------------------------------------


def users_lines(secure: SecureCluster, truststore: Path) -> dict[str, str]:
    """A file of users (B of their scenarios): a source behind TLS, a target on plain ports."""
    return {
        "clusters": "source, target",
        "source.bootstrap.servers": secure.kafka.servers_of("SSL"),
        "source.security.protocol": "SSL",
        "source.ssl.truststore.location": str(truststore),
        "source.ssl.truststore.password": "password",
        "target.bootstrap.servers": secure.kafka.bootstrap_servers,
        "source->target.enabled": "true",
    }


def key_in_jks(secure: SecureCluster) -> dict[str, str]:
    """A client certificate in Java's old format, its key with a password of its own."""
    certificates = secure.certificates
    return {
        "bootstrap.servers": secure.kafka.servers_of("MTLS"),
        "security.protocol": "SSL",
        "ssl.truststore.location": str(certificates.trust_jks),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": str(certificates.key_jks("client", key_password="key-word")),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": "key-word",
    }


def key_in_the_file(secure: SecureCluster) -> dict[str, str]:
    """Everything in the properties themselves, as PEM; TLS 1.2 and two cipher suites."""
    certificates = secure.certificates
    return {
        "bootstrap.servers": secure.kafka.servers_of("MTLS").replace("127.0.0.1", "localhost"),
        "security.protocol": "SSL",
        "ssl.protocol": "TLSv1.2",
        "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": _one_value(certificates.ca.pem),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": _one_value(certificates.client.key_pem("key-word")),
        "ssl.keystore.certificate.chain": _one_value(certificates.client.pem),
        "ssl.key.password": "key-word",
    }


def _one_value(pem: str) -> str:
    return pem.strip().replace("\n", " \\\n")


# TLS, and TLS with a client certificate, each as a source and as a target.
FLOWS = {"source": "target", "jks": "pem", "pem": "source"}
COMMON = {
    "emit.heartbeats.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "heartbeats.replication.enabled": "false",
    "sync.topic.acls.enabled": "false",
    "sync.topic.configs.enabled": "false",
    "refresh.topics.interval.seconds": "1",
    "offset.storage.partitions": "1",
    "tasks.max": "1",
    **dict.fromkeys(
        (
            "replication.factor",
            "offset-syncs.topic.replication.factor",
            "offset.storage.replication.factor",
            "status.storage.replication.factor",
            "config.storage.replication.factor",
        ),
        "1",
    ),
}


def test_every_kind_of_store_is_a_source_and_a_target(
    secure_cluster: SecureCluster, tmp_path: Path
) -> None:
    kafka, prefix = secure_cluster.kafka, unique_name("tls")
    truststore = secure_cluster.certificates.import_ca("users.jks", "JKS", "password")
    lines = {
        **COMMON,
        **users_lines(secure_cluster, truststore),
        "clusters": "source, target, jks, pem",
        **{f"jks.{key}": value for key, value in key_in_jks(secure_cluster).items()},
        **{f"pem.{key}": value for key, value in key_in_the_file(secure_cluster).items()},
    }
    for source, target in FLOWS.items():
        fill(kafka, create_topic(kafka, f"{prefix}-{source}"), RECORDS)
        lines |= {
            f"{source}->{target}.enabled": "true",
            f"{source}->{target}.topics": f"{prefix}-{source}",
        }
    mirror = Mirror(tmp_path, kafka, kafka, "")
    mirror._settings = lines
    mirror.configure({})
    with mirror:
        for alias in FLOWS:
            mirror.alias = alias
            wait_for_end(mirror, f"{prefix}-{alias}", RECORDS)
            assert_identical(mirror, f"{prefix}-{alias}")
        mirror.stop()
    # On a busy machine a partition may wait for its leader.
    said = [line for line in mirror.log().splitlines() if " waits: " not in line]
    assert [line for line in said if "WARN" in line] == []
    assert "key-word" not in mirror.log()


# -- failures ------------------------------------------------------------------------------------


def other_authority(secure: SecureCluster) -> dict[str, str]:
    return {"ssl.truststore.location": str(secure.certificates.pkcs12("other_ca"))}


def without(settings: dict[str, str], word: str) -> dict[str, str]:
    return {key: value for key, value in settings.items() if word not in key}


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        pytest.param(
            lambda secure: secure.client("EXPIRED"),
            AuthenticationError,
            "TLS handshake: the broker's certificate has expired; renew it, and check this "
            "machine's clock",
            id="expired certificate",
        ),
        pytest.param(
            lambda secure: secure.client("WRONG_NAME"),
            AuthenticationError,
            "TLS handshake: the broker's certificate is for another host name than the one we "
            "connect to; use a name of the certificate in bootstrap.servers and the broker's "
            "advertised.listeners",
            id="wrong host name",
        ),
        pytest.param(
            lambda secure: secure.client("SSL") | other_authority(secure),
            AuthenticationError,
            "TLS handshake: the broker's certificate is signed by no CA that we trust; put its CA "
            "certificate into the trust store (ssl.truststore.location)",
            id="unknown CA",
        ),
        pytest.param(
            lambda secure: without(secure.client("MTLS"), "keystore"),
            AuthenticationError,
            "TLS handshake: the broker wants a client certificate; set ssl.keystore.location to a "
            "store with one that it accepts",
            id="no client certificate",
        ),
        pytest.param(
            lambda secure: secure.client("MTLS") | secure.own_key("stranger"),
            AuthenticationError,
            "TLS handshake: the broker does not accept our client certificate; check that the "
            "broker trusts its CA (ssl.keystore.location)",
            id="unknown client certificate",
        ),
        pytest.param(
            lambda secure: (
                secure.client("SSL") | {"bootstrap.servers": secure.kafka.bootstrap_servers}
            ),
            TransportError,
            "TLS handshake: the broker closed the connection; perhaps the server there does not "
            "speak TLS; check the port in bootstrap.servers and security.protocol",
            id="TLS on a plain port",
        ),
        pytest.param(
            lambda secure: secure.client("SSL") | {"security.protocol": "PLAINTEXT"},
            TransportError,
            "the broker closed the connection; perhaps it wants TLS: check security.protocol and "
            "the port",
            id="plain on a TLS port",
        ),
        pytest.param(
            lambda secure: secure.client("SASL_PLAINTEXT") | {"security.protocol": "PLAINTEXT"},
            TransportError,
            "the broker closed the connection; perhaps it wants a login: check security.protocol "
            "and the port",
            id="plain on a SASL port",
        ),
    ],
)
def test_cause_and_remedy_are_told_in_one_line(
    secure_cluster: SecureCluster,
    settings: Callable[[SecureCluster], dict[str, str]],
    kind: type[KafkaError],
    said: str,
) -> None:
    config = client_config(settings(secure_cluster))
    with pytest.raises(kind) as raised:
        check_reachable(config)
    (server,) = config.bootstrap_servers
    line = str(raised.value)
    assert line.startswith(f"cluster 'a', broker {server}: ")
    assert line.endswith(said)


def test_name_may_be_left_unchecked(secure_cluster: SecureCluster) -> None:
    unchecked = {"ssl.endpoint.identification.algorithm": ""}
    check_reachable(client_config(secure_cluster.client("WRONG_NAME") | unchecked))


def test_admin_clients_use_the_same_certificates(secure_cluster: SecureCluster) -> None:
    client = AdminClient(client_config(secure_cluster.client("MTLS")), 10_000)
    try:
        assert client.cluster_id()
    finally:
        client.close()


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        pytest.param(
            {"source.ssl.truststore.password": "wrong-word"},
            CONFIGURATION,
            "ssl.truststore.password: FILE: the password is wrong, or the file is damaged; check "
            "it with keytool -list",
            id="password",
        ),
        pytest.param(
            {"source.bootstrap.servers": "EXPIRED"},
            UNREACHABLE,
            "TLS handshake: the broker's certificate has expired; renew it, and check this "
            "machine's clock",
            id="expired",
        ),
    ],
)
def test_program_ends_with_one_line(
    secure_cluster: SecureCluster, tmp_path: Path, change: dict[str, str], code: int, said: str
) -> None:
    truststore = secure_cluster.certificates.trust_jks
    expired = secure_cluster.kafka.servers_of("EXPIRED")
    lines = users_lines(secure_cluster, truststore) | COMMON
    lines |= {"source.ssl.truststore.password": PASSWORD}
    lines |= {key: value.replace("EXPIRED", expired) for key, value in change.items()}
    file = tmp_path / "mm2.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    command = [sys.executable, "-m", "sparkmirror.cli.main", "run", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    [line] = [line for line in done.stderr.splitlines() if said[-30:] in line]
    assert said.replace("FILE", str(truststore)) in line
    assert "source" in line
    assert "Traceback" not in done.stderr
    assert "wrong-word" not in done.stderr + done.stdout


# -- certificates that change --------------------------------------------------------------------


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    loop = EventLoop()
    yield loop
    loop.close()


def test_certificate_that_is_replaced_is_used_without_a_restart(
    secure_cluster: SecureCluster, tmp_path: Path, loop: EventLoop
) -> None:
    own = Certificates(tmp_path)
    key = own.write("key.p12", secure_cluster.certificates.stranger.pkcs12())
    settings = secure_cluster.client("MTLS") | {"ssl.keystore.location": str(key)}
    cluster = NetworkClient(loop, client_config(settings), BufferPool(keep_bytes=0))
    try:
        assert cluster.any_connection() is None
        assert loop.run_until(lambda: cluster.failures(BOOTSTRAP) > 0, WAIT_SECONDS)
        assert isinstance(cluster.last_error, AuthenticationError)
        own.write("key.p12", secure_cluster.certificates.client.pkcs12())
        assert loop.run_until(lambda: cluster.any_connection() is not None, WAIT_SECONDS)
    finally:
        cluster.close()


def test_store_that_cannot_be_read_is_a_configuration_error(
    secure_cluster: SecureCluster, tmp_path: Path
) -> None:
    settings = secure_cluster.client("SSL") | {"ssl.truststore.location": str(tmp_path / "none")}
    with pytest.raises(ConfigError, match=r"cluster 'a': ssl\.truststore\.location=.*No such file"):
        check_reachable(client_config(settings))
