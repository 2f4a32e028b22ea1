"""The manifests: checked as far as that is possible without Kubernetes, and against the program."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.cli.main import COMMANDS
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.validation.connector_validation import validate_connector
from sparkmirror.config.worker.worker_file import WorkerFile, load_worker
from sparkmirror.errors import ConfigErrors
from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.security.users import Users
from sparkmirror.tools.deploy.connector_files import read_files
from sparkmirror.wire.security import Security
from tests.certificates import make_ca
from tests.deploy.files import DEPLOY, IMAGE, Json, load_documents, run
from tests.rest.fake_herder import FakeHerder

MANIFESTS = ("dedicated.yaml", "workers.yaml")


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
    assert versions.pop("NetworkPolicy") == "networking.k8s.io/v1"
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


def test_pods_are_restricted(objects: dict[str, Json]) -> None:
    pod, container = pod_of(objects)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["automountServiceAccountToken"] is False
    writable = {mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"tmp"}
    [tmp] = [volume for volume in pod["volumes"] if volume["name"] == "tmp"]
    assert tmp["emptyDir"] == {}
    assert container["image"] == IMAGE
    assert pod["terminationGracePeriodSeconds"] == 30


def test_network_is_closed_but_for_what_is_needed(objects: dict[str, Json]) -> None:
    policy, labels = objects["NetworkPolicy"]["spec"], pod_labels(objects)
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    rest = [{"protocol": "TCP", "port": 8083}]
    own = {"podSelector": {"matchLabels": labels}}
    if "Service" in objects:
        [taken] = policy["ingress"]
        clients = {"podSelector": {"matchLabels": {"sparkmirror-client": "true"}}}
        assert taken == {"from": [own, clients], "ports": rest}
    else:
        assert policy["ingress"] == []
    names, brokers, *workers = policy["egress"]
    assert {port["port"] for port in names["ports"]} == {53}
    [kafka] = brokers["ports"]
    ports = {int(port) for port in re.findall(r"kafka\d?:(\d+)", str(objects["ConfigMap"]))}
    assert ports <= set(range(kafka["port"], kafka["endPort"] + 1))
    assert workers == ([{"to": [own], "ports": rest}] if "Service" in objects else [])


def pod_labels(objects: dict[str, Json]) -> Json:
    labels: Json = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    return labels


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
def config_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files as a pod has them, in another folder."""
    monkeypatch.setenv("POD_IP", "10.1.2.3")
    monkeypatch.setenv("OTHER", "not for connectors")
    for name, text in config_maps():
        (tmp_path / name).write_text(text.replace("/etc/sparkmirror", str(tmp_path)), "ascii")
    for folder in ("secret", "users"):
        (tmp_path / folder).mkdir()
    (tmp_path / "secret" / "source.properties").write_text("password=a-password\n")
    (tmp_path / "secret" / "ca.pem").write_text(make_ca().pem)
    (tmp_path / "users" / "users.properties").write_text("admin: all-of-it\nprobe: a-look\n")
    (tmp_path / "users" / "probe").write_text("probe:a-look\n")
    return tmp_path


def test_dedicated_file_can_be_used(config_files: Path) -> None:
    config = load_mm2(config_files / "mm2.properties")
    assert [str(flow.name) for flow in config.flows] == ["source->target"]


def test_tls_and_the_login_of_the_dedicated_file_work(config_files: Path) -> None:
    path = config_files / "mm2.properties"
    path.write_text(re.sub(r"(?m)^#(?=source\.|  username)", "", path.read_text()))
    [flow] = load_mm2(path).flows
    security = Security.of(flow.source.source_client)
    assert security.protocol == "SASL_SSL"
    login = security.authenticator("broker")
    assert login is not None
    assert str(config_files / "secret" / "ca.pem") in security.files()


def test_placeholders_of_the_dedicated_file_read_the_secret_only(config_files: Path) -> None:
    path, outside = config_files / "mm2.properties", config_files / "other.properties"
    outside.write_text("x=y\n")
    path.write_text(path.read_text() + f"\nsource.client.id=${{file:{outside}:x}}\n")
    with pytest.raises(ConfigErrors, match=r"allowed\.paths does not allow"):
        load_mm2(path)


@pytest.fixture
def pod_worker(config_files: Path) -> WorkerFile:
    return load_worker(config_files / "connect-distributed.properties")


def test_workers_tell_each_other_their_addresses(pod_worker: WorkerFile) -> None:
    assert str(pod_worker.rest.advertised("pod-name")) == "http://10.1.2.3:8083"
    assert pod_worker.warnings == ()


def test_connectors_may_ask_for_one_variable_only(
    pod_worker: WorkerFile,
) -> None:
    props = dict(read_files(DEPLOY / "mm2", "source-0")[2].config)
    for name, is_allowed in (("POD_IP", True), ("OTHER", False), ("MY_POD_IP", False)):
        config = props | {"producer.override.client.id": f"${{env:{name}}}"}
        errors = validate_connector(None, config, pod_worker)["error_count"]
        assert (errors == 0) is is_allowed, name


def test_workers_ask_for_a_password_and_the_probe_has_one(
    config_files: Path, pod_worker: WorkerFile
) -> None:
    assert pod_worker.rest.users_file == str(config_files / "users" / "users.properties")
    documents = load_documents(DEPLOY / "kubernetes" / "workers.yaml")
    _, container = pod_of({document["kind"]: document for document in documents})
    python, option, code = container["readinessProbe"]["exec"]["command"]
    assert (python, option) == ("python", "-c")
    users = Users(Path(pod_worker.rest.users_file), pod_worker.rest.read_only_users)
    with RestServer([("127.0.0.1", 0)]) as server:
        server.start(make_app(FakeHerder(), RestOptions(users=users)))
        code = code.replace("localhost:8083", f"127.0.0.1:{server.ports[0]}")
        asked = run(sys.executable, option, code.replace("/etc/sparkmirror", str(config_files)))
        assert (asked.returncode, asked.stderr) == (0, "")
        (config_files / "users" / "probe").write_text("probe:wrong")
        refused = run(sys.executable, option, code.replace("/etc/sparkmirror", str(config_files)))
        assert "HTTP Error 401" in refused.stderr
