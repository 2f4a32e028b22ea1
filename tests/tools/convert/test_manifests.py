"""The manifests: the shape of deploy/kubernetes, with what the resource says about pods."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.cli.main import COMMANDS
from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.security.users import Users
from sparkmirror.tools.convert.conversion import Format
from tests.deploy.files import DEPLOY, load_documents
from tests.deploy.files import run as run_program
from tests.rest.fake_herder import FakeHerder
from tests.tools.convert.resources import (
    IMAGE,
    SET_UP_B,
    V1,
    Json,
    Pod,
    changed,
    notes_of,
    objects_of,
    run,
)

FORMATS = list(Format)
MODELS = {Format.MM2: "dedicated.yaml", Format.CONNECTORS: "workers.yaml"}


def deployment_of(text: str, format_: Format) -> Any:
    return objects_of(run(text, format_))["Deployment"]


def pod_of(text: str, format_: Format) -> tuple[Any, Any]:
    """Its specification, and its only container."""
    pod = deployment_of(text, format_)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def model_of(format_: Format) -> Any:
    """The Deployment of deploy/kubernetes."""
    documents = load_documents(DEPLOY / "kubernetes" / MODELS[format_])
    [found] = [each for each in documents if each["kind"] == "Deployment"]
    return found["spec"]


@pytest.mark.parametrize("format_", FORMATS)
def test_pods_are_those_of_deploy(format_: Format) -> None:
    model = model_of(format_)
    pod, container = pod_of(SET_UP_B, format_)
    expected = model["template"]["spec"]
    assert pod.keys() == expected.keys()
    for name in ("automountServiceAccountToken", "securityContext", "enableServiceLinks"):
        assert pod[name] == expected[name]
    [like] = expected["containers"]
    for name in ("securityContext", "resources", "args", "readinessProbe", "livenessProbe"):
        assert container.get(name) == like.get(name), name
    assert deployment_of(SET_UP_B, format_)["spec"]["strategy"] == model["strategy"]
    assert container["image"] == IMAGE
    assert container["args"][0] in COMMANDS


def test_objects() -> None:
    dedicated = objects_of(run(SET_UP_B))
    assert [*dedicated] == ["ConfigMap", "NetworkPolicy", "Deployment"]
    workers = objects_of(run(V1, Format.CONNECTORS))
    assert [*workers] == [
        "ConfigMap",
        "ConfigMap -connectors",
        "Service",
        "NetworkPolicy",
        "Deployment",
        "Job -deploy-0",
        "Job -deploy-1",
    ]
    assert {each["metadata"].get("namespace") for each in dedicated.values()} == {None}
    assert {each["metadata"]["namespace"] for each in workers.values()} == {"kafka"}


@pytest.mark.parametrize("format_", FORMATS)
def test_config_maps_have_the_files(format_: Format) -> None:
    done = run(V1, format_)
    maps = [each["data"] for key, each in objects_of(done).items() if key.startswith("ConfigMap")]
    held = {name: text for data in maps for name, text in data.items()}
    written = {name.removeprefix("mm2/"): text for name, text in done.files.items()}
    assert held == {name: text for name, text in written.items() if name != "kubernetes.yaml"}


def test_selectors_select_the_pods_of_this_resource_only() -> None:
    objects = objects_of(run(V1, Format.CONNECTORS))
    spec = objects["Deployment"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert labels["app.kubernetes.io/instance"] == "mirror"
    service = objects["Service"]["spec"]
    assert service["selector"] == labels
    (container,) = spec["template"]["spec"]["containers"]
    assert [port["targetPort"] for port in service["ports"]] == [
        port["name"] for port in container["ports"]
    ]
    policy = objects["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    [rule] = policy["ingress"]
    callers = [each["podSelector"]["matchLabels"] for each in rule["from"]]
    job = objects["Job -deploy-0"]["spec"]["template"]["metadata"]["labels"]
    assert labels in callers
    assert any(caller.items() <= job.items() for caller in callers)


def test_a_dedicated_mirror_accepts_no_connections() -> None:
    policy = objects_of(run(SET_UP_B))["NetworkPolicy"]["spec"]
    assert (policy["policyTypes"], policy["ingress"]) == (["Ingress"], [])


def test_jobs_send_the_connectors_of_each_source() -> None:
    objects = objects_of(run(V1, Format.CONNECTORS))
    for number, alias in enumerate(("eu", "us")):
        spec = objects[f"Job -deploy-{number}"]["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        command, cluster, _, folder, _, url, *_ = container["args"]
        assert (command in COMMANDS, cluster) == (True, alias)
        assert url == f"http://{objects['Service']['metadata']['name']}:8083"
        [mount] = [each for each in container["volumeMounts"] if each["name"] == "connectors"]
        assert mount["mountPath"] == folder
        [volume] = [each for each in spec["volumes"] if each["name"] == "connectors"]
        name = objects["ConfigMap -connectors"]["metadata"]["name"]
        assert volume["configMap"]["name"] == name
        [user] = container["env"]
        assert user["name"] == "SPARKMIRROR_USER"
        assert user["valueFrom"]["secretKeyRef"]["key"] == "deploy"


@pytest.mark.parametrize("format_", FORMATS)
def test_pod_fields_of_the_resource(format_: Format) -> None:
    resources = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "4Gi"}}
    template: Json = {
        "pod": {
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
            "imagePullSecrets": [{"name": "pull"}],
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "priorityClassName": "high",
            "terminationGracePeriodSeconds": 60,
            "volumes": [{"name": "more", "secret": {"secretName": "more"}}],
        },
        "connectContainer": {
            "env": [{"name": "A", "value": "b"}],
            "volumeMounts": [{"name": "more", "mountPath": "/mnt/more"}],
        },
    }
    text = changed(
        SET_UP_B,
        spec__replicas=0,
        spec__resources=resources,
        spec__template=template,
        metadata__labels={"owner": "me", "strimzi.io/cluster": "x"},
    )
    deployment = deployment_of(text, format_)
    pod, container = pod_of(text, format_)
    assert deployment["spec"]["replicas"] == 0
    assert container["resources"] == resources
    metadata = deployment["spec"]["template"]["metadata"]
    assert metadata["annotations"] == {"note": "b"}
    assert metadata["labels"].items() >= {"team": "a", "owner": "me"}.items()
    assert "strimzi.io/cluster" not in metadata["labels"]
    assert deployment["metadata"]["labels"]["owner"] == "me"
    for name in ("imagePullSecrets", "tolerations", "priorityClassName"):
        assert pod[name] == template["pod"][name]
    assert pod["terminationGracePeriodSeconds"] == 60
    assert {"name": "A", "value": "b"} in container["env"]
    assert {"name": "more", "mountPath": "/mnt/more"} in container["volumeMounts"]
    assert template["pod"]["volumes"][0] in pod["volumes"]
    at = "metadata.labels.strimzi.io/cluster"
    assert "names the owner of the objects" in notes_of(run(text, format_))[at]


def test_replicas_are_three_unless_the_resource_says_otherwise() -> None:
    text = changed(SET_UP_B, spec__replicas=None)
    assert deployment_of(text, Format.MM2)["spec"]["replicas"] == 3


def test_external_configuration_is_where_strimzi_mounts_it(tmp_path: Path) -> None:
    external: Json = {
        "env": [
            {"name": "REGION", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "region"}}}
        ],
        "volumes": [{"name": "creds", "secret": {"secretName": "creds"}}],
    }
    config = {
        "source.consumer.client.id": "${strimzienv:REGION}",
        "source.admin.client.id": "${strimzidir:/opt/kafka/external-configuration/creds:id}",
    }
    text = changed(
        SET_UP_B,
        spec__externalConfiguration=external,
        spec__mirrors__0__sourceConnector__config=config,
    )
    done = run(text)
    written = done.files["mm2.properties"]
    assert "source->target.source.consumer.client.id=${env:REGION}" in written
    assert "param.allowlist.pattern=^(REGION)$" in written
    folder = "/opt/kafka/external-configuration/creds"
    assert f"allowed.paths=/etc/sparkmirror/secrets,{folder}" in written
    pod = Pod(tmp_path, done)
    assert pod.at(folder).is_dir()
    _, container = pod_of(text, Format.MM2)
    assert external["env"][0] in container["env"]


# -- secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
def test_passwords_of_the_resource_are_in_no_file(format_: Format) -> None:
    planted = [f"planted-secret-number-{number}" for number in range(4)]
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    text = changed(
        SET_UP_B,
        spec__clusters__0__config={"ssl.key.password": planted[0]},
        spec__clusters__1__config={"producer.ssl.key.password": planted[1]},
        spec__mirrors__0__sourceConnector__config={
            "producer.override.sasl.jaas.config": f'{module} username="a" password="{planted[2]}";'
        },
        spec__template={
            "connectContainer": {"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": planted[3]}]}
        },
    )
    done = run(text, format_)
    everything = str(done)
    assert [each for each in planted if each in everything] == []
    secret = "mirror-sparkmirror-secrets"
    asked = [note for note in done.not_carried if secret in note.instead]
    assert len(asked) == 4
    _, container = pod_of(text, format_)
    [variable] = [each for each in container["env"] if each["name"].startswith("AWS")]
    reference = {"name": secret, "key": "AWS_SECRET_ACCESS_KEY"}
    assert variable == {
        "name": "AWS_SECRET_ACCESS_KEY",
        "valueFrom": {"secretKeyRef": reference},
    }


def test_the_probe_logs_in(tmp_path: Path) -> None:
    pod = Pod(tmp_path, run(SET_UP_B, Format.CONNECTORS))
    _, container = pod_of(SET_UP_B, Format.CONNECTORS)
    python, option, code = container["readinessProbe"]["exec"]["command"]
    assert (python, option) == ("python", "-c")
    users = Users(pod.at("/etc/sparkmirror/users/users.properties"), ("probe",))
    with RestServer([("127.0.0.1", 0)]) as server:
        server.start(make_app(FakeHerder(), RestOptions(users=users)))
        code = code.replace("localhost:8083", f"127.0.0.1:{server.ports[0]}")
        asked = run_program(sys.executable, option, pod.moved(code))
        assert (asked.returncode, asked.stderr) == (0, "")
