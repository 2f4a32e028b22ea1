"""A worker's file and its connectors', as Strimzi runs them, and that this program takes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkmirror.config.connector_spec import AnySpec, parse_connector
from sparkmirror.config.mirror_configs import CheckpointConfig, HeartbeatConfig, SourceConfig
from sparkmirror.config.validation.connector_validation import validate_connector
from sparkmirror.config.worker.worker_file import WorkerFile, load_worker
from sparkmirror.tools.convert.conversion import Format
from sparkmirror.tools.deploy.connector_files import read_files
from sparkmirror.wire.security import Security
from tests.tools.convert.resources import SET_UP_B, V1, Json, Pod, changed, notes_of, run

SOURCE, CHECKPOINT, HEARTBEAT = (f"mm2/mm2-{kind}-source.json" for kind in ("msc", "cpc", "hbc"))
PASSWORD = {"secretName": "user", "password": "password"}


def connectors_of(text: str) -> dict[str, dict[str, str]]:
    files = run(text, Format.CONNECTORS).files
    return {name: json.loads(each) for name, each in files.items() if name.startswith("mm2/")}


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pod has in its environment."""
    monkeypatch.setenv("POD_IP", "10.1.2.3")


def load(text: str, folder: Path) -> tuple[WorkerFile, dict[str, AnySpec]]:
    """The worker of a pod, and the connectors that it runs."""
    pod = Pod(folder, run(text, Format.CONNECTORS))
    worker = load_worker(pod.at("/etc/sparkmirror/connect-distributed.properties"))
    parsed = {}
    for name, props in pod.connectors().items():
        response = validate_connector(None, dict(props), worker)
        assert response["error_count"] == 0, response
        parsed[name] = parse_connector(props, worker)
    return worker, parsed


def test_set_up_b() -> None:
    done = run(SET_UP_B, Format.CONNECTORS)
    names = [f"mm2/mm2-{kind}-source.json" for kind in ("cpc", "hbc", "msc")]
    assert sorted(done.files) == ["connect-distributed.properties", "kubernetes.yaml", *names]
    assert json.loads(done.files[SOURCE]) == {
        "name": "source->target.MirrorSourceConnector",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "source",
        "source.cluster.bootstrap.servers": "source.example.com:443",
        "source.cluster.security.protocol": "SSL",
        "source.cluster.ssl.truststore.type": "PEM",
        "source.cluster.ssl.truststore.location": "/etc/sparkmirror/secrets/source-ca/ca.crt",
        "target.cluster.alias": "target",
        "target.cluster.bootstrap.servers": "kafka1:9092,kafka2:9093,kafka3:9094",
        "target.cluster.security.protocol": "PLAINTEXT",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "topics": "orders",
    }
    assert notes_of(done) == {}


def test_connectors_that_the_resource_lacks_are_switched_off() -> None:
    found = connectors_of(SET_UP_B)
    assert "enabled" not in found[SOURCE]
    assert found[CHECKPOINT]["enabled"] == "false"
    assert found[HEARTBEAT]["emit.heartbeats.enabled"] == "false"


@pytest.mark.usefixtures("address")
def test_set_up_b_is_what_the_program_reads(tmp_path: Path) -> None:
    worker, connectors = load(SET_UP_B, tmp_path)
    assert worker.warnings == ()
    assert worker.worker.group_id == "mirrormaker2-cluster"
    assert worker.worker.offset_storage_topic == "mirrormaker2-cluster-offsets"
    assert worker.worker.config_storage_topic == "mirrormaker2-cluster-configs"
    assert worker.worker.status_storage_topic == "mirrormaker2-cluster-status"
    assert str(worker.rest.advertised("pod")) == "http://10.1.2.3:8083"
    assert worker.rest.open_listeners == ()
    source, checkpoint, heartbeat = (connectors[n] for n in (SOURCE, CHECKPOINT, HEARTBEAT))
    assert isinstance(source.config, SourceConfig)
    assert source.config.topics == ("orders",)
    assert source.config.enabled
    assert isinstance(checkpoint.config, CheckpointConfig)
    assert not checkpoint.config.enabled
    assert isinstance(heartbeat.config, HeartbeatConfig)
    assert not heartbeat.config.emit_heartbeats_enabled
    assert {each.elsewhere for each in connectors.values()} == {""}
    assert {each.warnings for each in connectors.values()} == {()}


@pytest.mark.usefixtures("address")
def test_v1_is_what_the_program_reads(tmp_path: Path) -> None:
    worker, connectors = load(V1, tmp_path)
    assert worker.worker.group_id == "my-group"
    assert worker.worker.offset_storage_topic == "my-offsets"
    assert worker.worker.config_storage_topic == "my-configs"
    assert worker.worker.status_storage_topic == "my-status"
    assert worker.worker.offset_flush_interval_ms == 10000
    assert worker.worker.config_storage_replication_factor == -1
    assert worker.worker.client.security["security.protocol"] == "SSL"
    assert worker.worker.producer.client.security["security.protocol"] == "SSL"
    source = connectors["mm2/mm2-msc-eu.json"].config
    assert isinstance(source, SourceConfig)
    assert (source.tasks_max, source.topics) == (4, ("orders", "payments.*"))
    checkpoint = connectors["mm2/mm2-cpc-eu.json"].config
    assert isinstance(checkpoint, CheckpointConfig)
    assert checkpoint.groups == ("app-.*",)
    assert checkpoint.topics == ("orders", "payments.*")
    assert len(connectors) == 6


def test_deploy_takes_the_files(tmp_path: Path) -> None:
    for name, text in run(V1, Format.CONNECTORS).files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for cluster in ("eu", "us"):
        files = read_files(tmp_path / "mm2", cluster)
        assert [file.name for file in files] == [
            f"{cluster}->backup.Mirror{kind}Connector"
            for kind in ("Checkpoint", "Heartbeat", "Source")
        ]


LOGINS: dict[str, Json] = {
    "scram": {"type": "scram-sha-512", "username": "u", "passwordSecret": PASSWORD},
    "tls": {
        "type": "tls",
        "certificateAndKey": {"secretName": "u", "certificate": "user.crt", "key": "user.key"},
    },
    "oauth": {
        "type": "oauth",
        "tokenEndpointUri": "https://login.example.com/token",
        "clientId": "mirror",
        "clientSecret": {"secretName": "client", "key": "secret"},
    },
    "token": {"type": "oauth", "accessToken": {"secretName": "t", "key": "k"}},
    "custom": {
        "type": "custom",
        "sasl": True,
        "config": {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": (
                "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
            ),
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                'oauth.token.endpoint.uri="https://login.example.com/token" '
                'oauth.client.id="a" oauth.client.secret="${strimzisecrets:kafka/client:secret}";'
            ),
        },
    },
}


@pytest.mark.usefixtures("address")
@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
def test_logins_of_both_clusters_work(login: Json, tmp_path: Path) -> None:
    text = changed(V1, spec__target__authentication=login, spec__mirrors__0__source__tls={})
    text = changed(text, spec__mirrors__0__source__authentication=login)
    worker, connectors = load(text, tmp_path)
    config = connectors["mm2/mm2-msc-eu.json"].config
    assert isinstance(config, SourceConfig)
    clients = [
        worker.worker.client,
        worker.worker.producer.client,
        config.source_client,
        config.target_client,
        config.consumer.client,
        config.producer.client,
    ]
    protocols = {Security.of(client).protocol for client in clients}
    assert protocols == {"SSL" if login == LOGINS["tls"] else "SASL_SSL"}


def test_token_servers_of_connectors_are_allowed() -> None:
    text = changed(V1, spec__target__authentication=LOGINS["oauth"])
    written = run(text, Format.CONNECTORS).files["connect-distributed.properties"]
    assert "sasl.oauthbearer.allowed.urls=https://login.example.com/token\n" in written


@pytest.mark.parametrize("stopped", [{"state": "stopped"}, {"state": "paused"}, {"pause": True}])
def test_a_connector_that_does_not_run_is_switched_off(stopped: Json) -> None:
    text = changed(
        SET_UP_B,
        spec__mirrors__0__sourceConnector=stopped,
        spec__mirrors__0__checkpointConnector={"state": "running"},
        spec__mirrors__0__heartbeatConnector=stopped,
    )
    found = connectors_of(text)
    assert found[SOURCE]["enabled"] == "false"
    assert "enabled" not in found[CHECKPOINT]
    assert found[HEARTBEAT]["emit.heartbeats.enabled"] == "false"


def test_settings_of_connectors_are_stronger_than_those_of_clusters() -> None:
    own = {"config": {"source.cluster.bootstrap.servers": "other:9092", "consumer.x": "y"}}
    found = connectors_of(changed(SET_UP_B, spec__mirrors__0__sourceConnector=own))
    assert found[SOURCE]["source.cluster.bootstrap.servers"] == "other:9092"


def test_what_the_program_rejects_is_listed() -> None:
    own = {"config": {"replication.policy.class": "com.example.Mine", "topcs": "x"}}
    notes = notes_of(
        run(changed(SET_UP_B, spec__mirrors__0__sourceConnector=own), Format.CONNECTORS)
    )
    at = "spec.mirrors[0].sourceConnector.config."
    assert "unknown class" in notes[f"{at}replication.policy.class"]
    worker = notes_of(
        run(
            changed(SET_UP_B, spec__clusters__1__config={"offset.flush.interval.ms": "soon"}),
            Format.CONNECTORS,
        )
    )
    assert "spec.clusters[1].config.offset.flush.interval.ms" in worker


def test_what_has_no_effect_is_listed() -> None:
    own = {"config": {"topcs": "x"}}
    notes = notes_of(
        run(changed(SET_UP_B, spec__mirrors__0__sourceConnector=own), Format.CONNECTORS)
    )
    assert "unknown key" in notes["spec.mirrors[0].sourceConnector.config.topcs"]
