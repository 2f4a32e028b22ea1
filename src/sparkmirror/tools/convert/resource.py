"""Reads a `KafkaMirrorMaker2` resource: which clusters, which mirrors, which settings for each.

There are two equivalent layouts: `spec.clusters` with aliases (`v1beta2`), and `spec.target` with
`spec.mirrors[].source` (`v1`, and `v1beta2` since Strimzi 0.48). All errors are raised at once. The
result does not depend on the format of the files to be written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.tools.convert.clusters import (
    ResourceCluster,
    ResourceWorker,
    read_source,
    read_target,
)
from sparkmirror.tools.convert.connectors import ResourceConnector, read_connectors
from sparkmirror.tools.convert.ledger import Ledger, Node, members_of
from sparkmirror.tools.convert.pods import Pods, read_pods
from sparkmirror.tools.convert.settings import Values
from sparkmirror.tools.convert.yaml_text import YamlValue

API = "kafka.strimzi.io"
V1BETA2, V1 = f"{API}/v1beta2", f"{API}/v1"
# Valid as the name of a Service, with the suffixes of the manifests.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?")
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
# Labels that name the owner of the objects.
FOREIGN_LABELS = ("app.kubernetes.io/", "strimzi.io/")


@dataclass(frozen=True, slots=True)
class Mirror:
    """One source cluster, and the connectors that copy from it, by kind."""

    path: str
    source: ResourceCluster
    connectors: Mapping[str, ResourceConnector]


@dataclass(frozen=True, slots=True)
class MirrorResource:
    """A whole resource; `values` has the Secrets that it needs, `labels` are for all objects."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    target: ResourceCluster
    worker: ResourceWorker
    mirrors: Sequence[Mirror]
    pods: Pods
    values: Values


@dataclass(slots=True)
class _Layout:
    """The target, each mirror with its source, and clusters that no mirror uses.

    None means not found; the error was recorded.
    """

    target: Node | None
    mirrors: list[tuple[Node, Node | None]]
    idle: list[Node] = field(default_factory=list)


def read_resource(value: YamlValue, ledger: Ledger) -> MirrorResource:
    """Read the resource in `value`.

    Raises:
        ConfigErrors: everything that is wrong with it.
    """
    root = Node(value, "", ledger)
    version = _read_version(root)
    metadata, spec = root.need("metadata", "add it"), root.need("spec", "add it")
    values, labels = _read_values(metadata, ledger), _read_labels(metadata)
    found = None if spec is None else _read_spec(spec, version, values)
    ledger.raise_errors()
    assert found is not None  # without a target, an error was raised
    target, worker, mirrors, pods = found
    return MirrorResource(
        name=values.name,
        namespace=values.namespace,
        labels=labels,
        target=target,
        worker=worker,
        mirrors=mirrors,
        pods=pods,
        values=values,
    )


def _read_version(root: Node) -> str:
    if kind := root.get("kind"):
        kind.use()
    version = root.need("apiVersion", f"write {V1BETA2} or {V1}")
    text = "" if version is None else version.text()
    if version is not None and text not in (V1BETA2, V1):
        version.wrong("unknown version", f"convert it to {V1BETA2} or {V1}")
    return text


def _read_values(metadata: Node | None, ledger: Ledger) -> Values:
    name = None if metadata is None else metadata.need("name", "name the resource")
    namespace = None if metadata is None else metadata.get("namespace")
    return Values(
        "" if name is None else name.matching(NAME, "a name of up to 45 characters"),
        "" if namespace is None else namespace.matching(NAMESPACE, "the name of a namespace"),
        ledger,
    )


def _read_labels(metadata: Node | None) -> dict[str, str]:
    found = members_of(None if metadata is None else metadata.get("labels"))
    for key in [key for key in found if key.startswith(FOREIGN_LABELS)]:
        node = found.pop(key)
        node.use()
        reason = "names the owner of the objects, but these belong to sparkmirror"
        node.ledger.note(node.path, reason, "nothing")
    return {key: node.text() for key, node in found.items()}


def _read_spec(
    spec: Node, version: str, values: Values
) -> tuple[ResourceCluster, ResourceWorker, list[Mirror], Pods] | None:
    layout = _read_layout(spec, version)
    pods = read_pods(spec, values)
    is_new = spec.get("target") is not None
    both = None
    if layout.target is not None:
        both = read_target(layout.target, values, has_fields=is_new)
    mirrors = _read_mirrors(layout, values, "" if both is None else both[0].alias, version)
    for cluster in layout.idle:
        _read_idle(cluster, values)
    return None if both is None else (*both, mirrors, pods)


def _read_idle(cluster: Node, values: Values) -> None:
    """Record an unused cluster; with other errors it may be the one that a wrong alias means."""
    if values.ledger.has_errors:
        read_source(cluster, values)
    else:
        cluster.use()
        cluster.ledger.note(cluster.path, "no mirror uses this cluster", "nothing")


# -- layouts ---------------------------------------------------------------------------------------


def _read_layout(spec: Node, version: str) -> _Layout:
    target, clusters = spec.get("target"), spec.get("clusters")
    mirrors = spec.need("mirrors", "list at least one mirror")
    elements = [] if mirrors is None else mirrors.elements()
    if mirrors is not None and mirrors.value == []:
        mirrors.wrong("has no element", "list at least one mirror")
    if target is not None or version == V1:
        return _read_new(spec, elements)
    if clusters is None:
        spec.need("clusters", "list the clusters, or use spec.target and spec.mirrors[].source")
    return _read_old(spec, [] if clusters is None else clusters.elements(), elements)


def _read_new(spec: Node, mirrors: Sequence[Node]) -> _Layout:
    target = spec.need("target", "apiVersion v1 has spec.target and spec.mirrors[].source")
    _refuse(spec, ("clusters", "connectCluster"), "use one of the two layouts")
    found = []
    for mirror in mirrors:
        _refuse(mirror, ("sourceCluster", "targetCluster"), "write source with its alias")
        remedy = "write alias and bootstrapServers of the source cluster"
        found.append((mirror, mirror.need("source", remedy)))
    return _Layout(target, found)


def _refuse(node: Node, names: Sequence[str], remedy: str) -> None:
    for name in names:
        if found := node.get(name):
            found.use()
            found.wrong("does not go with spec.target", remedy)


def _read_old(spec: Node, clusters: Sequence[Node], mirrors: Sequence[Node]) -> _Layout:
    known = _by_alias(clusters)
    target = _look_up(spec, "connectCluster", known)
    found = []
    for mirror in mirrors:
        found.append((mirror, _look_up(mirror, "sourceCluster", known)))
        other = _look_up(mirror, "targetCluster", known)
        if target is not None and other is not None and other.path != target.path:
            mirror.members()["targetCluster"].wrong(
                "is not the connectCluster, which Strimzi rejects",
                "create a resource for each target cluster",
            )
    used = [target, *(source for _, source in found)]
    paths = {node.path for node in used if node is not None}
    return _Layout(target, found, [each for each in known.values() if each.path not in paths])


def _by_alias(clusters: Sequence[Node]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for cluster in clusters:
        alias = cluster.need("alias", "name the cluster")
        if alias is not None and alias.text() in found:
            alias.wrong(
                "is the alias of another cluster too", "use a different one for each cluster"
            )
        elif alias is not None:
            found[alias.text()] = cluster
    return found


def _look_up(node: Node, name: str, known: Mapping[str, Node]) -> Node | None:
    """The cluster whose alias is in the member `name`."""
    alias = node.need(name, "write the alias of a cluster in spec.clusters")
    found = None if alias is None else known.get(alias.text())
    if alias is not None and found is None:
        names = ", ".join(known) or "none"
        alias.wrong("is not an alias in spec.clusters", f"use one of: {names}")
    return found


# -- mirrors ---------------------------------------------------------------------------------------


def _read_mirrors(layout: _Layout, values: Values, target: str, version: str) -> list[Mirror]:
    found: dict[str, Mirror] = {}
    for node, cluster in layout.mirrors:
        source = None if cluster is None else read_source(cluster, values)
        alias = "" if source is None else source.alias
        connectors = read_connectors(node, values, alias, has_heartbeats=version != V1)
        if source is None:
            continue
        if alias in found or alias == target:
            other = "the target" if alias == target else "the source of another mirror"
            reason = f"its source is {other} too"
            values.ledger.error(f"{node.path} ({alias})", None, reason, "use another alias")
        found[alias] = Mirror(node.path, source, connectors)
    return list(found.values())
