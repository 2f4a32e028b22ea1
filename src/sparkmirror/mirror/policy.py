"""Maps topic names of the source to names on the target, and back.

Runs on: worker and executor.
Mirrors: org.apache.kafka.connect.mirror.{Default,Identity}ReplicationPolicy (4.4).

An alias that contains the separator cannot be parsed from a remote name (`us.west.orders` looks as
if it came from `us`), and a local `orders.created` looks like `created` from a cluster `orders`.
This is MirrorMaker 2's behaviour, and is kept because other tools parse the same names.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, Self, runtime_checkable

from sparkmirror.errors import ConfigError
from sparkmirror.mirror.user_classes import load_user_class, no_exit

DEFAULT_SEPARATOR = "."

_HEARTBEATS = "heartbeats"
_POLICY_KEY = "replication.policy.class"


@runtime_checkable
class ReplicationPolicy(Protocol):
    """Names remote topics and internal topics of one flow.

    A custom policy is a subclass of this class or, more simply, of one of the two below.
    Obligations: return the same result for a topic in every process and after every restart,
    because names are compared with topics that earlier runs created; do no I/O; support pickling,
    because executors get a copy. Methods are called for every topic of a cluster at each topic
    refresh.

    A policy whose remote topics keep their name must extend `IdentityReplicationPolicy`: with any
    other class a topic whose source is this flow's own source counts as a cycle.
    """

    @classmethod
    @abstractmethod
    def from_settings(
        cls, source_alias: str | None, separator: str, internal_separator: str
    ) -> Self:
        """Build the policy; called once per connector start, from the connector's settings."""

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Name on the target of the source's `topic`; two topics must not share one name."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Alias of the cluster that `topic` was copied from; None for a local topic."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Name of `topic` on the cluster that it was copied from; None for a local topic.

        The result may itself be a remote topic. It must be shorter or unchanged at each step:
        callers repeat the call until None or an unchanged name.
        """

    @abstractmethod
    def offset_syncs_topic(self, cluster_alias: str) -> str:
        """Name of the offset-syncs topic; `cluster_alias` is the cluster that does not have it."""

    @abstractmethod
    def checkpoints_topic(self, source_alias: str) -> str:
        """Name of the checkpoints topic on the target."""

    @abstractmethod
    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether `topic` holds checkpoints of any flow."""

    @abstractmethod
    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether `topic` is one of MirrorMaker 2's own, other than heartbeats."""

    def heartbeats_topic(self) -> str:
        """Name of the topic of heartbeats; it contains no separator, so none affects it."""
        return _HEARTBEATS

    def original_topic(self, topic: str) -> str:
        """Name of `topic` on the cluster where it was first written, over any number of hops."""
        upstream = self.upstream_topic(topic)
        while upstream is not None and upstream != topic:
            topic, upstream = upstream, self.upstream_topic(upstream)
        return topic

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether `topic` contains heartbeats, written here or copied over any number of hops."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_internal_topic(self, topic: str) -> bool:
        """Whether `topic` must never be copied (the narrow definition of KIP-1074)."""
        return self.is_mm2_internal_topic(topic) or topic.startswith(("__", "."))


class DefaultReplicationPolicy(ReplicationPolicy):
    """Puts the source alias before the name: `orders` of `us` becomes `us.orders`.

    `internal_separator` is used in the names of offset-syncs and checkpoints topics.
    """

    def __init__(
        self, separator: str = DEFAULT_SEPARATOR, internal_separator: str = DEFAULT_SEPARATOR
    ) -> None:
        self.separator = separator
        self.internal_separator = internal_separator

    @classmethod
    def from_settings(
        cls, source_alias: str | None, separator: str, internal_separator: str
    ) -> Self:
        return cls(separator=separator, internal_separator=internal_separator)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        pieces = _java_split(topic, self.separator)
        return pieces[0] if len(pieces) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def offset_syncs_topic(self, cluster_alias: str) -> str:
        return self.internal_separator.join(("mm2-offset-syncs", cluster_alias, "internal"))

    def checkpoints_topic(self, source_alias: str) -> str:
        return self.internal_separator.join((source_alias, "checkpoints", "internal"))

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self.checkpoints_topic(source_alias=""))

    def is_mm2_internal_topic(self, topic: str) -> bool:
        starts_and_ends_so = topic.startswith("mm2") and topic.endswith(
            f"{self.internal_separator}internal"
        )
        return starts_and_ends_so or self.is_checkpoints_topic(topic)


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Keeps topic names, so cycles of data topics are not detected: for one-way flows.

    Names that end in `heartbeats` (also `my-heartbeats`, as in MirrorMaker 2) follow the default
    rules, so heartbeats still show their origin and are not copied in circles.
    """

    def __init__(
        self,
        source_alias: str | None,
        separator: str = DEFAULT_SEPARATOR,
        internal_separator: str = DEFAULT_SEPARATOR,
    ) -> None:
        super().__init__(separator, internal_separator)
        self.source_alias = source_alias

    @classmethod
    def from_settings(
        cls, source_alias: str | None, separator: str, internal_separator: str
    ) -> Self:
        return cls(source_alias, separator=separator, internal_separator=internal_separator)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        if self._looks_like_heartbeats(topic):
            return super().format_remote_topic(source_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        if self._looks_like_heartbeats(topic):
            return super().topic_source(topic)
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        if self._looks_like_heartbeats(topic):
            return super().upstream_topic(topic)
        return topic

    def _looks_like_heartbeats(self, topic: str) -> bool:
        return topic.endswith(self.heartbeats_topic())


# Names in mm2.properties files and connector configs. Migration guides for Amazon MSK provide the
# third class as a jar; it keeps topic names.
_KNOWN_POLICIES: dict[str, type[DefaultReplicationPolicy]] = {
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy": DefaultReplicationPolicy,
    "org.apache.kafka.connect.mirror.IdentityReplicationPolicy": IdentityReplicationPolicy,
    "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy": IdentityReplicationPolicy,
}
_POLICIES = _KNOWN_POLICIES | {
    name.rpartition(".")[2]: policy for name, policy in _KNOWN_POLICIES.items()
}


class FlowSettings(Protocol):
    """The settings of every connector that determine names."""

    @property
    def policy_class(self) -> str: ...
    @property
    def source_alias(self) -> str: ...
    @property
    def target_alias(self) -> str: ...
    @property
    def separator(self) -> str | None: ...
    @property
    def internal_separator_enabled(self) -> bool: ...


class SyncsSettings(FlowSettings, Protocol):
    """The same for a connector that knows where offset syncs are."""

    @property
    def offset_syncs_location(self) -> str: ...


def flow_policy(config: FlowSettings) -> ReplicationPolicy:
    """Build the policy of a connector. Raises ConfigError, as `make_policy`."""
    return make_policy(
        config.policy_class,
        config.source_alias,
        config.separator,
        config.internal_separator_enabled,
    )


def flow_offset_syncs_topic(policy: ReplicationPolicy, config: SyncsSettings) -> str:
    """Name of a flow's offset-syncs topic, which contains the alias of the other cluster."""
    is_on_source = config.offset_syncs_location == "source"
    return policy.offset_syncs_topic(config.target_alias if is_on_source else config.source_alias)


def make_policy(
    class_name: str,
    source_alias: str | None,
    separator: str | None,
    internal_separator_enabled: bool,
) -> ReplicationPolicy:
    """Build the policy named by `replication.policy.class`.

    `separator` is None when unset; then the internal switch has no effect.
    A class of the user's own is written `module:Class`.

    Raises:
        ConfigError: no such class, or it is not a `ReplicationPolicy`.
    """
    outer = DEFAULT_SEPARATOR if separator is None else separator
    inner = outer if internal_separator_enabled else DEFAULT_SEPARATOR
    policy_class: type[ReplicationPolicy] = _POLICIES.get(class_name) or _load_class(class_name)
    with no_exit(lambda reason: _bad_policy(class_name, reason)):
        policy = policy_class.from_settings(source_alias, outer, inner)
    if not isinstance(policy, ReplicationPolicy):
        raise _bad_policy(class_name, "it lacks methods of sparkmirror.mirror.policy")
    return policy


def _load_class(class_name: str) -> type[ReplicationPolicy]:
    loaded: type[ReplicationPolicy] = load_user_class(
        "policy", class_name, lambda reason: _bad_policy(class_name, reason)
    )
    return loaded


def _bad_policy(class_name: str, reason: str) -> ConfigError:
    known = ", ".join(sorted(_KNOWN_POLICIES))
    remedy = f"use one of {known}, or module:Class of a Python subclass of ReplicationPolicy"
    return ConfigError(_POLICY_KEY, class_name, reason, remedy)


def _java_split(topic: str, separator: str) -> list[str]:
    """Split as Java's Pattern.split: trailing empty pieces are dropped, leading ones stay."""
    # Java splits at an empty separator between all characters; Python rejects it.
    pieces = topic.split(separator) if separator else list(topic)
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces
