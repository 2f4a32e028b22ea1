"""A Connect worker and its REST API at work, so that they read the settings of its file."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from sparkmirror.cli import serving
from sparkmirror.cli import worker as worker_command
from sparkmirror.cli.watching.monitoring import MetricsServer, Monitoring
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect.group.session_keys import SessionKey, SessionKeyRotation
from sparkmirror.connect.runtime import connect_distributed
from sparkmirror.connect.storage import all_offsets
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore
from sparkmirror.rest.signatures import RequestSigner
from tests.certificates import Certificates
from tests.config.worker_files import worker_with
from tests.every_key.proofs import CONNECTOR
from tests.every_key.recorder import Reads, recorded
from tests.every_key.scenes import ask_in_vain, no_admin_network, play_copy, two_clusters
from tests.spark.copies import OFFSETS
from tests.wire.fake_broker import FETCH, Do, FakeCluster, once


def play_worker(folder: Path) -> Reads:
    """A worker with all that it has, and a copy task that it starts."""
    with recorded() as reads, two_clusters() as (source, target):
        file = worker_with(_settings(folder, target))
        servers = ",".join(source.bootstrap_servers)
        props = CONNECTOR | {"name": "MirrorSourceConnector"}
        props |= {"source.cluster.bootstrap.servers": servers}
        play_copy(reads, props, file.props, source, target)
        _internal_topics(file, target)
        _rest(file)
        _group(file)
        _sessions(file)
        worker_command._use_format_of(file)
        _metrics(file)
        other = worker_with({})
        assert serving.users_of(other.rest) is None
    reads.name(file, ())
    reads.name(other, ())
    return reads


def _settings(folder: Path, target: FakeCluster) -> dict[str, str]:
    users = folder / "users"
    users.write_text("alice: secret\n")
    store = Certificates(folder).pem("broker")
    return {
        "bootstrap.servers": ",".join(target.bootstrap_servers),
        "offset.storage.topic": OFFSETS,
        "listeners": "http://127.0.0.1:0,https://127.0.0.1:0",
        "admin.listeners": "https://127.0.0.1:0",
        "ssl.keystore.location": str(store),
        "ssl.keystore.type": "PEM",
        "rest.basic.auth.users.file": str(users),
        "sparkmirror.metrics.listeners": "http://127.0.0.1:0",
        "sparkmirror.metrics.otlp.endpoint": "http://127.0.0.1:1/v1/metrics",
    }


def _internal_topics(file: WorkerFile, target: FakeCluster) -> None:
    """Positions are read over a connection that breaks once; an admin request has no answer."""
    target.intercept(FETCH, once(Do(drop=True)))
    store = KafkaOffsetBackingStore(file.worker, "c", "a")
    store.partitions = 25
    store.load()
    with no_admin_network():
        ask_in_vain(file.worker.client)


def _rest(file: WorkerFile) -> None:
    users = serving.users_of(file.rest)
    assert users is not None
    servers = serving._servers(file, users)
    assert len(servers) == 2
    serving.own_url_of(file.rest, [1] * len(file.rest.listeners))


def _group(file: WorkerFile) -> None:
    with (
        mock.patch.object(all_offsets, "prepare_storage_topic", return_value=25),
        mock.patch.object(connect_distributed, "_cluster_id", return_value="c"),
    ):
        connect_distributed.ConnectDistributed(file, "http://127.0.0.1:1/")


def _metrics(file: WorkerFile) -> None:
    """A scrape, at a port of its own and pushed."""
    monitoring = Monitoring(list, file.metrics, file.rest)
    server = MetricsServer(file.metrics, file.rest)
    assert len(server.bind().ports) == 1
    server.stop()
    assert monitoring.metrics().status == 200


def _sessions(file: WorkerFile) -> None:
    """A session key is made, found to be good, and signs a request."""
    keys: list[SessionKey] = []
    topic = mock.Mock(session_keys=lambda: keys, put_session_key=keys.append)
    rotation = SessionKeyRotation(file.inter_worker, topic, lambda: True)
    rotation.renew()
    rotation.renew()
    assert len(keys) == 1
    signer = RequestSigner(file.inter_worker, lambda: keys)
    signer.check("GET", b"/", b"", signer.headers("GET", b"/", b""))
