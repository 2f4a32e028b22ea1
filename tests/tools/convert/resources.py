"""Resources for tests, and a folder that is like the pod of the manifests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sparkmirror.errors import ConfigErrors
from sparkmirror.tools.convert.conversion import Conversion, Format, convert
from sparkmirror.tools.convert.ledger import children
from sparkmirror.tools.convert.yaml_text import YamlValue as Value
from tests.certificates import make_ca

# What tests put into a resource.
Json = Any

IMAGE = "sparkmirror:test"
FILE = "mirror.yaml"
FOLDERS = ("/etc/sparkmirror", "/opt/kafka", "/mnt")

# The set-up B of users.md.
SET_UP_B = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  replicas: 1
  connectCluster: target
  clusters:
    - alias: source
      bootstrapServers: source.example.com:443
      tls:
        trustedCertificates:
          - secretName: source-ca
            certificate: ca.crt
    - alias: target
      bootstrapServers: kafka1:9092,kafka2:9093,kafka3:9094
  mirrors:
    - sourceCluster: source
      targetCluster: target
      sourceConnector:
        config:
          replication.factor: 1
          offset-syncs.topic.replication.factor: 1
          sync.topic.acls.enabled: "false"
      topicsPattern: orders
"""
V1 = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
  name: mirror
  namespace: kafka
spec:
  replicas: 2
  target:
    alias: backup
    bootstrapServers: backup:9093
    groupId: my-group
    configStorageTopic: my-configs
    statusStorageTopic: my-status
    offsetStorageTopic: my-offsets
    tls: {}
    config:
      config.storage.replication.factor: -1
      offset.flush.interval.ms: 10000
  mirrors:
    - source:
        alias: eu
        bootstrapServers: eu:9092
      sourceConnector:
        tasksMax: 4
        config:
          replication.factor: -1
      checkpointConnector:
        config:
          sync.group.offsets.enabled: true
      topicsPattern: "orders, payments.*"
      groupsPattern: app-.*
    - source:
        alias: us
        bootstrapServers: us:9092
      sourceConnector: {}
"""


def run(text: str, format_: Format = Format.MM2) -> Conversion:
    return convert(text, FILE, format_, IMAGE)


def errors_of(text: str, format_: Format = Format.MM2) -> list[str]:
    """What is wrong with the resource, line by line."""
    try:
        run(text, format_)
    except ConfigErrors as errors:
        return str(errors).splitlines()
    return []


def changed(text: str, **changes: Json) -> str:
    """The resource with other values; `spec__mirrors__0__source` stands for the path."""
    value = yaml.safe_load(text)
    for path, new in changes.items():
        *places, last = [int(each) if each.isdigit() else each for each in path.split("__")]
        at = value
        for place in places:
            at = at[place]
        at[last] = new
    return yaml.safe_dump(value)


def notes_of(conversion: Conversion) -> dict[str, str]:
    """Reasons by paths."""
    found: dict[str, str] = {}
    for note in conversion.not_carried:
        assert note.reason
        assert note.instead
        for path in note.path.split(", "):
            found[path] = f"{found[path]}; {note.reason}" if path in found else note.reason
    return found


def leaves(value: Value, path: str = "") -> Iterator[str]:
    """The paths of all values that are no mappings or lists."""
    inner = list(children(value, path))
    if not inner:
        yield path
    for child, below in inner:
        yield from leaves(below, child)


def objects_of(conversion: Conversion) -> dict[str, Any]:
    """The objects of the manifest by kind and name, without what all their names begin with."""
    found = {}
    for each in yaml.safe_load_all(conversion.files["kubernetes.yaml"]):
        name = each["metadata"]["name"].removeprefix("mirror-sparkmirror")
        found[f"{each['kind']} {name}".strip()] = each
    return found


@dataclass(frozen=True)
class Pod:
    """The files as the container of the Deployment has them, in another folder."""

    folder: Path
    conversion: Conversion

    def __post_init__(self) -> None:
        spec = self._deployment["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        assert volumes.keys() == {mount["name"] for mount in container["volumeMounts"]}
        for mount in container["volumeMounts"]:
            if mount["name"] != "tmp":
                self._fill(self.at(mount["mountPath"]), mount, volumes[mount["name"]])

    @property
    def _deployment(self) -> Any:
        return objects_of(self.conversion)["Deployment"]

    def at(self, path: str) -> Path:
        return Path(self.moved(path))

    def moved(self, text: str) -> str:
        """The text with the folders of the pod below this one."""
        for folder in FOLDERS:
            text = text.replace(folder, f"{self.folder}{folder}")
        return text

    def connectors(self) -> dict[str, dict[str, str]]:
        """The settings of the connectors, by the names of their files."""
        files = self.conversion.files
        return {
            name: json.loads(self.moved(text)) for name, text in files.items() if "json" in name
        }

    def _fill(self, path: Path, mount: Any, volume: Any) -> None:
        if part := mount.get("subPath"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.moved(self.conversion.files[part]), "ascii")
            return
        path.mkdir(parents=True)
        for item in volume.get("secret", {}).get("items", []):
            (path / item["path"]).write_text(_content(item["key"]))


def _content(key: str) -> str:
    """What a Secret may have under this key."""
    if key.endswith(("crt", "pem")):
        return CA.pem
    return CA.key_pem() if key.endswith(".key") else CONTENTS.get(key, f"content-of-{key}")


CA = make_ca()
CONTENTS = {
    "users.properties": "admin: all-of-it\nprobe: a-look\n",
    "probe": "probe:a-look\n",
}
