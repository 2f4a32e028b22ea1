"""Two workers whose REST APIs have locks: https, certificates and passwords."""

from __future__ import annotations

import os
import signal
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from sparkmirror.config.worker.rest_security import BASIC_AUTH
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import store_properties
from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.process import Child, log_tail, start_child
from sparkmirror.rest.security.login_config import LOGIN_MODULE
from tests.certificates import PASSWORD, Certificates
from tests.clusters import unique_name, wait_for
from tests.rest.security.test_users import quick_hash

pytestmark = pytest.mark.kafka

_MIRROR = "org.apache.kafka.connect.mirror."
_ADMIN, _READER = ("admin", "all-of-it-1"), ("reader", "a-look-2")


class SecureWorker:
    """One worker process; callers show a certificate and log in."""

    def __init__(self, url: str, child: Child, log_path: Path, tls: ssl.SSLContext) -> None:
        self.url, self.log_path = url, log_path
        self._child, self._tls = child, tls

    def ask(
        self, method: str, path: str, user: tuple[str, str] | None = _ADMIN, body: object = None
    ) -> httpx.Response:
        with httpx.Client(verify=self._tls, auth=user, trust_env=False, timeout=60) as client:
            return client.request(method, self.url + path, json=body)

    def is_healthy(self) -> bool:
        assert self._child.exit_code is None, log_tail(self.log_path, 40)
        try:
            return self.ask("GET", "/health").status_code == 200
        except httpx.TransportError:
            return False

    def knows(self, names: list[str]) -> bool:
        return bool(self.ask("GET", "/connectors").json() == names)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_for(condition, within=90, describe=lambda: log_tail(self.log_path, 40))


class Scene:
    """What both workers have in common, and files for each."""

    def __init__(self, folder: Path, cluster: KafkaCluster) -> None:
        self._folder, self._cluster = folder, cluster
        self._certificates = Certificates(folder)
        self._group = unique_name("secure")
        self.users = folder / "users.properties"
        self.users.write_text(f"admin: {quick_hash(_ADMIN[1])}\nreader: {_READER[1]}\n")
        self._jaas = folder / "jaas.conf"
        self._jaas.write_text(f'KafkaConnect {{ {LOGIN_MODULE} required file="{self.users}"; }};')

    def caller(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._certificates.ca_pem)
        context.load_cert_chain(self._certificates.pem("client"))
        return context

    @contextmanager
    def worker(self, name: str, settings: dict[str, str]) -> Iterator[SecureWorker]:
        file, log_path = self._folder / f"{name}.properties", self._folder / f"{name}.log"
        environment = {
            **os.environ,
            "KAFKA_OPTS": f"-Xmx1g -Djava.security.auth.login.config={self._jaas}",
        }
        command: list[str | Path] = [sys.executable, "-m", "sparkmirror.cli.main", "worker", file]
        with ReservedPort() as port:
            url = f"https://{HOST}:{port.number}"
            store_properties(file, {**self._settings(), **settings, "listeners": url})
            child = start_child(command, log_path, environment=environment)
            try:
                yield SecureWorker(url, child, log_path, self.caller())
                child.send(signal.SIGTERM)
                assert child.wait(20) == 0, log_tail(log_path, 40)
            finally:
                child.kill()

    def _settings(self) -> dict[str, str]:
        converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
        topics = {f"{kind}.storage.topic": f"{self._group}-{kind}" for kind in _STORES}
        copies = {f"{kind}.storage.replication.factor": "1" for kind in _STORES}
        return {
            "bootstrap.servers": self._cluster.bootstrap_servers,
            "group.id": self._group,
            "key.converter": converter,
            "value.converter": converter,
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "listeners.https.ssl.keystore.location": str(self._certificates.pkcs12("broker")),
            "listeners.https.ssl.keystore.password": PASSWORD,
            "listeners.https.ssl.keystore.type": "PKCS12",
            "listeners.https.ssl.truststore.location": str(self._certificates.ca_pem),
            "listeners.https.ssl.truststore.type": "PEM",
            "listeners.https.ssl.client.auth": "required",
            "rest.read.only.users": "reader",
            **topics,
            **copies,
        }

    def heartbeats(self) -> dict[str, str]:
        """A connector that needs no Spark."""
        return {
            "connector.class": f"{_MIRROR}MirrorHeartbeatConnector",
            "source.cluster.alias": "a",
            "target.cluster.alias": "b",
            "source.cluster.bootstrap.servers": self._cluster.bootstrap_servers,
            "target.cluster.bootstrap.servers": self._cluster.bootstrap_servers,
            "heartbeats.topic.replication.factor": "1",
        }


_STORES = ("config", "offset", "status")


def test_workers_with_locks_work_together(tmp_path: Path, target_cluster: KafkaCluster) -> None:
    scene = Scene(tmp_path, target_cluster)
    ways = {
        "jaas": {"rest.extension.classes": BASIC_AUTH},
        "own": {"rest.basic.auth.users.file": str(scene.users)},
    }
    with ExitStack() as stack:
        workers = [stack.enter_context(scene.worker(*way)) for way in ways.items()]
        for worker in workers:
            worker.wait_for(worker.is_healthy)
        _check_locks(workers)
        # One of the two asks the other over https, with its own certificate and the user's login.
        for number, worker in enumerate(workers):
            created = worker.ask("PUT", f"/connectors/h{number}/config", body=scene.heartbeats())
            assert created.status_code == 201, created.text
            assert created.headers["location"] == f"{worker.url}/connectors/h{number}"
        for worker in workers:
            worker.wait_for(partial(worker.knows, ["h0", "h1"]))
    for worker in workers:
        log = worker.log_path.read_text()
        assert "has no authentication" not in log
        assert not [word for word in (*_ADMIN[1:], *_READER[1:], PASSWORD) if word in log]


def _check_locks(workers: list[SecureWorker]) -> None:
    for worker in workers:
        assert worker.ask("GET", "/connectors", user=None).status_code == 401
        assert worker.ask("GET", "/connectors", user=("admin", "wrong")).status_code == 401
        assert worker.ask("GET", "/connectors", user=_READER).status_code == 200
        assert worker.ask("DELETE", "/connectors/x", user=_READER).status_code == 403
        with pytest.raises(httpx.TransportError):  # no certificate
            httpx.get(f"{worker.url}/", verify=False, trust_env=False)
