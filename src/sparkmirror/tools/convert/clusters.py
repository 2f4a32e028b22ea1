"""Clusters of the resource: how to reach them, and which settings their `config` has.

In Strimzi the `config` of the target is that of the Connect worker. In a source's `config`,
connectors read only addresses and security keys: the rest has no effect in Strimzi either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config.clients import BOOTSTRAP_SERVERS, CLUSTER_KEYS
from sparkmirror.config.files.providers import CONFIG_PROVIDERS
from sparkmirror.tools.convert.ledger import Fate, Node, members_of
from sparkmirror.tools.convert.security import read_security
from sparkmirror.tools.convert.settings import FileSetting, FileSettings, Values

ALIAS = re.compile(r"[a-zA-Z0-9._-]{1,100}")
# Keys that Strimzi does not pass to the worker, and exceptions among them.
FORBIDDEN = (
    "ssl.",
    "sasl.",
    "security.",
    "listeners",
    "plugin.path",
    "rest.",
    BOOTSTRAP_SERVERS,
    "consumer.interceptor.classes",
    "producer.interceptor.classes",
)
ALLOWED = (
    "ssl.endpoint.identification.algorithm",
    "ssl.cipher.suites",
    "ssl.protocol",
    "ssl.enabled.protocols",
)
# The worker's keys, each with its field in spec.target and Strimzi's default without the field.
IDS = {
    "group.id": ("groupId", "mirrormaker2-cluster"),
    "offset.storage.topic": ("offsetStorageTopic", "mirrormaker2-cluster-offsets"),
    "config.storage.topic": ("configStorageTopic", "mirrormaker2-cluster-configs"),
    "status.storage.topic": ("statusStorageTopic", "mirrormaker2-cluster-status"),
}
NOT_PASSED_ON = Fate(
    "Strimzi does not pass it on to the worker", "use tls and authentication of the cluster"
)
FOR_SINKS = Fate(
    "is for sink connectors: it has no effect in Strimzi either",
    "set source.consumer.*, source.admin.* or target.admin.* in sourceConnector.config",
)
NOT_READ = Fate(
    "no client of the connectors reads it: it has no effect in Strimzi either",
    "set source.consumer.*, source.admin.* or producer.override.* in sourceConnector.config",
)
REPLACED = Fate("the field of spec.target takes precedence", "nothing")


@dataclass(frozen=True, slots=True)
class ResourceCluster:
    """A cluster; `security` has the settings of its clients without a prefix."""

    path: str
    alias: str
    servers: FileSetting
    security: FileSettings


@dataclass(frozen=True, slots=True)
class ResourceWorker:
    """Settings of the Connect worker: its group and topics, and everything else."""

    ids: FileSettings
    settings: FileSettings


def read_source(node: Node, values: Values) -> ResourceCluster:
    """A cluster that is copied from."""
    cluster = _read_cluster(node, values)
    for key, member in members_of(node.get("config")).items():
        if key in CLUSTER_KEYS and key != BOOTSTRAP_SERVERS:
            cluster.security[key] = values.setting(member, key, cluster.alias)
        else:
            _drop(member, NOT_READ)
    return cluster


def read_target(
    node: Node, values: Values, *, has_fields: bool
) -> tuple[ResourceCluster, ResourceWorker]:
    """The cluster that is copied to, and the worker; `has_fields`: it is spec.target."""
    values.learn_providers(node.get("config"))
    cluster = _read_cluster(node, values)
    worker = ResourceWorker({}, {})
    for key, member in _config(node):
        if key in IDS and not has_fields:
            worker.ids[key] = FileSetting(member.text(), member.path)
        elif fate := _fate(key):
            _drop(member, fate)
        elif key in ALLOWED:
            cluster.security[key] = FileSetting(member.text(), member.path)
        else:
            worker.settings[key] = values.setting(member, key, "worker")
    ids = _read_fields(node) if has_fields else {}
    defaults = {key: FileSetting(default) for key, (_, default) in IDS.items()}
    return cluster, ResourceWorker(defaults | worker.ids | ids, worker.settings)


def _config(node: Node) -> Iterator[tuple[str, Node]]:
    """The members of the worker's `config`, without its config providers."""
    for key, member in members_of(node.get("config")).items():
        if key != CONFIG_PROVIDERS and not key.startswith(f"{CONFIG_PROVIDERS}."):
            yield key, member


def _fate(key: str) -> Fate | None:
    """Why the worker does not get the key; None if it does."""
    if key in IDS:
        return REPLACED
    if key.startswith(FORBIDDEN) and key not in ALLOWED:
        return NOT_PASSED_ON
    return FOR_SINKS if key.startswith(("consumer.", "admin.")) else None


def _drop(member: Node, fate: Fate) -> None:
    member.use()
    member.ledger.note(member.path, fate.reason, fate.instead)


def _read_fields(node: Node) -> FileSettings:
    found = {key: node.need(name, "write its name") for key, (name, _) in IDS.items()}
    return {key: FileSetting(each.text(), each.path) for key, each in found.items() if each}


def _read_cluster(node: Node, values: Values) -> ResourceCluster:
    alias = node.need("alias", "name the cluster")
    name = "" if alias is None else alias.matching(ALIAS, "an alias of up to 100 characters")
    servers = node.need("bootstrapServers", "write host:port, several with commas")
    address = (
        FileSetting("") if servers is None else values.setting(servers, BOOTSTRAP_SERVERS, name)
    )
    return ResourceCluster(node.path, name, address, read_security(node, values, name))
