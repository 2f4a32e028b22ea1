"""The Kubernetes objects that run the written files, in the form of deploy/kubernetes.

Pods run as the image's user with a read-only file system. Secrets are mounted by reference, with
only the keys that the files name. No object contains a password.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkmirror.config.worker.rest_keys import DEFAULT_PORT
from sparkmirror.tools.convert.connect_files import (
    CONNECTORS_FOLDER,
    POD_IP,
    PROBE_USER,
    USERS_FOLDER,
    WORKER_FILE,
)
from sparkmirror.tools.convert.mm2_files import FILE as MM2_FILE
from sparkmirror.tools.convert.resource import MirrorResource
from sparkmirror.tools.convert.settings import CONFIG_FOLDER, SECRETS_FOLDER

Object = dict[str, Any]

LABEL = "app.kubernetes.io"
DEDICATED, WORKER, DEPLOYER = "dedicated", "worker", "deploy"
CLIENT_LABEL = {"sparkmirror-client": "true"}
# Readable only for the group that fsGroup names.
SECRET_MODE = 0o440
USER_ID = 10001
PROBE = f"""\
import base64, pathlib, urllib.request
user = base64.b64encode(pathlib.Path("{USERS_FOLDER}/{PROBE_USER}").read_bytes().strip())
asked = urllib.request.Request("http://localhost:{DEFAULT_PORT}/health")
asked.add_header("Authorization", "Basic " + user.decode())
urllib.request.urlopen(asked, timeout=8)
"""
RECREATE = {"type": "Recreate"}
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}


@dataclass(frozen=True, slots=True)
class Manifests:
    """Makes the objects of one resource; `image` is this program's."""

    resource: MirrorResource
    image: str

    @property
    def name(self) -> str:
        """The name of the objects, or its beginning."""
        return f"{self.resource.name}-sparkmirror"

    @property
    def users_secret(self) -> str:
        """The Secret with the users of the REST API, which the operator must create."""
        return f"{self.name}-users"

    def dedicated(self, text: str) -> list[Object]:
        """For an mm2 file."""
        container = {
            "name": "mirror",
            "image": self.image,
            "args": ["run", f"{CONFIG_FOLDER}/{MM2_FILE}"],
            **self._env([]),
        }
        mounts = [_mount("config", f"{CONFIG_FOLDER}/{MM2_FILE}", MM2_FILE)]
        volumes = [{"name": "config", "configMap": {"name": self.name}}]
        return [
            self._config_map(self.name, {MM2_FILE: text}),
            self._policy(DEDICATED, []),
            self._deployment(DEDICATED, RECREATE, container, mounts, volumes),
        ]

    def workers(self, text: str, connectors: Mapping[str, str]) -> list[Object]:
        """For a worker's file and the files of its connectors."""
        container = {
            "name": "worker",
            "image": self.image,
            "args": ["worker", f"{CONFIG_FOLDER}/{WORKER_FILE}"],
            **self._env([_field(POD_IP, "status.podIP")]),
            "ports": [{"name": "rest", "containerPort": DEFAULT_PORT}],
            **_probes(),
        }
        mounts = [
            _mount("config", f"{CONFIG_FOLDER}/{WORKER_FILE}", WORKER_FILE),
            _mount("users", USERS_FOLDER),
        ]
        users = ("users.properties", PROBE_USER)
        volumes = [
            {"name": "config", "configMap": {"name": self.name}},
            _secret_volume("users", self.users_secret, users),
        ]
        callers = [{"matchLabels": self._labels(WORKER)}, {"matchLabels": CLIENT_LABEL}]
        aliases = [mirror.source.alias for mirror in self.resource.mirrors]
        return [
            self._config_map(self.name, {WORKER_FILE: text}),
            self._config_map(f"{self.name}-connectors", connectors),
            self._service(),
            self._policy(WORKER, callers),
            self._deployment(WORKER, ROLLING, container, mounts, volumes),
            *(self._job(number, alias) for number, alias in enumerate(aliases)),
        ]

    # -- objects -----------------------------------------------------------------------------------

    def _config_map(self, name: str, data: Mapping[str, str]) -> Object:
        return {**self._head("v1", "ConfigMap", name), "data": dict(data)}

    def _service(self) -> Object:
        port = {"name": "rest", "port": DEFAULT_PORT, "targetPort": "rest"}
        spec = {"selector": self._labels(WORKER), "ports": [port]}
        return {**self._head("v1", "Service", self.name), "spec": spec}

    def _policy(self, component: str, callers: Sequence[Object]) -> Object:
        """Limits callers only: the resource does not name the brokers' pods and ports."""
        ports = [{"protocol": "TCP", "port": DEFAULT_PORT}]
        rule = {"from": [{"podSelector": each} for each in callers], "ports": ports}
        spec = {
            "podSelector": {"matchLabels": self._labels(component)},
            "policyTypes": ["Ingress"],
            "ingress": [rule] if callers else [],
        }
        return {**self._head("networking.k8s.io/v1", "NetworkPolicy", self.name), "spec": spec}

    def _deployment(
        self,
        component: str,
        strategy: Object,
        container: Object,
        mounts: Sequence[Object],
        volumes: Sequence[Object],
    ) -> Object:
        pods = self.resource.pods
        secrets = self._secrets()
        whole = {
            **container,
            "resources": pods.resources,
            "securityContext": _container_security(),
            "volumeMounts": [*mounts, *self._secret_mounts(), *pods.mounts, _tmp_mount()],
        }
        spec = {
            **_pod_head(),
            **pods.spec,
            "containers": [whole],
            "volumes": [*volumes, *secrets, *pods.volumes, {"name": "tmp", "emptyDir": {}}],
        }
        labels = {**self.resource.labels, **pods.labels, **self._labels(component)}
        annotations = {"annotations": pods.annotations} if pods.annotations else {}
        return {
            **self._head("apps/v1", "Deployment", self.name),
            "spec": {
                "replicas": pods.replicas,
                "strategy": strategy,
                "selector": {"matchLabels": self._labels(component)},
                "template": {"metadata": {"labels": labels, **annotations}, "spec": spec},
            },
        }

    def _job(self, number: int, alias: str) -> Object:
        """Sends the connectors of one source cluster to the workers, once."""
        folder = f"{CONFIG_FOLDER}/{CONNECTORS_FOLDER}"
        user = {"secretKeyRef": {"name": self.users_secret, "key": DEPLOYER}}
        url = f"http://{self.name}:{DEFAULT_PORT}"
        container = {
            "name": "deploy",
            "image": self.image,
            "args": ["redeploy", alias, "--dir", folder, "--url", url, "--timeout", "300"],
            "env": [{"name": "SPARKMIRROR_USER", "valueFrom": user}],
            "securityContext": _container_security(),
            "volumeMounts": [_mount("connectors", folder), _tmp_mount()],
        }
        own = {key: each for key, each in self.resource.pods.spec.items() if key in OF_EVERY_POD}
        spec = {
            **_pod_head(),
            **own,
            "restartPolicy": "OnFailure",
            "containers": [container],
            "volumes": [
                {"name": "connectors", "configMap": {"name": f"{self.name}-connectors"}},
                {"name": "tmp", "emptyDir": {}},
            ],
        }
        labels = {**self._labels(DEPLOYER), **CLIENT_LABEL}
        return {
            **self._head("batch/v1", "Job", f"{self.name}-deploy-{number}"),
            "spec": {
                "backoffLimit": 6,
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }

    # -- parts -------------------------------------------------------------------------------------

    def _head(self, version: str, kind: str, name: str) -> Object:
        place = {"namespace": self.resource.namespace} if self.resource.namespace else {}
        whose = {f"{LABEL}/name": "sparkmirror", f"{LABEL}/instance": self.resource.name}
        labels = {**self.resource.labels, **whose}
        metadata = {"name": name, **place, "labels": labels}
        return {"apiVersion": version, "kind": kind, "metadata": metadata}

    def _labels(self, component: str) -> dict[str, str]:
        return {
            f"{LABEL}/name": "sparkmirror",
            f"{LABEL}/instance": self.resource.name,
            f"{LABEL}/component": component,
        }

    def _env(self, own: Sequence[Object]) -> Object:
        found = [*own, *self.resource.pods.env]
        return {"env": found} if found else {}

    def _secrets(self) -> list[Object]:
        keys = self.resource.values.secrets.keys
        return [
            _secret_volume(f"secret-{number}", secret, tuple(each))
            for number, (secret, each) in enumerate(keys.items())
        ]

    def _secret_mounts(self) -> list[Object]:
        names = self.resource.values.secrets.keys
        return [
            _mount(f"secret-{number}", f"{SECRETS_FOLDER}/{secret}")
            for number, secret in enumerate(names)
        ]


# The part of spec.template.pod that every pod needs, to be scheduled and to get its image.
OF_EVERY_POD = ("imagePullSecrets", "tolerations", "affinity", "schedulerName")


def _pod_head() -> Object:
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "fsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _container_security() -> Object:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def _probes() -> Object:
    """Not ready while it starts or cannot work; restarted only if it does not respond at all."""
    return {
        "readinessProbe": {
            "exec": {"command": ["python", "-c", PROBE]},
            "periodSeconds": 10,
            "timeoutSeconds": 10,
        },
        "livenessProbe": {
            "tcpSocket": {"port": "rest"},
            "initialDelaySeconds": 60,
            "periodSeconds": 20,
            "failureThreshold": 6,
        },
    }


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _mount(name: str, path: str, part: str = "") -> Object:
    inner = {"subPath": part} if part else {}
    return {"name": name, "mountPath": path, **inner, "readOnly": True}


def _tmp_mount() -> Object:
    """Only Spark writes to disk, and only to /tmp."""
    return {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - a folder of the pod's own


def _secret_volume(name: str, secret: str, keys: Sequence[str]) -> Object:
    items = [{"key": key, "path": key} for key in keys]
    source = {"secretName": secret, "defaultMode": SECRET_MODE, "items": items}
    return {"name": name, "secret": source}
