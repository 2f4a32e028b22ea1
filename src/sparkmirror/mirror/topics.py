"""Which topics are copied, and what must be created for them on the target.

Runs on: worker, at each topic refresh.
Mirrors: the topic rules of org.apache.kafka.connect.mirror.MirrorSourceConnector (4.4).

Nothing is ever deleted or shrunk on the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from sparkmirror.mirror.filters import ConfigPropertyFilter, TopicFilter
from sparkmirror.mirror.policy import IdentityReplicationPolicy, ReplicationPolicy

# Brokers reject longer names: partition directories must fit into a file name of 255 characters.
MAX_TOPIC_NAME_LENGTH = 249


def should_replicate_topic(
    topic: str,
    topic_filter: TopicFilter,
    policy: ReplicationPolicy,
    *,
    heartbeats_replication_enabled: bool,
    source_alias: str,
    target_alias: str,
) -> bool:
    """Whether the source's `topic` is copied; heartbeats bypass the filter unless disabled."""
    wanted = topic_filter.should_replicate_topic(topic) or (
        heartbeats_replication_enabled and policy.is_heartbeats_topic(topic)
    )
    return (
        wanted
        and not policy.is_internal_topic(topic)
        and not is_cycle(topic, policy, source_alias, target_alias)
    )


def is_cycle(topic: str, policy: ReplicationPolicy, source_alias: str, target_alias: str) -> bool:
    """Whether the source's `topic` has been on the target, or on the source itself, before."""
    return cycle_alias(topic, policy, source_alias, target_alias) is not None


def cycle_alias(
    topic: str, policy: ReplicationPolicy, source_alias: str, target_alias: str
) -> str | None:
    """The cluster of the flow that the source's `topic` has been on before; None: no cycle."""
    own_aliases = {target_alias}
    if not isinstance(policy, IdentityReplicationPolicy):
        # KAFKA-9914: `A.x` on A is a leftover of a loop and would become `A.A.x`. With the
        # identity policy every topic counts as coming from the source, so this proves nothing.
        own_aliases.add(source_alias)
    upstream: str | None = topic
    while upstream is not None:
        topic = upstream
        source = policy.topic_source(topic)
        if source in own_aliases:
            return source
        upstream = policy.upstream_topic(topic)
        if upstream == topic:
            return None
    return None


def is_remote_topic(topic: str, policy: ReplicationPolicy, source_alias: str) -> bool:
    """Whether the target's `topic` counts as a copy made by the flow from `source_alias`.

    With the identity policy every topic but heartbeats does.
    """
    is_own_checkpoints = topic == policy.checkpoints_topic(source_alias)
    return policy.topic_source(topic) == source_alias and not is_own_checkpoints


class TopicToCreate(NamedTuple):
    """A topic that the target lacks: its source topic, and how many partitions it needs."""

    source_topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What one refresh must do on the target; keys are names of remote topics."""

    create: Mapping[str, TopicToCreate]
    grow: Mapping[str, int]
    """New partition counts."""
    warnings: tuple[str, ...]
    """Sentences for the log and the status, about problems that no request can solve."""

    @property
    def is_empty(self) -> bool:
        return not (self.create or self.grow)


def plan_topics(
    source: Mapping[str, int],
    target: Mapping[str, int],
    policy: ReplicationPolicy,
    source_alias: str,
) -> TopicPlan:
    """Compare partition counts of the topics to copy with those of all topics of the target.

    Planning again after a failed creation gives the same plan, after a successful one nothing.
    """
    create: dict[str, TopicToCreate] = {}
    grow: dict[str, int] = {}
    warnings: list[str] = []
    for remote, topic in _remote_names(source, policy, source_alias, warnings).items():
        wanted, found = source[topic], target.get(remote)
        if found is None:
            create[remote] = TopicToCreate(topic, wanted)
        elif found < wanted:
            grow[remote] = wanted
        elif found > wanted:
            warnings.append(
                f"'{remote}' has {found} partitions on the target but {wanted} as '{topic}' on "
                f"'{source_alias}'; partitions cannot be removed, so the additional ones stay "
                "unused"
            )
    return TopicPlan(create, grow, tuple(warnings))


def _remote_names(
    topics: Iterable[str], policy: ReplicationPolicy, source_alias: str, warnings: list[str]
) -> dict[str, str]:
    """Source topics by remote name, without topics that cannot have their own remote topic."""
    names: dict[str, str] = {}
    for topic in topics:
        remote = policy.format_remote_topic(source_alias, topic)
        if problem := remote_name_problem(topic, remote, source_alias, names.get(remote, "")):
            warnings.append(problem)
        else:
            names[remote] = topic
    return names


def remote_name_problem(topic: str, remote: str, source_alias: str, taken_by: str = "") -> str:
    """Why `topic` cannot have its remote name; "" if it can. `taken_by` has that name already."""
    if len(remote) > MAX_TOPIC_NAME_LENGTH:
        return (
            f"'{topic}' of '{source_alias}' cannot be copied: its remote name '{remote}' has "
            f"{len(remote)} characters, {MAX_TOPIC_NAME_LENGTH} are allowed; exclude the topic "
            "or use a shorter alias"
        )
    if taken_by:
        return (
            f"'{topic}' and '{taken_by}' of '{source_alias}' are both called '{remote}' "
            "on the target; exclude one of them or change replication.policy.class"
        )
    return ""


class ConfigSource(IntEnum):
    """The origin of a setting's value, with the codes of DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8

    @classmethod
    def _missing_(cls, value: object) -> ConfigSource:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of one topic, as in a DescribeConfigs response."""

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.DYNAMIC_TOPIC
    read_only: bool = False
    sensitive: bool = False


# Brokers reject idempotent writes to a topic in a message format before 0.11. MirrorMaker 2 copies
# the setting, because its producer is not idempotent; 4.0 removed it (KIP-724).
NEVER_SET = frozenset({"message.format.version"})


def creation_configs(
    entries: Iterable[ConfigEntry],
    property_filter: ConfigPropertyFilter,
) -> dict[str, str]:
    """Return the settings that a new remote topic gets from its source topic.

    Defaults of the source topic are set if the filter chooses so (`use.defaults.from`). Dynamic
    broker-wide values of the source count as set, static ones do not.
    """
    return {
        entry.name: entry.value
        for entry in entries
        if entry.value is not None
        and is_replicable(entry, property_filter)
        and not leaves_default(entry, property_filter)
    }


def is_replicable(entry: ConfigEntry, property_filter: ConfigPropertyFilter) -> bool:
    """Whether a setting can be copied, set or default."""
    hidden_or_fixed = entry.read_only or entry.sensitive
    is_brokers_own = entry.source is ConfigSource.STATIC_BROKER
    return not (
        hidden_or_fixed or is_brokers_own
    ) and property_filter.should_replicate_config_property(entry.name)


def leaves_default(entry: ConfigEntry, property_filter: ConfigPropertyFilter) -> bool:
    """Whether the target's own default applies, because the source topic has only a default."""
    if entry.name in NEVER_SET:
        return True
    is_default = entry.source is ConfigSource.DEFAULT
    return is_default and not property_filter.should_replicate_source_default(entry.name)
