"""How one mm2 file becomes the settings of workers and connectors: pure text to text.

Mirrors: org.apache.kafka.connect.mirror.MirrorMakerConfig (4.3). For a flow A->B:

    worker      = cluster B  +  top-level storage, converter, task, worker and policy keys
    connectors  = top-level keys that a connector knows
                  < cluster A as source.*  < cluster B as target.*  < A->B.* without the prefix
    cluster X   = X.* without the prefix, its servers and security keys also for each client,
                  then the same keys of the top level where X has none

Every setting remembers the key of the file that it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.config.clients import BOOTSTRAP_SERVERS, CLUSTER_KEYS
from sparkmirror.config.files.providers import CONFIG_PROVIDERS
from sparkmirror.config.findings import Origin
from sparkmirror.config.keys.classes import BYTE_ARRAY_CONVERTER, MIRROR
from sparkmirror.config.keys.connector_keys import COMMON_KEYS, HEARTBEAT_KEYS, MIRROR_KEYS
from sparkmirror.types import FlowName

CLUSTERS = "clusters"
ENABLED = COMMON_KEYS["enabled"].name
EMIT_HEARTBEATS = HEARTBEAT_KEYS["emit.heartbeats.enabled"].name
REPLICATION_POLICY = "replication.policy"
CONNECTORS = ("MirrorSourceConnector", "MirrorHeartbeatConnector", "MirrorCheckpointConnector")
CLIENT_ROLES = ("producer", "consumer", "admin")
WORKER_PREFIXES = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    REPLICATION_POLICY,
)


class ExpandedSetting(NamedTuple):
    """A value as the file has it, and its key there ("" for a value the expansion filled in)."""

    value: str
    origin: str = ""


Expanded = dict[str, ExpandedSetting]


def flow_prefix(flow: FlowName) -> str:
    """What keys of one flow begin with."""
    return f"{flow}."


def pairs(clusters: Sequence[str]) -> Iterator[FlowName]:
    """Every ordered pair of different clusters."""
    return (FlowName(a, b) for a in clusters for b in clusters if a != b)


def copies(props: Mapping[str, str], flow: FlowName) -> bool:
    """Whether the flow copies: `A->B.enabled=true`.

    A top-level `enabled=true` counts where MirrorMaker 2 has a worker for the pair anyway, that is
    where it writes heartbeats.
    """
    own = props.get(flow_prefix(flow) + ENABLED)
    if own is not None:
        return _is_true(own)
    return _is_true(props.get(ENABLED, "")) and emits_heartbeats(props, flow)


def emits_heartbeats(props: Mapping[str, str], flow: FlowName) -> bool:
    """Whether MirrorMaker 2 would write heartbeats for the pair: by default, yes."""
    everywhere = props.get(EMIT_HEARTBEATS, "true")
    return _is_true(props.get(flow_prefix(flow) + EMIT_HEARTBEATS, everywhere))


def cluster_settings(props: Mapping[str, str], alias: str) -> Expanded:
    """Everything the file says about one cluster, with the keys of each client filled in."""
    found = _stripped(props, f"{alias}.")
    for name in sorted(CLUSTER_KEYS & found.keys()):
        _fill_roles(found, name, found[name])
    for name in sorted(CLUSTER_KEYS & props.keys()):
        setting = ExpandedSetting(props[name], name)
        _fill_roles(found, name, setting)
        found.setdefault(name, setting)
    return found


def worker_settings(props: Mapping[str, str], flow: FlowName) -> Expanded:
    """The worker's settings. The caller must resolve the placeholders in them at once."""
    found = cluster_settings(props, flow.target)
    for prefix in (*WORKER_PREFIXES, CONFIG_PROVIDERS):
        found |= _unstripped(props, prefix)
    return _defaults(flow) | found


def connector_settings(props: Mapping[str, str], flow: FlowName, connector: str) -> Expanded:
    """One connector's settings, with placeholders as they are: its worker resolves them."""
    found = {
        name: ExpandedSetting(props[name], name) for name in MIRROR_KEYS.names if name in props
    }
    found |= _unstripped(props, CONFIG_PROVIDERS) | _unstripped(props, REPLICATION_POLICY)
    found |= _side("source", cluster_settings(props, flow.source))
    found |= _side("target", cluster_settings(props, flow.target))
    found = _identity(flow, connector) | found
    return {ENABLED: ExpandedSetting("false")} | found | _stripped(props, flow_prefix(flow))


def plain(settings: Mapping[str, ExpandedSetting]) -> dict[str, str]:
    """The settings without their origins."""
    return {name: setting.value for name, setting in settings.items()}


def origins(
    settings: Mapping[str, ExpandedSetting], servers: Mapping[str, str]
) -> dict[str, Origin]:
    """Names for error messages; `servers` has those of broker addresses that may be missing."""
    missing = {name: Origin(f"{alias}.{BOOTSTRAP_SERVERS}") for name, alias in servers.items()}
    return missing | {
        name: Origin(setting.origin or name, setting.value) for name, setting in settings.items()
    }


def _fill_roles(found: Expanded, name: str, setting: ExpandedSetting) -> None:
    for role in CLIENT_ROLES:
        found.setdefault(f"{role}.{name}", setting)


def _stripped(props: Mapping[str, str], prefix: str) -> Expanded:
    return {
        key.removeprefix(prefix): ExpandedSetting(value, key)
        for key, value in props.items()
        if key.startswith(prefix) and key != prefix
    }


def _unstripped(props: Mapping[str, str], prefix: str) -> Expanded:
    return {
        key: ExpandedSetting(value, key) for key, value in props.items() if key.startswith(prefix)
    }


def _side(side: str, cluster: Expanded) -> Expanded:
    """A cluster's settings as a connector knows them: `source.consumer.X`, `source.cluster.X`."""
    return {
        f"{side}.{name}" if name.startswith(CLIENT_ROLES) else f"{side}.cluster.{name}": setting
        for name, setting in cluster.items()
    }


def _identity(flow: FlowName, connector: str) -> Expanded:
    return {
        "name": ExpandedSetting(connector),
        "connector.class": ExpandedSetting(f"{MIRROR}{connector}"),
        "source.cluster.alias": ExpandedSetting(flow.source),
        "target.cluster.alias": ExpandedSetting(flow.target),
    }


def _defaults(flow: FlowName) -> Expanded:
    values = {
        "client.id": str(flow),
        "group.id": f"{flow.source}-mm2",
        "offset.storage.topic": f"mm2-offsets.{flow.source}.internal",
        "status.storage.topic": f"mm2-status.{flow.source}.internal",
        "config.storage.topic": f"mm2-configs.{flow.source}.internal",
        "key.converter": BYTE_ARRAY_CONVERTER,
        "value.converter": BYTE_ARRAY_CONVERTER,
        "header.converter": BYTE_ARRAY_CONVERTER,
    }
    return {name: ExpandedSetting(value) for name, value in values.items()}


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
