"""Advice about keys of an mm2 file that MirrorMaker 2 would silently drop.

A key of the file has one of three places - the top level, a cluster (`A.`), a flow (`A->B.`) - and
works in some of them only. For each key that does nothing, `advise` names the spelling that works.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from sparkmirror.config.clients import CLUSTER_KEYS, OVERRIDE
from sparkmirror.config.config_def import KeySupport
from sparkmirror.config.expansion import CLUSTERS, WORKER_PREFIXES, pairs
from sparkmirror.config.files.providers import CONFIG_PROVIDERS
from sparkmirror.config.findings import Findings
from sparkmirror.config.keys.classes import PYTHON_CLASS
from sparkmirror.config.keys.client_keys import CLIENT_KEYS, COMMON_CLIENT_KEYS
from sparkmirror.config.keys.connector_keys import FRAMEWORK_KEYS, MIRROR_KEYS
from sparkmirror.config.mm2_keys import (
    HTTPS_PREFIX,
    MM2_KEYS,
    NODE_METRICS_KEYS,
    NODE_REST_KEYS,
    SPARK,
)
from sparkmirror.config.worker_config import STORAGE_PREFIXES, WORKER_KEYS
from sparkmirror.types import FlowName

# Keys of older releases, and what replaces them since 4.0.
REMOVED = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
    "topics.whitelist": "topics",
    "groups.whitelist": "groups",
    "use.incremental.alter.configs": "",
    "add.source.alias.to.metrics": "",
    "auto.include.jmx.reporter": "",
}
# Families of keys that only a connector reads: they need the prefix of a flow.
FLOW_PREFIXES = (
    "producer.override.",
    "consumer.override.",
    "admin.override.",
    "transforms.",
    "predicates.",
    "topic.creation.",
)
CONVERTER_PREFIXES = ("key.converter.", "value.converter.", "header.converter.")
ROLES_OF_SIDE = {"source": ("consumer", "admin"), "target": ("producer", "admin")}
OF_TARGET = "worker settings belong to the target cluster"
UNKNOWN = "unknown key, ignored"
NODE_KEYS = NODE_REST_KEYS + NODE_METRICS_KEYS
WRITE = "; write "


@dataclass(frozen=True, slots=True)
class FileContext:
    """The clusters of the file, the flows that copy, and the pairs that get heartbeats."""

    clusters: tuple[str, ...]
    flows: tuple[FlowName, ...]
    beating: tuple[FlowName, ...] = ()

    @property
    def example(self) -> FlowName:
        """A flow for the spellings in messages."""
        return next(iter(self.flows or pairs(self.clusters)), FlowName("A", "B"))

    def is_source(self, alias: str) -> bool:
        return any(flow.source == alias for flow in self.flows)

    def is_target(self, alias: str) -> bool:
        return any(flow.target == alias for flow in self.flows)

    def heartbeats_into(self, alias: str) -> list[str]:
        """Pairs whose only worker there writes heartbeats."""
        return [str(pair) for pair in self.beating if pair.target == alias]


def advise(
    props: Mapping[str, str],
    clusters: Sequence[str],
    flows: Iterable[FlowName],
    findings: Findings,
    beating: Iterable[FlowName] = (),
) -> None:
    """Warn of every key that does nothing; a flow between unknown clusters is an error."""
    context = FileContext(tuple(clusters), tuple(flows), tuple(beating))
    has_own_classes = any(
        key.endswith(".class") and PYTHON_CLASS.fullmatch(value) for key, value in props.items()
    )
    for key in props:
        name = key
        if "->" in key:
            text = _in_flow(key, props[key], context, findings)
            name = _within_flow(key, context)
        elif alias := _alias_of(key, context.clusters):
            name = key.removeprefix(f"{alias}.")
            text = _in_cluster(alias, name, context)
        else:
            text = _at_top(key, context)
        if text and WRITE in text:
            text = without_effect(name) or text
        # A user's class gets all settings of its flow, including those that only it reads.
        is_for_own_class = text == UNKNOWN and has_own_classes and "->" in key
        if text and not is_for_own_class:
            findings.warn_key(key, text)


def _alias_of(key: str, clusters: Sequence[str]) -> str | None:
    """The cluster whose prefix the key has; the longer one of `a` and `a.b`."""
    found = [alias for alias in clusters if key.startswith(f"{alias}.")]
    belongs_to_top = any(key in keys for keys in (MIRROR_KEYS, MM2_KEYS, NODE_KEYS))
    return max(found, key=len, default=None) if not belongs_to_top else None


def _at_top(name: str, context: FileContext) -> str | None:
    if name.startswith((f"{SPARK}.", f"{CONFIG_PROVIDERS}.", HTTPS_PREFIX)):
        return None
    # Those of the REST API are explained with it.
    if any(name in keys for keys in (MM2_KEYS, MIRROR_KEYS, CLUSTER_KEYS, NODE_KEYS)):
        return None
    if name.startswith(WORKER_PREFIXES):
        return topic_setting(name) if _is_worker_key(name) else _unknown(name, WORKER_KEYS.names)
    if name in REMOVED:
        return removed_key(name)
    if spellings := _spellings(name, context.example):
        return f"ignored at the top level, as in MirrorMaker 2; write {_either(spellings)}"
    return _unlisted_cluster(name) or _unknown(name, _top_names(context))


def _in_cluster(alias: str, name: str, context: FileContext) -> str | None:
    role, _, rest = name.partition(".")
    if name in CLUSTER_KEYS:
        return None
    if role in CLIENT_KEYS:
        return _client_of_cluster(alias, role, rest, context)
    if name in REMOVED:
        return removed_key(name)
    is_of_worker = _is_worker_key(name) or name in COMMON_CLIENT_KEYS
    has_worker = context.is_target(alias) or not context.is_source(alias)
    if is_of_worker and has_worker:
        return topic_setting(name)
    if is_of_worker and (pairs_here := context.heartbeats_into(alias)):
        return _only_for_heartbeats(name, pairs_here, context)
    return _misplaced_in_cluster(alias, name.removeprefix("cluster."), context)


def _only_for_heartbeats(name: str, beating: Sequence[str], context: FileContext) -> str:
    wanted = f"{context.example.target}.{name}"
    who = " and ".join(beating)
    return f"only the heartbeats of {who} use it; for {context.example} write {wanted}"


def _misplaced_in_cluster(alias: str, name: str, context: FileContext) -> str:
    roles = ("consumer", "admin") if context.is_source(alias) else ("producer", "admin")
    if spellings := _of_clients(alias, name, roles) or _of_clients(alias, name, CLIENT_KEYS):
        return _ignored_here(spellings)
    if name in WORKER_KEYS:
        return _ignored_here([f"{context.example.target}.{name}"], OF_TARGET)
    if _is_flow_key(name):
        return _ignored_here([_flow_of(alias, context, name)])
    return _unknown(name, (*WORKER_KEYS.names, *CLUSTER_KEYS), f"{alias}.")


def _within_flow(key: str, context: FileContext) -> str:
    """The key without its flow."""
    prefixes = [f"{flow}." for flow in pairs(context.clusters) if key.startswith(f"{flow}.")]
    return key.removeprefix(max(prefixes, key=len, default=""))


def _in_flow(key: str, value: str, context: FileContext, findings: Findings) -> str | None:
    prefixes = {f"{flow}.": flow for flow in pairs(context.clusters)}
    prefix = max((p for p in prefixes if key.startswith(p)), key=len, default=None)
    if prefix is None:
        return _no_such_flow(key, value, context, findings)
    return _of_flow(prefixes[prefix], key.removeprefix(prefix))


def _of_flow(flow: FlowName, name: str) -> str | None:
    if name in CLUSTER_KEYS:
        return _ignored_here([f"{flow.source}.{name}", f"{flow.target}.{name}"])
    if _is_flow_key(name) and not name.startswith(("consumer.override.", "admin.override.")):
        return _known_of_flow(name)
    if name.startswith((CONFIG_PROVIDERS, *CONVERTER_PREFIXES)):
        return None
    if name in REMOVED:
        return removed_key(name)
    if name in WORKER_KEYS:
        return _ignored_here([f"{flow.target}.{name}"], OF_TARGET)
    return _client_of_flow(flow, name)


def _known_of_flow(name: str) -> str | None:
    if name == "connector.class":
        return "ignored: every flow has MirrorMaker 2's three connectors"
    return None


def _client_of_flow(flow: FlowName, name: str) -> str | None:
    side, role, rest = split_client(name)
    override = name.partition(".override.")
    if override[1]:
        return _ignored_here([f"{flow}.{override[0]}.{override[2]}"], "it is for sink connectors")
    if role == "cluster":
        return None if rest in CLUSTER_KEYS else _ignored_here(_client_names(flow, side, rest))
    if role == "producer":
        return "does not affect the records' producer, as in MirrorMaker 2; write " + _either(
            [f"{flow.target}.producer.{rest}", f"{flow}.producer.override.{rest}"]
        )
    if role in CLIENT_KEYS:
        known = CLIENT_KEYS[role].names
        return None if rest in known else _unknown(rest, known, name.removesuffix(rest))
    if spellings := _spellings(name, flow):
        return _ignored_here(spellings)
    return _unknown(name, (*MIRROR_KEYS.names, *FRAMEWORK_KEYS.names), f"{flow}.")


def _client_of_cluster(alias: str, role: str, name: str, context: FileContext) -> str | None:
    if name not in CLIENT_KEYS[role]:
        return _unknown(name, CLIENT_KEYS[role].names, f"{alias}.{role}.")
    only_target = context.is_target(alias) and not context.is_source(alias)
    only_source = context.is_source(alias) and not context.is_target(alias)
    if role == "consumer" and only_target:
        wanted = f"{context.example.source}.consumer.{name}"
        return f"records are read from the source; to set their consumer, write {wanted}"
    if role == "producer" and only_source:
        wanted = f"{context.example.target}.producer.{name}"
        return f"records are written to the target; to set their producer, write {wanted}"
    return None


def _no_such_flow(key: str, value: str, context: FileContext, findings: Findings) -> str | None:
    source, _, rest = key.partition("->")
    target = _alias_of(rest, context.clusters) or rest.partition(".")[0]
    if source == target and source in context.clusters:
        return "ignored: a cluster is not mirrored to itself"
    unknown = [alias for alias in (source, target) if alias not in context.clusters]
    if not unknown or "" in unknown:
        findings.error(key, value, "not a key of a flow", f"write {context.example}.topics=...")
        return None
    names = " and ".join(f"'{alias}'" for alias in unknown)
    close = get_close_matches(unknown[0], context.clusters, 1)
    hint = f"did you mean {close[0]}? Else add it to clusters" if close else "add it to clusters"
    findings.error(key, value, f"{CLUSTERS} does not name {names}", hint)
    return None


def _spellings(name: str, flow: FlowName) -> list[str]:
    """Where a key without a cluster or flow in front would work."""
    side, role, rest = split_client(name)
    if name in FRAMEWORK_KEYS or name.startswith(FLOW_PREFIXES):
        return [f"{flow}.{name}"]
    if role == "cluster":
        alias = flow.source if side == "source" else flow.target
        return [f"{alias}.{rest}"] if rest in CLUSTER_KEYS else _client_names(flow, side, rest)
    if role in CLIENT_KEYS and side:
        return [f"{flow.source if side == 'source' else flow.target}.{role}.{rest}"]
    if role in CLIENT_KEYS:
        return _of_role(role, rest, flow)
    if name in WORKER_KEYS:
        return [f"{flow.target}.{name}"]
    roles = [role for role, keys in CLIENT_KEYS.items() if name in keys]
    return [spelling for role in roles for spelling in _of_role(role, name, flow)[:1]]


def _of_role(role: str, name: str, flow: FlowName) -> list[str]:
    return {
        "consumer": [f"{flow.source}.consumer.{name}"],
        "producer": [f"{flow.target}.producer.{name}"],
        "admin": [f"{flow.source}.admin.{name}", f"{flow.target}.admin.{name}"],
    }[role]


def _client_names(flow: FlowName, side: str, name: str) -> list[str]:
    alias = flow.source if side == "source" else flow.target
    return _of_clients(alias, name, ROLES_OF_SIDE[side]) or [f"{alias}.admin.{name}"]


def _of_clients(alias: str, name: str, roles: Iterable[str]) -> list[str]:
    return [f"{alias}.{role}.{name}" for role in roles if name in CLIENT_KEYS[role]]


def without_effect(name: str) -> str | None:
    """Why a setting of a client does nothing in any spelling; None if one has an effect.

    `name` is the key without its cluster or flow.
    """
    _, role, rest = split_client(name)
    if role == "cluster":
        _, role, rest = split_client(rest)
    rest = rest.removeprefix(OVERRIDE)
    if not role and rest in WORKER_KEYS:
        return None
    definitions = [CLIENT_KEYS[role]] if role in CLIENT_KEYS else CLIENT_KEYS.values()
    found = [keys[rest] for keys in definitions if rest in keys]
    if not found or any(key.status is not KeySupport.EXPLAINED for key in found):
        return None
    return f"has no effect: {found[0].reason}"


def split_client(name: str) -> tuple[str, str, str]:
    """`source.consumer.X` as its three parts; side or role is "" where there is none."""
    first, _, rest = name.partition(".")
    if first in ROLES_OF_SIDE:
        role, _, rest = rest.partition(".")
        return first, role, rest
    return ("", first, rest) if first in CLIENT_KEYS else ("", "", name)


def _is_flow_key(name: str) -> bool:
    return name in MIRROR_KEYS or name in FRAMEWORK_KEYS or name.startswith(FLOW_PREFIXES)


def _is_worker_key(name: str) -> bool:
    from_connectors = name.startswith(WORKER_PREFIXES) and name in MIRROR_KEYS
    known_prefixes = (*CONVERTER_PREFIXES, *STORAGE_PREFIXES)
    return name in WORKER_KEYS or from_connectors or name.startswith(known_prefixes)


def topic_setting(name: str) -> str | None:
    """The message for `offset.storage.X`, which sets X of that topic, if it looks misspelt."""
    if name in WORKER_KEYS or not name.startswith(STORAGE_PREFIXES):
        return None
    close = get_close_matches(name, WORKER_KEYS.names, 1, 0.9)
    return f"is used as a setting of that topic; did you mean {close[0]}?" if close else None


def _flow_of(alias: str, context: FileContext, name: str) -> str:
    mine = [flow for flow in context.flows if alias in flow]
    return f"{mine[0] if mine else context.example}.{name}"


def _top_names(context: FileContext) -> list[str]:
    clusters = (f"{alias}.{key}" for alias in context.clusters for key in CLUSTER_KEYS)
    return [*MM2_KEYS.names, *NODE_REST_KEYS, *MIRROR_KEYS.names, *clusters]


def _unlisted_cluster(name: str) -> str | None:
    """A key of a cluster that `clusters` does not name: `C.bootstrap.servers`."""
    alias = next((name.removesuffix(f".{k}") for k in CLUSTER_KEYS if name.endswith(f".{k}")), "")
    return f"ignored: {CLUSTERS} does not name '{alias}'" if alias else None


def removed_key(name: str) -> str:
    instead = REMOVED[name]
    return "ignored: removed in Kafka 4.0" + (f"; write {instead}" if instead else "")


def _ignored_here(spellings: Iterable[str], why: str = "") -> str:
    reason = f" ({why})" if why else ""
    return f"ignored here, as in MirrorMaker 2{reason}; write {_either(list(spellings))}"


def _unknown(name: str, known: Iterable[str], prefix: str = "") -> str:
    close = get_close_matches(name, list(known), 1, 0.8)
    return f"{UNKNOWN}; did you mean {prefix}{close[0]}?" if close else UNKNOWN


def _either(spellings: Sequence[str]) -> str:
    *rest, last = spellings
    return f"{', '.join(rest)} or {last}" if rest else last
