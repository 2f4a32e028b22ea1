"""The resource as one mm2.properties, for `sparkmirror run`.

An mm2 file has one set of settings for the three connectors of a flow, the resource has three: a
key that only one connector reads is written unchanged; one that several read, with different
values, is listed. Strimzi runs only the connectors that the resource names, MirrorMaker 2 all three
of every pair of clusters: missing ones are disabled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sparkmirror.config.clients import BOOTSTRAP_SERVERS
from sparkmirror.config.expansion import CLUSTERS, EMIT_HEARTBEATS, ENABLED
from sparkmirror.config.keys.connector_keys import (
    CHECKPOINT_KEYS,
    HEARTBEAT_KEYS,
    SOURCE_KEYS,
    TOPIC_FILTER_KEYS,
)
from sparkmirror.tools.convert.clusters import ResourceCluster
from sparkmirror.tools.convert.connectors import (
    CHECKPOINT,
    HEARTBEAT,
    KINDS,
    SOURCE,
    TASKS_MAX,
    ResourceConnector,
)
from sparkmirror.tools.convert.ledger import Ledger
from sparkmirror.tools.convert.resource import Mirror, MirrorResource
from sparkmirror.tools.convert.settings import FileSetting, FileSettings
from sparkmirror.types import FlowName

FILE = "mm2.properties"
EMIT_CHECKPOINTS = CHECKPOINT_KEYS["emit.checkpoints.enabled"].name
OWN_KEYS: Mapping[str, frozenset[str]] = {
    SOURCE: frozenset(SOURCE_KEYS.names),
    CHECKPOINT: frozenset((*CHECKPOINT_KEYS.names, *TOPIC_FILTER_KEYS.names)),
    HEARTBEAT: frozenset(HEARTBEAT_KEYS.names),
}
# The keys that disable a connector.
SWITCHES = {SOURCE: ENABLED, CHECKPOINT: EMIT_CHECKPOINTS, HEARTBEAT: EMIT_HEARTBEATS}
OF_CLUSTERS = ("source.cluster.", "target.cluster.")
SPLIT = "use --format connectors, which keeps the connectors apart"


def mm2_sections(resource: MirrorResource, ledger: Ledger) -> dict[str, FileSettings]:
    """The settings of the file, by the titles of its sections."""
    sources = [mirror.source for mirror in resource.mirrors]
    clusters = [*sources, resource.target]
    aliases = FileSetting(", ".join(cluster.alias for cluster in clusters))
    sections = {"Clusters": {CLUSTERS: aliases}}
    for cluster in clusters:
        sections[f"Cluster {cluster.alias}"] = _cluster(cluster)
    sections["The worker of each flow, which is on the target"] = {
        f"{resource.target.alias}.{key}": setting
        for key, setting in resource.worker.settings.items()
    }
    # MirrorMaker 2 would write heartbeats for every pair of clusters, to the sources too.
    sections["Heartbeats only where the resource has them"] = {
        EMIT_HEARTBEATS: FileSetting("false")
    }
    for mirror in resource.mirrors:
        flow = FlowName(mirror.source.alias, resource.target.alias)
        settings = _flow(mirror, ledger)
        sections[f"Flow {flow}"] = {f"{flow}.{key}": each for key, each in settings.items()}
    _note_positions(resource, ledger)
    return sections


def _cluster(cluster: ResourceCluster) -> FileSettings:
    settings = {BOOTSTRAP_SERVERS: cluster.servers, **cluster.security}
    return {f"{cluster.alias}.{key}": setting for key, setting in settings.items()}


def _flow(mirror: Mirror, ledger: Ledger) -> FileSettings:
    connectors = mirror.connectors
    switches = {SWITCHES[kind]: _switch(connectors.get(kind), mirror) for kind in KINDS}
    # Written only where they differ from the default of the file or of MirrorMaker 2.
    quiet = {EMIT_HEARTBEATS: "false", EMIT_CHECKPOINTS: "true"}
    shown = {key: each for key, each in switches.items() if each.value != quiet.get(key)}
    own = {key: each for key, each in _merged(mirror, ledger).items() if key not in shown}
    if SOURCE not in connectors:
        ledger.note(
            mirror.path,
            "has no sourceConnector, but a flow of an mm2 file that does not copy runs at most the "
            "heartbeat connector",
            SPLIT,
        )
    return {**shown, **own}


def _switch(connector: ResourceConnector | None, mirror: Mirror) -> FileSetting:
    if connector is None:
        return FileSetting("false", mirror.path)
    own = connector.settings.get(SWITCHES[connector.kind])
    if own is not None and connector.is_on:
        return own
    return FileSetting(str(connector.is_on).lower(), connector.path)


def _merged(mirror: Mirror, ledger: Ledger) -> FileSettings:
    """One value for each key of the connectors."""
    present = [mirror.connectors[kind] for kind in KINDS if kind in mirror.connectors]
    keys = dict.fromkeys(key for connector in present for key in connector.settings)
    found: FileSettings = {}
    for key in keys:
        setting = _one_value(key, present, ledger)
        if setting is not None:
            found[key] = setting
    return found


def _one_value(
    key: str, present: Sequence[ResourceConnector], ledger: Ledger
) -> FileSetting | None:
    readers = [connector for connector in present if connector.kind in _readers(key)]
    given = [connector.settings[key] for connector in readers if key in connector.settings]
    for setting in _useless(key, present, readers):
        reason = "the connector does not read it: it has no effect in Strimzi either"
        ledger.note(setting.path, reason, "nothing")
    if key.startswith(OF_CLUSTERS):
        for setting in given:
            reason = "the flows of an mm2 file take the settings of their clusters"
            ledger.note(setting.path, reason, SPLIT)
        return None
    if not given:
        return None
    _note_differences(key, given, len(readers), ledger)
    return given[0]


def _readers(key: str) -> Iterable[str]:
    """The kinds of connectors that read the key; all of them if it is specific to none."""
    return [kind for kind, own in OWN_KEYS.items() if key in own] or KINDS


def _useless(
    key: str, present: Sequence[ResourceConnector], readers: Sequence[ResourceConnector]
) -> Iterator[FileSetting]:
    for connector in present:
        if connector not in readers and key in connector.settings:
            yield connector.settings[key]


def _note_differences(key: str, given: Sequence[FileSetting], readers: int, ledger: Ledger) -> None:
    first = given[0]
    for setting in given[1:]:
        if setting.value != first.value:
            reason = f"a flow has one {key} for all connectors: that of {first.path} is used"
            ledger.note(setting.path, reason, SPLIT)
    # The number of tasks applies to copying; the others always have one thread.
    if len(given) < readers and key != TASKS_MAX:
        reason = f"a flow has one {key} for all connectors: it also applies to those without it"
        ledger.note(first.path, reason, SPLIT)


def _note_positions(resource: MirrorResource, ledger: Ledger) -> None:
    """Record that an mm2 file cannot continue where Strimzi's connectors stopped."""
    ids = resource.worker.ids
    offsets = ids["offset.storage.topic"]
    ledger.note(
        offsets.path or resource.target.path,
        f"the positions that Strimzi's connectors have stored in {offsets.value} are not read: a "
        "flow keeps its own in mm2-offsets.<source>.internal, and begins at auto.offset.reset, "
        "which copies everything again",
        "use --format connectors to continue where Strimzi stopped",
    )
    for key, setting in ids.items():
        if setting.path and key != "offset.storage.topic":
            reason = f"each flow has its own {key}"
            ledger.note(setting.path, reason, "nothing, or use --format connectors")
