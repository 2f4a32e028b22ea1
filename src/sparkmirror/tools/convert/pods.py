"""The resource's fields about pods: resources, scheduling, variables, volumes.

They are copied unchanged, because they follow Kubernetes' own schema; `fields.py` lists those that
the manifests set themselves or must not contain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.config.masking import is_secret, remember
from sparkmirror.tools.convert.ledger import Node, members_of
from sparkmirror.tools.convert.settings import EXTERNAL_FOLDER, Values

# Members of spec.template.pod that go into the pod's specification unchanged.
POD_FIELDS = (
    "imagePullSecrets",
    "terminationGracePeriodSeconds",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priorityClassName",
    "schedulerName",
    "hostAliases",
    "enableServiceLinks",
    "dnsPolicy",
    "dnsConfig",
)
DEFAULT_REPLICAS = 3
DEFAULT_RESOURCES = {
    "requests": {"cpu": "500m", "memory": "1Gi"},
    "limits": {"memory": "2Gi"},
}
# Volumes of the manifests themselves; those of Secrets are secret-0, secret-1 ...
OWN_VOLUME = re.compile(r"config|connectors|tmp|users|secret-\d+")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VOLUME_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(slots=True)
class Pods:
    """Parts of the Deployment. `labels` and `annotations` are those of the pods."""

    replicas: int = DEFAULT_REPLICAS
    resources: Any = field(default_factory=lambda: DEFAULT_RESOURCES)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    env: list[Any] = field(default_factory=list)
    volumes: list[Any] = field(default_factory=list)
    mounts: list[Any] = field(default_factory=list)

    @property
    def variables(self) -> list[str]:
        """Names of the variables that placeholders may read."""
        return [each["name"] for each in self.env]

    @property
    def folders(self) -> list[str]:
        """Paths of the user's mounts, which placeholders may read."""
        return [str(each["mountPath"]) for each in self.mounts]


def read_pods(spec: Node, values: Values) -> Pods:
    """Everything about pods in `spec`."""
    pods = Pods()
    if replicas := spec.get("replicas"):
        pods.replicas = replicas.number()
    if resources := spec.get("resources"):
        pods.resources = resources.whole()
    if template := spec.get("template"):
        _read_template(template, values, pods)
    if external := spec.get("externalConfiguration"):
        _read_external(external, values, pods)
    return pods


def _read_template(template: Node, values: Values, pods: Pods) -> None:
    pod, container = template.get("pod"), template.get("connectContainer")
    if pod is not None:
        pods.spec |= {name: node.whole() for name in POD_FIELDS if (node := pod.get(name))}
        metadata = pod.get("metadata")
        pods.labels |= _texts(metadata, "labels")
        pods.annotations |= _texts(metadata, "annotations")
        for volume in _elements(pod, "volumes"):
            _read_volume(volume, pods)
    if container is not None:
        for variable in _elements(container, "env"):
            _read_variable(variable, values, pods)
        for mount in _elements(container, "volumeMounts"):
            _read_mount(mount, pods)


def _read_external(external: Node, values: Values, pods: Pods) -> None:
    for variable in _elements(external, "env"):
        _read_variable(variable, values, pods)
    for volume in _elements(external, "volumes"):
        name = _read_volume(volume, pods)
        path = f"{EXTERNAL_FOLDER}/{name}"
        pods.mounts.append({"name": name, "mountPath": path, "readOnly": True})


def _texts(node: Node | None, name: str) -> dict[str, str]:
    found = None if node is None else node.get(name)
    return {key: each.text() for key, each in members_of(found).items()}


def _elements(node: Node, name: str) -> list[Node]:
    found = node.get(name)
    return [] if found is None else found.elements()


def _read_volume(volume: Node, pods: Pods) -> str:
    name = volume.need("name", "name the volume")
    text = "" if name is None else name.matching(VOLUME_NAME, "the name of a volume")
    if name is not None and OWN_VOLUME.fullmatch(text):
        name.wrong("is the name of a volume that the manifests have themselves", "rename it")
    pods.volumes.append(volume.whole())
    return text


def _read_mount(mount: Node, pods: Pods) -> None:
    for needed in ("name", "mountPath"):
        if found := mount.need(needed, "write it as for any container"):
            found.text()
    pods.mounts.append(mount.whole())


def _read_variable(variable: Node, values: Values, pods: Pods) -> None:
    name = variable.need("name", "name the variable")
    if name is None:
        return
    text = name.matching(VARIABLE, "the name of a variable")
    given = variable.get("value")
    if given is not None and is_secret(text) and given.text():
        remember(given.text())
        pods.env.append({"name": text, "valueFrom": _moved(given, text, values)})
    else:
        pods.env.append(variable.whole())


def _moved(given: Node, name: str, values: Values) -> dict[str, Any]:
    """A reference to a Secret that the user must create."""
    secret = values.own_secret
    values.ledger.note(
        given.path,
        "contains a password or key, which does not belong in a manifest: the variable is read "
        f"from the key {name} of the Secret {secret}",
        f"kubectl create secret generic {secret} --from-file={name}=FILE",
    )
    return {"secretKeyRef": {"name": secret, "key": name}}
