"""What can be checked of deploy/ without a container engine, Kubernetes or systemd as init."""

from __future__ import annotations

import ast
import base64
import json
import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from sparkmirror.cli.main import COMMANDS, EXIT_CONFIG, EXIT_ERROR
from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.config.validation.connector_validation import validate_connector
from sparkmirror.config.worker.environment import DEBEZIUM
from sparkmirror.config.worker.worker_file import WorkerFile, load_worker, load_worker_variables
from sparkmirror.tools.deploy.connector_files import ConnectorFile, read_files
from tests.deploy.files import DEPLOY, IMAGE, ROOT, Json, load_documents, run
from tests.users.files import QUICKSTART

SCRIPT = DEPLOY / "mm2.sh"
UNIT = DEPLOY / "sparkmirror-worker.service"
EXPORTERS = ("source-offsets", "target-offsets")
JOBS = ("sparkmirror", "kafka")
VERBS = ("deploy", "undeploy", "redeploy", "status")
WORKERS = ("worker-1", "worker-2", "quickstart")


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


# -- docker-compose.yml -------------------------------------------------------------


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
    ours = ["topics", *WORKERS]
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
        assert service["ports"] == [f"127.0.0.1:{port}:{worker.rest.listeners[0].port}"]
        build = service["build"]
        assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
        assert service["image"] == IMAGE
        *_, code = service["healthcheck"]["test"]
        assert ast.parse(code)


def test_a_worker_of_variables_is_that_of_c(services: dict[str, Json]) -> None:
    service = services["quickstart"]
    variables = dict(line.split("=", 1) for line in service["environment"])
    servers = variables["CONNECT_BOOTSTRAP_SERVERS"]
    assert variables == QUICKSTART | {"CONNECT_BOOTSTRAP_SERVERS": servers}
    assert {server.split(":")[0] for server in servers.split(",")} == {"source-1", "source-2"}
    config = load_worker_variables(variables)
    port = config.rest.listeners[0].port
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    *_, code = service["healthcheck"]["test"]
    assert ast.parse(code)
    assert f":{port}/health" in code
    assert "command" not in service
    assert (service["image"], service["profiles"]) == (IMAGE, ["quickstart"])


def test_page_has_the_variables_of_c_and_debeziums_names() -> None:
    page = (ROOT / "docs" / "connect-mode.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    service = yaml.safe_load(example)["connect"]
    assert dict(line.split("=", 1) for line in service["environment"]) == QUICKSTART
    assert service["image"] == IMAGE
    assert [name for name in DEBEZIUM if f"`{name}`" not in page] == []


def test_nothing_without_a_password_is_reachable_from_other_machines(
    services: dict[str, Json],
) -> None:
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert len(published) == 6
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("name", WORKERS)
def test_containers_write_to_tmp_only(services: dict[str, Json], name: str) -> None:
    service = services[name]
    assert service["read_only"] is True
    # Without exec Spark could not load the libraries that it unpacks there.
    assert service["tmpfs"] == ["/tmp:exec,mode=1777"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_addresses_are_services(
    services: dict[str, Json], worker: WorkerFile, connectors: list[ConnectorFile]
) -> None:
    text = [*worker.worker.bootstrap_servers]
    for file in connectors:
        for side in ("source", "target"):
            text += (file.config[f"{side}.cluster.bootstrap.servers"] or "").split(",")
    ui = services["kafka-ui"]["environment"].items()
    text += [
        part for key, value in ui if key.endswith("BOOTSTRAPSERVERS") for part in value.split(",")
    ]
    text += [value.removeprefix("http://") for key, value in ui if key.endswith("ADDRESS")]
    text += [word.partition("=")[2] for name in EXPORTERS for word in services[name]["command"]]
    text += [target for job in JOBS for target in scraped(job)]
    hosts = {address.split(":")[0] for address in text}
    assert hosts == {
        name for name in services if name.startswith(("source-", "target-", "worker-"))
    }


def test_prometheus_scrapes_the_port_of_the_workers_metrics() -> None:
    lines = (DEPLOY / "connect-distributed.properties").read_text("ascii").splitlines()
    assert "sparkmirror.metrics.listeners=http://:9404" in lines
    assert list(scraped("sparkmirror")) == ["worker-1:9404", "worker-2:9404"]


def scraped(name: str) -> dict[str, Json]:
    """The targets of a job, and the labels that it adds."""
    (settings,) = load_documents(DEPLOY / "monitoring" / "prometheus.yml")
    (job,) = (job for job in settings["scrape_configs"] if job["job_name"] == name)
    found = job["static_configs"]
    return {target: each.get("labels", {}) for each in found for target in each["targets"]}


@pytest.mark.parametrize("name", ["prometheus", "grafana"])
def test_monitoring_mounts_files_that_are_there(services: dict[str, Json], name: str) -> None:
    mounted = [volume.split(":")[0] for volume in services[name]["volumes"]]
    assert all((DEPLOY / path).is_file() for path in mounted)
    folder = {"prometheus": DEPLOY / "monitoring", "grafana": DEPLOY / "monitoring" / "grafana"}
    there = {path.name for path in folder[name].iterdir() if path.is_file()}
    assert {Path(path).name for path in mounted} == there


def test_dashboard_asks_for_the_clusters_that_are_scraped() -> None:
    text = (DEPLOY / "monitoring" / "grafana" / "progress.json").read_text("ascii")
    panels = json.loads(text)["panels"]
    asked = {name for panel in panels for name in re.findall(r'cluster="([^"]+)"', str(panel))}
    assert asked == {labels["cluster"] for labels in scraped("kafka").values()}


# -- systemd ---------------------------------------------------------------------------------------


def test_unit_stops_the_worker_in_order() -> None:
    lines = UNIT.read_text("ascii").splitlines()
    for setting in ("Type=exec", "KillSignal=SIGTERM", "KillMode=mixed", "TimeoutStopSec=30"):
        assert setting in lines
    (start,) = (line for line in lines if line.startswith("ExecStart="))
    assert start.split()[1] in COMMANDS
    assert not any(line.startswith("MemoryDenyWriteExecute") for line in lines)  # Java


def test_unit_starts_the_worker_again_unless_its_file_is_wrong() -> None:
    lines = UNIT.read_text("ascii").splitlines()
    assert "Restart=on-failure" in lines
    (never,) = (line for line in lines if line.startswith("RestartPreventExitStatus="))
    assert never.partition("=")[2].split() == [str(EXIT_CONFIG)]
    assert str(EXIT_ERROR) not in never  # a port that is taken, a cluster that is away


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text("ascii"))
    copy = tmp_path / UNIT.name
    copy.write_text(text, "ascii")
    verified = run("systemd-analyze", "verify", str(copy))
    messages = [line for line in verified.stderr.splitlines() if UNIT.name in line]
    assert (verified.returncode, messages) == (0, [])
