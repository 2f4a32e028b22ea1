"""The resource as a worker's file and the files of its connectors, as Strimzi runs them.

Connectors keep Strimzi's names, and the worker its group and topics, so that copying continues
where Strimzi's connectors stopped. Each source cluster gets the three files that `sparkmirror
deploy` expects. A connector that the resource lacks is written, but disabled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from sparkmirror.config.clients import BOOTSTRAP_SERVERS
from sparkmirror.config.expansion import EMIT_HEARTBEATS, ENABLED
from sparkmirror.config.keys.classes import BYTE_ARRAY_CONVERTER, MIRROR
from sparkmirror.config.security.allowed_access import (
    ALLOWED_FILES,
    ALLOWED_URLS,
    FILE_KEYS,
    login_urls,
)
from sparkmirror.config.security.sasl import ENDPOINT_URL, JAAS
from sparkmirror.config.worker.rest_keys import ADVERTISED_HOST, DEFAULT_PORT, LISTENERS
from sparkmirror.config.worker.rest_security import READ_ONLY_USERS, USERS_FILE
from sparkmirror.tools.convert.clusters import ResourceCluster
from sparkmirror.tools.convert.connectors import CHECKPOINT, HEARTBEAT, KINDS, SOURCE
from sparkmirror.tools.convert.resource import Mirror, MirrorResource
from sparkmirror.tools.convert.settings import CONFIG_FOLDER, ENVIRONMENT, FileSetting, FileSettings
from sparkmirror.types import FlowName

WORKER_FILE = "connect-distributed.properties"
CONNECTORS_FOLDER = "mm2"
USERS_FOLDER = f"{CONFIG_FOLDER}/users"
POD_IP = "POD_IP"
PROBE_USER = "probe"
CLASSES = {
    SOURCE: "MirrorSourceConnector",
    CHECKPOINT: "MirrorCheckpointConnector",
    HEARTBEAT: "MirrorHeartbeatConnector",
}
# Part of the file names that `sparkmirror deploy` expects.
SHORT = {SOURCE: "msc", CHECKPOINT: "cpc", HEARTBEAT: "hbc"}
SWITCHES = {SOURCE: ENABLED, CHECKPOINT: ENABLED, HEARTBEAT: EMIT_HEARTBEATS}
CONVERTERS = tuple(f"{part}.converter" for part in ("key", "value", "header"))


def worker_sections(
    resource: MirrorResource, connectors: Iterable[FileSettings]
) -> dict[str, FileSettings]:
    """The settings of the worker's file, by the titles of its sections."""
    security = resource.target.security
    converters = dict.fromkeys(CONVERTERS, FileSetting(BYTE_ARRAY_CONVERTER))
    rest = {
        LISTENERS: f"http://:{DEFAULT_PORT}",
        ADVERTISED_HOST: f"${{{ENVIRONMENT}:{POD_IP}}}",
        USERS_FILE: f"{USERS_FOLDER}/users.properties",
        READ_ONLY_USERS: PROBE_USER,
    }
    return {
        "The cluster of the workers' topics, which is the target": {
            BOOTSTRAP_SERVERS: resource.target.servers,
            **security,
            **{f"producer.{key}": setting for key, setting in security.items()},
        },
        "The group of the workers and its topics": resource.worker.ids,
        "As Strimzi sets them, and the resource": converters | resource.worker.settings,
        "The REST API, which requires passwords": {k: FileSetting(v) for k, v in rest.items()},
        "What logins of connectors may use": _allowed(connectors),
    }


def connector_files(resource: MirrorResource) -> dict[str, FileSettings]:
    """The settings of each connector, by the names of their files."""
    return {
        file_name(mirror.source.alias, kind): _connector(resource, mirror, kind)
        for mirror in resource.mirrors
        for kind in KINDS
    }


def file_name(alias: str, kind: str) -> str:
    """The file name that `sparkmirror deploy` expects."""
    return f"mm2-{SHORT[kind]}-{alias}.json"


def json_text(settings: FileSettings) -> str:
    """A connector's file."""
    return json.dumps({key: each.value for key, each in settings.items()}, indent=2) + "\n"


def _connector(resource: MirrorResource, mirror: Mirror, kind: str) -> FileSettings:
    flow = FlowName(mirror.source.alias, resource.target.alias)
    identity = {
        "name": FileSetting(f"{flow}.{CLASSES[kind]}"),
        "connector.class": FileSetting(f"{MIRROR}{CLASSES[kind]}"),
    }
    clusters = _side("source", mirror.source) | _side("target", resource.target)
    connector = mirror.connectors.get(kind)
    own = {} if connector is None else connector.settings
    is_on = connector is not None and connector.is_on
    switch = {} if is_on else {SWITCHES[kind]: FileSetting("false", mirror.path)}
    return identity | clusters | own | switch


def _side(side: str, cluster: ResourceCluster) -> FileSettings:
    settings = {
        "alias": FileSetting(cluster.alias, f"{cluster.path}.alias"),
        BOOTSTRAP_SERVERS: cluster.servers,
        **cluster.security,
    }
    return {f"{side}.cluster.{key}": setting for key, setting in settings.items()}


def _allowed(connectors: Iterable[FileSettings]) -> FileSettings:
    """Token servers and files that the connectors name: a worker rejects all others."""
    pairs = [pair for settings in connectors for pair in settings.items()]
    urls = dict.fromkeys(url for key, each in pairs for url in _urls(key, each.value))
    files = dict.fromkeys(each.value for key, each in pairs if key.endswith(FILE_KEYS))
    found = {ALLOWED_URLS: urls, ALLOWED_FILES: files}
    return {key: FileSetting(",".join(each)) for key, each in found.items() if each}


def _urls(key: str, value: str) -> Iterator[str]:
    if key.endswith(ENDPOINT_URL):
        yield value
    elif key.endswith(JAAS):
        yield from login_urls(value)
