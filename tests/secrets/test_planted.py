"""A worker that was given secrets in every way that there is, and all places that it writes to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from sparkmirror.embedded.java import store_properties
from sparkmirror.embedded.ports import ReservedPort
from tests.clusters import create_topic, end_offset, produce, unique_name
from tests.secrets import places
from tests.secure_cluster import SecureCluster, add_scram_user
from tests.worker_cluster.workers import Flow, Worker, Workers, connector_path

pytestmark = pytest.mark.kafka

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISM = "SCRAM-SHA-512"
PROVIDER = "org.apache.kafka.common.config.provider."
# How users give them: in another file, in the environment, in the worker's file, to Spark, and in
# a connector's configuration as they are. Those of logins and stores are in use.
IN_A_FILE = {
    "login": "planted-file-login-1",
    "keystore": "planted-file-keystore-2",
    # Under keys that do not sound secret: a host that nobody reaches, and a setting of Spark.
    "host": "planted-file-host-12.invalid:1",
    "plain": "planted-file-plain-13",
}
IN_ENVIRONMENT = "planted-environment-3"
OF_THE_WORKER = ("planted-worker-login-4", "planted-worker-store-5", "planted-worker-token-6")
OF_SPARK = ("planted-spark-secret-7", "planted-spark-access-8")
AS_THEY_ARE = ("planted-inline-login-9", "planted-inline-wrong-10", "planted-inline-token-11")
NOWHERE = (*IN_A_FILE.values(), IN_ENVIRONMENT, *OF_THE_WORKER, *OF_SPARK)
ALL = (*NOWHERE, *AS_THEY_ARE)
LOGINS = (IN_A_FILE["login"], OF_THE_WORKER[0], AS_THEY_ARE[0])
LARGE = 5000


def user_of(password: str) -> str:
    """Every password has a user of its own."""
    return f"user-{password.rpartition('-')[2]}"


def login(password: str) -> str:
    return f'{SCRAM} required username="{user_of(password)}" password="{password}";'


class Scene(NamedTuple):
    """A worker with connectors that work and connectors that fail."""

    worker: Worker
    workers: Workers
    flow: Flow
    given: dict[str, str]
    folder: Path
    spark_url: str


FAILING = ("refused", "lost", "denied")
# What is said of each of them.
TRACES = ("RefusedError", "cannot be reached", "uthentication")


def store_files(folder: Path, cluster: SecureCluster) -> None:
    """What the user has on the worker's disk: a key store, and passwords in a file."""
    client = cluster.certificates.client
    store_properties(
        folder / "provided.properties",
        IN_A_FILE | {"login": login(IN_A_FILE["login"])},
    )
    (folder / "client.p12").write_bytes(client.pkcs12(IN_A_FILE["keystore"]))


def worker_settings(folder: Path, cluster: SecureCluster, spark_port: int) -> dict[str, str]:
    password, store, token = OF_THE_WORKER
    client = cluster.client("SASL_SSL", MECHANISM) | {"sasl.jaas.config": login(password)}
    secret, access = OF_SPARK
    for name in ("events", "local"):
        (folder / name).mkdir()
    return {
        **client,
        **{
            f"{role}.{key}": value
            for role in ("producer", "consumer")
            for key, value in client.items()
        },
        "config.providers": "file,env",
        "config.providers.file.class": f"{PROVIDER}FileConfigProvider",
        "config.providers.env.class": f"{PROVIDER}EnvVarConfigProvider",
        "connector.client.config.override.policy": "All",
        "listeners.https.ssl.keystore.password": store,
        "some.unknown.token": token,
        "spark.ui.enabled": "true",
        "spark.ui.port": str(spark_port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.local.dir": str(folder / "local"),
        "spark.authenticate.secret": secret,
        "spark.hadoop.fs.s3a.secret.key": access,
        "spark.hadoop.some.setting": f"${{file:{folder}/user/provided.properties:plain}}",
    }


def given_secrets(folder: Path, cluster: SecureCluster) -> dict[str, str]:
    """What every connector gets."""
    file = folder / "provided.properties"
    client = cluster.client("SASL_SSL", MECHANISM)
    source = client | {
        "sasl.jaas.config": f"${{file:{file}:login}}",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "client.p12"),
        "ssl.keystore.password": f"${{file:{file}:keystore}}",
    }
    target = client | {
        "sasl.jaas.config": login(AS_THEY_ARE[0]),
        "ssl.key.password": "${env:PLANTED}",
    }
    return {
        **{f"source.cluster.{key}": value for key, value in source.items()},
        **{f"target.cluster.{key}": value for key, value in target.items()},
        "another.unknown.token": AS_THEY_ARE[2],
    }


@pytest.fixture(scope="module")
def scene(
    secure_cluster: SecureCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("planted")
    kafka, user_folder = secure_cluster.kafka, folder / "user"
    workers = Workers(user_folder, kafka, kafka)
    store_files(user_folder, secure_cluster)
    for password in LOGINS:
        add_scram_user(kafka, user_of(password), password)
    with ReservedPort() as port, pytest.MonkeyPatch.context() as patched:
        patched.setenv("PLANTED", IN_ENVIRONMENT)
        settings = worker_settings(folder, secure_cluster, port.number)
        worker = workers.new_worker("worker", settings, "--log-level", "DEBUG")
        try:
            worker.start()
            given = given_secrets(user_folder, secure_cluster)
            flow = give_connectors(worker, workers, given)
            yield Scene(worker, workers, flow, given, folder, f"http://127.0.0.1:{port.number}")
        finally:
            worker.close()


def give_connectors(worker: Worker, workers: Workers, given: dict[str, str]) -> Flow:
    """Three that work, and FAILING: a task fails, nobody is reached, a login is refused."""
    provided = given["source.cluster.ssl.keystore.location"].replace(
        "client.p12", "provided.properties"
    )
    topic, too_large = unique_name("planted"), unique_name("planted-large")
    for name in (topic, too_large):
        create_topic(workers.source, name)
        produce(workers.source, name, [b"1", b"2" * LARGE])
    flow = Flow(workers, topic, "nobody", tasks_max=1)
    for name, config in flow.configs().items():
        put(worker, name, {**config, **given})
    source = flow.configs()[flow.source_name] | given
    create_topic(workers.target, f"{flow.alias}.{too_large}", config={"max.message.bytes": "1000"})
    refused = {"topics": too_large, "sync.topic.configs.enabled": "false"}
    put(worker, "refused", {**source, **refused, "name": "refused"})
    lost = {"source.cluster.bootstrap.servers": f"${{file:{provided}:host}}"}
    put(worker, "lost", {**source, **lost, "name": "lost"})
    denied = {"source.cluster.sasl.jaas.config": login(AS_THEY_ARE[1])}
    put(worker, "denied", {**source, **denied, "name": "denied"})
    for name in flow.names:
        worker.wait_for_states(name, "RUNNING")
    worker.wait_for(
        lambda: end_offset(workers.target, flow.remote) == 2, lambda: f"{topic} is copied"
    )
    for name in FAILING:
        worker.wait_for(partial(has_failed, worker, name), lambda: f"{FAILING} have failed")
    return flow


def has_failed(worker: Worker, connector: str) -> bool:
    return "FAILED" in {state for state, _ in worker.states(connector)}


def put(worker: Worker, name: str, config: dict[str, str]) -> None:
    response = worker.ask("PUT", connector_path(name, "config"), config)
    assert response.status_code == 201, response.text


def rest_places(scene: Scene, *paths: str) -> Iterator[places.Place]:
    names = (*scene.flow.names, *FAILING)
    connectors = [connector_path(name, path) for name in names for path in paths]
    return places.pages(scene.worker.url, connectors)


def test_log_at_debug_has_none(scene: Scene) -> None:
    response = scene.worker.ask("PUT", "/admin/loggers/root", {"level": "TRACE"})
    assert response.status_code == 200
    for name in ("kafka", "py4j", "httpx", "httpcore"):
        scene.worker.ask("PUT", f"/admin/loggers/{name}", {"level": "TRACE"})
    scene.worker.ask("POST", connector_path(scene.flow.source_name, "restart?includeTasks=true"))
    scene.worker.wait_for_states(scene.flow.source_name, "RUNNING")
    log = scene.worker.log_path.read_text()
    assert "DEBUG" in log
    assert places.found_in([("log", log)], ALL) == []


def test_status_and_traces_have_none(scene: Scene) -> None:
    found: list[places.Place] = []

    def has_all_traces() -> bool:
        # A task that tries again shows its trace no more until it has failed again.
        now = list(rest_places(scene, "status", "tasks/0/status", "topics", "offsets"))
        found.extend(now)
        text = "\n".join(text for _, text in now)
        return all(each in text for each in TRACES)

    scene.worker.wait_for(has_all_traces, lambda: f"{TRACES}: {found}")
    assert places.found_in(found, ALL) == []


def test_other_answers_have_none(scene: Scene) -> None:
    paths = ("/", "/health", "/connectors?expand=status", "/admin/loggers", "/connector-plugins")
    found = list(places.pages(scene.worker.url, (*paths, "/connectors/no/status", "/nowhere")))
    config = scene.flow.configs()[scene.flow.source_name] | scene.given
    config["producer.override.ssl.key.password"] = AS_THEY_ARE[0]
    kind = config["connector.class"].rpartition(".")[2]
    checked = scene.worker.ask("PUT", f"/connector-plugins/{kind}/config/validate", config)
    bad = scene.worker.ask(
        "PUT", connector_path("bad", "config"), {**config, "tasks.max": "no", "name": "bad"}
    )
    assert (checked.status_code, bad.status_code) == (200, 400)
    assert "[hidden]" in checked.text
    found += [("validate", checked.text), ("bad config", bad.text)]
    assert places.found_in(found, ALL) == []


def test_configurations_are_as_they_were_written(scene: Scene) -> None:
    """As with Kafka Connect: placeholders stay, and what stands there in clear comes back."""
    found = list(rest_places(scene, "config", "", "tasks", "tasks-config"))
    found += places.pages(scene.worker.url, ["/connectors?expand=info"])
    assert places.found_in(found, NOWHERE) == []
    [(_, config)] = places.pages(
        scene.worker.url, [connector_path(scene.flow.source_name, "config")]
    )
    given = scene.given
    assert {key: json.loads(config)[key] for key in given} == given


def test_internal_topics_have_placeholders(scene: Scene) -> None:
    own = re.compile(rf"{scene.workers.group_id}|{scene.flow.alias}|mm2-offset-syncs|heartbeats")
    found = list(places.records(scene.workers.target, own))
    configs = [text for name, text in found if "-config-" in name]
    assert configs
    assert any("${file:" in text for text in configs)
    assert places.found_in(found, NOWHERE) == []
    others = [place for place in found if "-config-" not in place[0]]
    assert len(others) > 3
    assert places.found_in(others, AS_THEY_ARE) == []


def test_command_lines_have_none(scene: Scene) -> None:
    found = list(places.command_lines(places.processes([scene.worker.process])))
    assert any("java" in name for name, _ in found)
    assert any("pyspark.worker" in text for _, text in found)
    assert places.found_in(found, ALL) == []


def test_environments_have_only_what_the_user_has_put_there(scene: Scene) -> None:
    """The variable itself is the user's choice, and for processes of the same user only."""
    found = places.environments(places.processes([scene.worker.process]))
    others = [secret for secret in ALL if secret != IN_ENVIRONMENT]
    assert places.found_in(found, others) == []


def test_sparks_pages_have_none(scene: Scene) -> None:
    api = "/api/v1/applications"
    [(_, applications)] = places.pages(scene.spark_url, [api])
    application = f"{api}/{json.loads(applications)[0]['id']}"
    paths = [f"{application}/{part}" for part in ("environment", "jobs", "stages", "allexecutors")]
    paths += ["/environment/", "/jobs/", "/executors/"]
    found = list(places.pages(scene.spark_url, paths))
    environment = json.loads(found[0][1])
    assert ["spark.eventLog.enabled", "true"] in environment["sparkProperties"]
    assert places.found_in(found, ALL) == []
    assert tickets_in(found) == []


def test_event_log_and_temporary_files_have_none(scene: Scene) -> None:
    found = list(places.files(scene.folder / "events", scene.folder / "local"))
    events = "".join(text for name, text in found if "/events/" in name)
    assert "SparkListenerEnvironmentUpdate" in events
    assert "SparkListenerJobStart" in events
    assert places.found_in(found, ALL) == []
    assert tickets_in(found) == []


def tickets_in(found: list[places.Place]) -> list[str]:
    """Places with something like the control link's secret or fingerprint."""
    return [name for name, text in found if re.search(r"\b[0-9a-f]{64}\b", text)]
