"""Each login mechanism at a real broker: source and target of a mirror, and its failures."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import AuthenticationError, KafkaError
from sparkmirror.wire import secret_files
from sparkmirror.wire.admin.admin_client import AdminClient
from sparkmirror.wire.client.metadata import BOOTSTRAP
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.client.reachability import check_reachable
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.protocol import messages
from sparkmirror.wire.sasl import authenticator as authenticators
from sparkmirror.wire.sasl import gss_library
from sparkmirror.wire.sasl.authenticator import Authenticator
from sparkmirror.wire.security import Security
from tests.clusters import create_topic, end_offset, wait_for
from tests.kafka.login_cluster import ALIASES, SESSION_MS, LoginCluster, start_login_cluster
from tests.kafka.mirror_process import COPY_SECONDS, Mirror
from tests.kafka.records import Feeder, assert_identical, fill
from tests.mm2_suite.topics import topic_names
from tests.secure_cluster import USER, USER_PASSWORD, add_scram_user

pytestmark = pytest.mark.kafka

RECORDS = 200
FEED_SECONDS = 2.5 * SESSION_MS / 1000
# Each login is the source of one flow and the target of another: source->scram256->...->source.
FLOWS = list(zip(ALIASES, (*ALIASES[1:], ALIASES[0]), strict=True))


@pytest.fixture(scope="module")
def logins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginCluster]:
    with start_login_cluster(tmp_path_factory.mktemp("logins")) as cluster:
        yield cluster


def mirror_file(logins: LoginCluster) -> dict[str, str]:
    """An mm2 file with one flow from each login to the next."""
    lines = {"clusters": ", ".join(ALIASES)}
    for alias in ALIASES:
        lines |= {f"{alias}.{key}": value for key, value in logins.client(alias).items()}
    for source, target in FLOWS:
        lines |= {
            f"{source}->{target}.enabled": "true",
            f"{source}->{target}.topics": topic(source),
        }
    return {
        **lines,
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "refresh.topics.interval.seconds": "1",
        "offset.storage.partitions": "1",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "tasks.max": "1",
    }


def topic(alias: str) -> str:
    return f"orders-{alias}"


def test_every_login_is_a_source_and_a_target(logins: LoginCluster, tmp_path: Path) -> None:
    """While records keep coming, the short sessions end and are renewed twice and more."""
    for alias in ALIASES:
        create_topic(logins.kafka, topic(alias))
        fill(logins.kafka, topic(alias), RECORDS)
    mirror = Mirror(tmp_path, logins.kafka, logins.kafka, "")
    mirror._settings = mirror_file(logins)
    mirror.configure({})
    with mirror:
        for alias in ALIASES:
            wait_for_copy(logins, alias, mirror)
        with Feeder(logins.kafka, topic("short"), 1, per_second=500):
            time.sleep(FEED_SECONDS)
        wait_for_copy(logins, "short", mirror)
        assert " login" not in mirror.log()
        refuse_for_a_while(logins, mirror)
        mirror.stop()
    for alias in ALIASES:
        mirror.alias = alias
        assert_identical(mirror, topic(alias))
    assert logins.iam.door.logins > 0
    assert not re.search("(alice|token|client)-secret|aws/.secret", mirror.log())


def refuse_for_a_while(logins: LoginCluster, mirror: Mirror) -> None:
    """A flow that may no longer log in waits, reports why, and continues when it may."""
    add_scram_user(logins.kafka, USER, "another")
    mirror.wait_for_log("SCRAM-SHA-512 login as 'alice': Authentication failed")
    fill(logins.kafka, topic("short"), RECORDS, first=end_offset(logins.kafka, topic("short")))
    add_scram_user(logins.kafka, USER, USER_PASSWORD)
    wait_for_copy(logins, "short", mirror)


def wait_for_copy(logins: LoginCluster, alias: str, mirror: Mirror) -> None:
    copy = f"{alias}.{topic(alias)}"

    def ends() -> tuple[int, int]:
        there = end_offset(logins.kafka, topic(alias))
        return there, end_offset(logins.kafka, copy) if copy in topic_names(logins.kafka) else -1

    def is_done() -> bool:
        there, here = ends()
        return there == here

    wait_for(
        is_done, within=COPY_SECONDS, describe=lambda: f"{copy} at {ends()}; {mirror.log_end()}"
    )


@pytest.mark.parametrize("alias", ALIASES)
def test_admin_clients_log_in_too(logins: LoginCluster, alias: str) -> None:
    client = AdminClient(logins.config(alias), 10_000)
    try:
        assert client.cluster_id()
    finally:
        client.close()


def test_an_admin_client_that_is_shut_out_is_let_in_again(logins: LoginCluster) -> None:
    client = AdminClient(logins.config("short"), 10_000)
    try:
        add_scram_user(logins.kafka, USER, "another")
        time.sleep(SESSION_MS / 1000)
        with pytest.raises(AuthenticationError, match="SCRAM-SHA-512 login as 'alice'"):
            client.cluster_id()
        add_scram_user(logins.kafka, USER, USER_PASSWORD)
        wait_for(lambda: _is_let_in(client), within=15.0, describe="the client is let in")
    finally:
        add_scram_user(logins.kafka, USER, USER_PASSWORD)
        client.close()


def _is_let_in(client: AdminClient) -> bool:
    try:
        return bool(client.cluster_id())
    except KafkaError:
        return False


def test_a_session_is_renewed_on_the_connection_that_is_in_use(
    logins: LoginCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Authenticator] = []

    def noted(security: Security, host: str) -> Authenticator | None:
        made.append(Authenticator(security._login, host))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(Security, "authenticator", noted)
    # Earlier than it has to be: a busy machine may be late.
    monkeypatch.setattr(authenticators, "EARLIEST", 0.5)
    monkeypatch.setattr(authenticators, "LATEST", 0.6)
    with Asking(logins.config("short")) as asking:
        asking.ask_for(1.5 * SESSION_MS / 1000)
        deadline = time.monotonic() + 30.0
        while made[0].logins < 3 and time.monotonic() < deadline:
            asking.ask_for(0.5)
        assert asking.answers > 100
        assert asking.errors == []
    (authenticator,) = made
    assert authenticator.logins >= 3
    assert authenticator.lifetime_ms <= SESSION_MS


class Asking:
    """Sends one request after the other over one connection, five at a time."""

    def __init__(self, config: ClientConfig) -> None:
        self.loop = EventLoop()
        self.cluster = NetworkClient(self.loop, config, BufferPool(keep_bytes=0))
        self.answers = 0
        self.errors: list[KafkaError] = []

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()
        self.loop.close()

    def ask_for(self, seconds: float) -> None:
        assert self.loop.run_until(lambda: self._connection() is not None, 10.0)
        connection = self._connection()
        assert connection is not None
        deadline = self.loop.clock() + seconds
        while self.loop.clock() < deadline:
            while connection.in_flight < 5:
                connection.send(
                    messages.API_VERSIONS, [], self._on_response, self.errors.append, 10
                )
            self.loop.run_once(0.05)
        assert self._connection() is connection

    def _connection(self) -> Connection | None:
        return self.cluster.connection(BOOTSTRAP)

    def _on_response(self, response: memoryview, _: object) -> None:
        assert messages.decode_api_versions(response)
        self.answers += 1


def test_wrong_password(logins: LoginCluster) -> None:
    for alias, user in {"source": "token", "scram256": USER, "scram512": USER}.items():
        line = logins.client(alias)["sasl.jaas.config"].replace(f"{user}-secret", "SECRET")
        text = refused(logins.config(alias, sasl_jaas_config=line))
        assert f"login as '{user}': Authentication failed" in text
        assert "; check user name and password in sasl.jaas.config" in text


def test_a_mechanism_that_the_listener_lacks(logins: LoginCluster) -> None:
    servers = logins.client("short")["bootstrap.servers"]
    text = refused(logins.config("source", bootstrap_servers=servers))
    assert "the broker offers SCRAM-SHA-512 on this listener; set sasl.mechanism" in text


@pytest.mark.parametrize(
    ("protocol", "listener"), [("SASL_PLAINTEXT", "PLAINTEXT"), ("SASL_SSL", "SSL")]
)
def test_a_login_where_none_is_wanted(logins: LoginCluster, protocol: str, listener: str) -> None:
    kafka = logins.kafka
    servers = kafka.bootstrap_servers if listener == "PLAINTEXT" else kafka.servers_of(listener)
    changes = {"bootstrap_servers": servers, "security_protocol": protocol}
    assert "this listener has no logins" in refused(logins.config("source", **changes))


def test_a_token_that_the_broker_does_not_take(logins: LoginCluster) -> None:
    servers = logins.client("tokens")["bootstrap.servers"]
    text = refused(logins.config("unsecured", bootstrap_servers=servers))
    assert "OAUTHBEARER login as 'alice'" in text
    assert "invalid_token" in text


def test_a_token_server_whose_clock_is_wrong(logins: LoginCluster) -> None:
    logins.tokens.skew_seconds = 3600.0
    try:
        url = f"{logins.tokens.token_url}?ahead"
        text = refused(logins.config("tokens", sasl_oauthbearer_token_endpoint_url=url))
        logins.tokens.skew_seconds = -3600.0
        url = f"{logins.tokens.token_url}?behind"
        expired = refused(logins.config("tokens", sasl_oauthbearer_token_endpoint_url=url))
    finally:
        logins.tokens.skew_seconds = 0.0
    assert re.search(r"this machine's clock is 3\d{3} s behind the server's: correct it", text)
    assert "?ahead" not in text
    assert "expired" in expired
    assert "compare the clocks" in expired


def test_a_token_server_that_is_down(logins: LoginCluster) -> None:
    changes = {
        "sasl_oauthbearer_token_endpoint_url": "http://127.0.0.1:1/token",
        "sasl_login_retry_backoff_max_ms": "200",
    }
    text = refused(logins.config("tokens", **changes))
    assert "get a token from http://127.0.0.1:1/token: Connection refused" in text


def test_a_keytab_of_somebody_else(logins: LoginCluster) -> None:
    line = logins.client("kerberos")["sasl.jaas.config"].replace("alice@", "bob@")
    text = refused(logins.config("kerberos", sasl_jaas_config=line))
    assert "check that the keytab has a key of this principal" in text


def test_tickets_of_a_cache(logins: LoginCluster, tmp_path: Path) -> None:
    """What kinit leaves behind, also where the worker's file is not there but its bytes are."""
    cache = tmp_path / "cache"
    store = {"client_keytab": f"FILE:{logins.alice}", "ccache": f"FILE:{cache}"}
    ticket = gss_library.Credentials(
        gss_library.GssName("alice", gss_library.PRINCIPAL_NAME), store
    )
    service = gss_library.GssName("kafka@127.0.0.1", gss_library.HOST_BASED_SERVICE)
    assert gss_library.GssContext(service, ticket).step(b"")
    line = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true "
    check_reachable(logins.config("kerberos", sasl_jaas_config=f'{line} ticketCache="{cache}";'))
    elsewhere = tmp_path / "elsewhere"
    text = refused(logins.config("kerberos", sasl_jaas_config=f'{line} ticketCache="{elsewhere}";'))
    assert "check keyTab and ticketCache" in text
    secret_files.provide(str(elsewhere), cache.read_bytes())
    try:
        check_reachable(
            logins.config("kerberos", sasl_jaas_config=f'{line} ticketCache="{elsewhere}" a=b;')
        )
    finally:
        secret_files.forget_provided()


def test_a_service_that_the_kdc_does_not_know(logins: LoginCluster) -> None:
    text = refused(logins.config("kerberos", sasl_kerberos_service_name="nobody"))
    assert "not found in Kerberos database; check sasl.kerberos.service.name" in text


def test_a_kdc_that_is_down(logins: LoginCluster) -> None:
    line = logins.client("kerberos")["sasl.jaas.config"].replace(";", " debug=true;")
    logins.kdc.stop()
    try:
        text = refused(logins.config("kerberos", sasl_jaas_config=line))
    finally:
        logins.kdc.start()
    assert "Cannot contact any KDC" in text


def refused(config: ClientConfig) -> str:
    """The message: one line, soon, with the cluster and the address, and without a secret."""
    began = time.monotonic()
    with pytest.raises(AuthenticationError) as caught:
        check_reachable(config)
    assert time.monotonic() - began < 20.0
    text = str(caught.value)
    assert text.startswith(f"cluster '{config.alias}', broker 127.0.0.1:")
    assert "\n" not in text
    assert "SECRET" not in text
    return text
