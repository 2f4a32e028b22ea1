"""What can be checked of deploy/ without a container engine, Kubernetes or systemd as init."""

from __future__ import annotations

import ast
import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import sparkmirror
from sparkmirror.cli.main import COMMANDS
from sparkmirror.config.connector_file import parse_connector
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.validation import validate_connector
from sparkmirror.config.worker_file import WorkerFile, load_worker
from sparkmirror.rest.connector_files import ConnectorFile, read_files

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SCRIPT = DEPLOY / "mm2.sh"
UNIT = DEPLOY / "sparkmirror-worker.service"
MANIFESTS = ("dedicated.yaml", "workers.yaml")
IMAGE = f"sparkmirror:{sparkmirror.__version__}"
EXPORTERS = ("source-offsets", "target-offsets")
VERBS = ("deploy", "undeploy", "redeploy", "status")

Json = dict[str, Any]


def load_documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text("ascii")))


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | environment,
    )


# -- mm2.sh ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_script_is_well_formed(shell: str) -> None:
    checked = run(shell, "-n", str(SCRIPT))
    assert (checked.returncode, checked.stderr) == (0, "")
    assert os.access(SCRIPT, os.X_OK)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), id="nothing"),
        pytest.param(("start", "eu"), id="unknown action"),
        pytest.param(("deploy",), id="no cluster"),
        pytest.param(("status", "--json"), id="option for a cluster"),
    ],
)
def test_script_prints_its_usage(words: tuple[str, ...]) -> None:
    ended = run(str(SCRIPT), *words, SPARKMIRROR="/bin/echo")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("usage: mm2.sh deploy|undeploy|redeploy|status <cluster>")


@pytest.mark.parametrize("verb", VERBS)
def test_script_calls_the_program(verb: str) -> None:
    called = run(str(SCRIPT), verb, "eu", "--timeout", "5", SPARKMIRROR="/bin/echo")
    url = "http://localhost:8083"
    assert called.stdout == f"{verb} eu --dir {DEPLOY}/mm2 --url {url} --timeout 5\n"
    assert verb in COMMANDS


def test_script_takes_folder_and_url_from_the_environment() -> None:
    called = run(
        str(SCRIPT), "status", "eu", SPARKMIRROR="/bin/echo", MM2_DIR="/f f", CONNECT_URL="http://w"
    )
    assert called.stdout == "status eu --dir /f f --url http://w\n"


# -- the sample files ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worker() -> WorkerFile:
    return load_worker(DEPLOY / "connect-distributed.properties")


@pytest.fixture(scope="module")
def connectors() -> list[ConnectorFile]:
    return read_files(DEPLOY / "mm2", "source-0")


def test_sample_connectors_are_valid(worker: WorkerFile, connectors: list[ConnectorFile]) -> None:
    kinds = []
    for file in connectors:
        assert validate_connector(file.plugin, file.config, worker)["error_count"] == 0
        parsed = parse_connector(file.config, worker)
        assert (parsed.warnings, parsed.elsewhere) == ((), "")
        assert str(parsed.flow) == "source-0->target-0"
        assert file.name == file.path.stem
        kinds.append(parsed.kind)
    assert kinds == ["checkpoint", "heartbeat", "source"]


def test_sample_connectors_name_topics_alike(connectors: list[ConnectorFile]) -> None:
    checkpoint, _, source = connectors
    key = "replication.policy.class"
    assert checkpoint.config[key] == source.config[key]


# -- docker-compose.yml and Dockerfile -------------------------------------------------------------


@pytest.fixture(scope="module")
def services() -> dict[str, Json]:
    (compose,) = load_documents(DEPLOY / "docker-compose.yml")
    found: dict[str, Json] = compose["services"]
    return found


def test_compose_file_is_of_its_schema() -> None:
    check = Path(sys.executable).with_name("check-jsonschema")
    got = run(
        str(check), "--builtin-schema", "vendor.compose-spec", str(DEPLOY / "docker-compose.yml")
    )
    assert (got.returncode, got.stderr) == (0, ""), got.stdout


def test_services_are_complete(services: dict[str, Json]) -> None:
    brokers = [f"{side}-{number}" for side in ("source", "target") for number in (1, 2)]
    ours = ["topics", "worker-1", "worker-2"]
    assert list(services) == [*brokers, *ours, "kafka-ui", *EXPORTERS, "prometheus", "grafana"]
    for name, service in services.items():
        assert re.fullmatch(r"[a-z/-]+:v?[0-9.]+", service["image"]), name
        assert set(service.get("depends_on", ())) <= set(services), name
        assert service.get("hostname", name) == name


@pytest.mark.parametrize("side", ["source", "target"])
def test_brokers_form_a_cluster(services: dict[str, Json], side: str) -> None:
    names = [f"{side}-1", f"{side}-2"]
    first, second = (services[name]["environment"] for name in names)
    assert first["CLUSTER_ID"] == second["CLUSTER_ID"]
    assert len(base64.urlsafe_b64decode(first["CLUSTER_ID"] + "==")) == 16
    assert (first["KAFKA_NODE_ID"], second["KAFKA_NODE_ID"]) == ("1", "2")
    assert first["KAFKA_PROCESS_ROLES"] == "broker,controller"
    for name, settings in zip(names, (first, second), strict=True):
        assert settings["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{name}:9092"
        assert settings["KAFKA_CONTROLLER_QUORUM_VOTERS"] == f"1@{side}-1:9093"
        assert (DEPLOY / services[name]["env_file"]).is_file()


def test_workers_have_their_file_and_image(services: dict[str, Json], worker: WorkerFile) -> None:
    for name, port in (("worker-1", 8083), ("worker-2", 8084)):
        service = services[name]
        host_path, path, mode = service["volumes"][0].split(":")
        assert (DEPLOY / host_path).resolve() == worker.path.resolve()
        assert (service["command"], mode) == (["worker", path], "ro")
        assert service["ports"] == [f"{port}:{worker.rest.listeners[0].port}"]
        build = service["build"]
        assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
        assert service["image"] == IMAGE
        *_, code = service["healthcheck"]["test"]
        assert ast.parse(code)


def test_addresses_are_services(
    services: dict[str, Json], worker: WorkerFile, connectors: list[ConnectorFile]
) -> None:
    told = [*worker.worker.bootstrap_servers]
    for file in connectors:
        for side in ("source", "target"):
            told += (file.config[f"{side}.cluster.bootstrap.servers"] or "").split(",")
    ui = services["kafka-ui"]["environment"].items()
    told += [
        part for key, value in ui if key.endswith("BOOTSTRAPSERVERS") for part in value.split(",")
    ]
    told += [value.removeprefix("http://") for key, value in ui if key.endswith("ADDRESS")]
    told += [word.partition("=")[2] for name in EXPORTERS for word in services[name]["command"]]
    told += [target for job in scraped_jobs() for target in job["targets"]]
    hosts = {address.split(":")[0] for address in told}
    assert hosts == {
        name for name in services if name.startswith(("source-", "target-", "worker-"))
    }


def scraped_jobs() -> list[Json]:
    (settings,) = load_documents(DEPLOY / "monitoring" / "prometheus.yml")
    (job,) = settings["scrape_configs"]
    found: list[Json] = job["static_configs"]
    return found


@pytest.mark.parametrize("name", ["prometheus", "grafana"])
def test_monitoring_mounts_files_that_are_there(services: dict[str, Json], name: str) -> None:
    for volume in services[name]["volumes"]:
        assert (DEPLOY / volume.split(":")[0]).is_file()


def test_dashboard_asks_for_the_clusters_that_are_scraped() -> None:
    text = (DEPLOY / "monitoring" / "grafana" / "progress.json").read_text("ascii")
    panels = json.loads(text)["panels"]
    asked = {name for panel in panels for name in re.findall(r'cluster="([^"]+)"', str(panel))}
    assert asked == {job["labels"]["cluster"] for job in scraped_jobs()}


def test_image_is_made_of_what_is_there() -> None:
    lines = (DEPLOY / "Dockerfile").read_text("ascii").splitlines()
    copied = [
        line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line
    ]
    assert all((ROOT / path).exists() for paths in copied for path in paths)
    assert any("pip install" in line and "--require-hashes" in line for line in lines)
    users = [line for line in lines if line.startswith("USER")]
    assert users == ["USER 10001"]
    assert 'ENTRYPOINT ["tini", "--", "sparkmirror"]' in lines


# -- Kubernetes ------------------------------------------------------------------------------------


@pytest.fixture(params=MANIFESTS)
def objects(request: pytest.FixtureRequest) -> dict[str, Json]:
    """The objects of a manifest, by kind."""
    documents = load_documents(DEPLOY / "kubernetes" / request.param)
    return {document["kind"]: document for document in documents}


def pod_of(objects: dict[str, Json]) -> tuple[Json, Json]:
    """Its specification, and its only container."""
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def test_objects_are_named(objects: dict[str, Json]) -> None:
    versions = {kind: each["apiVersion"] for kind, each in objects.items()}
    assert versions.pop("Deployment") == "apps/v1"
    assert set(versions.values()) == {"v1"}
    for each in objects.values():
        assert re.fullmatch(r"[a-z0-9-]+", each["metadata"]["name"])
        assert each["metadata"]["labels"]["app.kubernetes.io/name"] == "sparkmirror"


def test_selectors_select_the_pods(objects: dict[str, Json]) -> None:
    spec = objects["Deployment"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    _, container = pod_of(objects)
    if "Service" in objects:
        service = objects["Service"]["spec"]
        assert service["selector"] == labels
        ports = {port["name"] for port in container["ports"]}
        assert {port["targetPort"] for port in service["ports"]} == ports
        assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": "rest"}


def test_pods_are_restricted(objects: dict[str, Json]) -> None:
    pod, container = pod_of(objects)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["image"] == IMAGE
    assert pod["terminationGracePeriodSeconds"] == 30


def test_mounts_have_volumes_with_content(objects: dict[str, Json]) -> None:
    pod, container = pod_of(objects)
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert volumes.keys() == mounts.keys()
    assert volumes["config"]["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]
    assert mounts["config"]["subPath"] in objects["ConfigMap"]["data"]
    command, path = container["args"]
    assert (command in COMMANDS, path) == (True, mounts["config"]["mountPath"])
    if "secret" in volumes:
        assert volumes["secret"]["secret"]["secretName"] == objects["Secret"]["metadata"]["name"]


def config_maps() -> Iterator[tuple[str, str]]:
    for manifest in MANIFESTS:
        config = load_documents(DEPLOY / "kubernetes" / manifest)[0]
        yield from config["data"].items()


@pytest.fixture
def config_files(tmp_path: Path) -> Path:
    for name, text in config_maps():
        (tmp_path / name).write_text(text, "ascii")
    return tmp_path


def test_dedicated_file_can_be_used(config_files: Path) -> None:
    config = load_mm2(config_files / "mm2.properties")
    assert [str(flow.name) for flow in config.flows] == ["source->target"]


def test_workers_tell_each_other_their_addresses(
    config_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_IP", "10.1.2.3")
    file = load_worker(config_files / "connect-distributed.properties")
    assert str(file.rest.advertised("pod-name")) == "http://10.1.2.3:8083"
    assert file.warnings == ()


# -- systemd ---------------------------------------------------------------------------------------


def test_unit_stops_the_worker_in_order() -> None:
    lines = UNIT.read_text("ascii").splitlines()
    for setting in ("Type=exec", "KillSignal=SIGTERM", "KillMode=mixed", "TimeoutStopSec=30"):
        assert setting in lines
    (start,) = (line for line in lines if line.startswith("ExecStart="))
    assert start.split()[1] in COMMANDS
    assert not any(line.startswith("MemoryDenyWriteExecute") for line in lines)  # Java


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text("ascii"))
    copy = tmp_path / UNIT.name
    copy.write_text(text, "ascii")
    verified = run("systemd-analyze", "verify", str(copy))
    complaints = [line for line in verified.stderr.splitlines() if UNIT.name in line]
    assert (verified.returncode, complaints) == (0, [])
