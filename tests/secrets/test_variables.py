"""A worker that has its passwords in CONNECT_* variables: nobody else gets to see them.

Spark's page shows no environment variables. But Spark's JVM and the Python processes of its tasks
would inherit them, so the worker takes them away before it starts anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from sparkmirror.config.files.variable_names import variable_of
from sparkmirror.embedded.ports import HOST, ReservedPort
from tests.certificates import PASSWORD
from tests.clusters import create_topic, end_offset, produce, unique_name, wait_for
from tests.secrets import places
from tests.secure_cluster import SecureCluster, add_scram_user
from tests.users.files import BYTES, PATIENT_VARIABLES, connector
from tests.users.workers import WorkerProcess, run_worker

pytestmark = pytest.mark.kafka

MECHANISM = "SCRAM-SHA-512"
USER, LOGIN, KEY, TOKEN = "variables", "planted-variable-1", "planted-variable-2", "planted-tok-3"
SECRETS = (LOGIN, KEY, TOKEN, PASSWORD)
JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    # As whoever writes for the images' properties file has to.
    f'username=\\"{USER}\\" password=\\"{LOGIN}\\";'
)
SECONDS = 60.0


class Scene(NamedTuple):
    """A worker that copies a topic, and Spark's page."""

    worker: WorkerProcess
    name: str
    spark_url: str


def settings(cluster: SecureCluster, port: int, spark_port: int) -> dict[str, str]:
    """The worker's, by key. The broker knows the login; nobody asks for the other passwords."""
    client = cluster.client("SASL_SSL", MECHANISM) | {"sasl.jaas.config": JAAS}
    group = unique_name("variables")
    topics = {f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")}
    return {
        **client,
        **{f"producer.{key}": value for key, value in client.items()},
        **topics,
        **{key.replace("topic", "replication.factor"): "1" for key in topics},
        "group.id": group,
        "listeners": f"http://{HOST}:{port}",
        "listeners.https.ssl.key.password": KEY,
        "some.unknown.token": TOKEN,
        "key.converter": BYTES,
        "spark.ui.enabled": "true",
        "spark.ui.port": str(spark_port),
        "log4j.root.loglevel": "DEBUG",
    }


@pytest.fixture(scope="module")
def scene(
    secure_cluster: SecureCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    kafka = secure_cluster.kafka
    add_scram_user(kafka, USER, LOGIN)
    with ReservedPort() as port, ReservedPort() as spark_port:
        given = settings(secure_cluster, port.number, spark_port.number)
        variables = {variable_of(key): value for key, value in given.items()} | PATIENT_VARIABLES
        with run_worker(tmp_path_factory.mktemp("variables"), variables) as worker:
            name = start_copy(worker, secure_cluster)
            yield Scene(worker, name, f"http://{HOST}:{spark_port.number}")


def start_copy(worker: WorkerProcess, cluster: SecureCluster) -> str:
    """A connector with a task; its name."""
    topic, alias = unique_name("variables-topic"), unique_name("v")
    create_topic(cluster.kafka, topic)
    produce(cluster.kafka, topic, [b"1", b"2"])
    servers = cluster.kafka.bootstrap_servers
    config = connector("Source", f"{alias}-source", {alias: servers, "b": servers})
    config |= {
        "topics": topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
    }
    name = str(config["name"])
    created = worker.ask("PUT", f"/connectors/{name}/config", config)
    assert created.status_code == 201, created.text
    worker.wait_running(name, tasks=1, on=worker)
    remote = f"{alias}.{topic}"
    wait_for(
        lambda: end_offset(cluster.kafka, remote) == 2, within=SECONDS, describe=f"2 in {remote}"
    )
    return name


def test_spark_inherits_no_variables(scene: Scene) -> None:
    """The worker's own block, which it got from whoever started it, stays what it was."""
    found = list(places.environments(scene.worker.process.children(recursive=True)))
    assert any("java" in name for name, _ in found)
    assert any("python" in name for name, _ in found)
    assert [name for name, text in found if re.search("^CONNECT_", text, re.MULTILINE)] == []
    assert places.found_in(found, SECRETS) == []


def test_sparks_pages_have_none(scene: Scene) -> None:
    api = "/api/v1/applications"
    [(_, applications)] = places.pages(scene.spark_url, [api])
    application = f"{api}/{json.loads(applications)[0]['id']}"
    paths = [f"{application}/{part}" for part in ("environment", "jobs", "stages", "allexecutors")]
    found = list(places.pages(scene.spark_url, [*paths, "/environment/", "/jobs/", "/executors/"]))
    environment = json.loads(found[0][1])
    assert ["spark.ui.enabled", "true"] in environment["sparkProperties"]
    assert places.found_in(found, ("CONNECT_", "sasl.jaas", *SECRETS)) == []


def test_command_lines_have_none(scene: Scene) -> None:
    found = list(places.command_lines(places.processes([scene.worker.process])))
    assert places.found_in(found, ("CONNECT_", *SECRETS)) == []


def test_log_at_debug_has_none(scene: Scene) -> None:
    log = scene.worker.log
    assert " DEBUG " in log  # CONNECT_LOG4J_ROOT_LOGLEVEL
    assert "CONNECT_SOME_UNKNOWN_TOKEN (some.unknown.token): unknown key, ignored" in log
    assert places.found_in([("log", log)], SECRETS) == []


def test_answers_of_the_rest_api_have_none(scene: Scene) -> None:
    about = [f"/connectors/{scene.name}/{part}" for part in ("", "config", "status", "tasks")]
    others = ("/", "/health", "/connectors?expand=status&expand=info", "/admin/loggers", "/nowhere")
    found = list(places.pages(scene.worker.url, [*about, *others]))
    assert places.found_in(found, SECRETS) == []
