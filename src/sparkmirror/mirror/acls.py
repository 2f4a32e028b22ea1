"""Which access rules of topics are copied to the target, and in which form.

Runs on: worker, at each ACL sync. Pure.
Mirrors: the ACL rules of org.apache.kafka.connect.mirror.MirrorSourceConnector (4.4).

Only rules for single topics are copied, and none that allows writing, because only the mirror may
write to remote topics. Nothing is ever deleted on the target. The enums have the codes of the
protocol's ACL messages.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from sparkmirror.mirror.policy import ReplicationPolicy

WILDCARD = "*"


class _ProtocolEnum(IntEnum):
    """Unknown codes of newer brokers become UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> _ProtocolEnum:
        return cls(0)


class ResourceType(_ProtocolEnum):
    """What a rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_ProtocolEnum):
    """How a resource name is matched."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_ProtocolEnum):
    """What a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(_ProtocolEnum):
    """Whether a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True)
class AclBinding:
    """One access rule."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


class NotCopied(enum.Enum):
    """Why a rule of the source is not copied."""

    NO_TOPIC = "it does not apply to topics"
    NO_SINGLE_TOPIC = "it applies to all topics with a prefix"
    ALLOWS_WRITING = "only the mirror may write to remote topics"
    TOPIC_NOT_COPIED = "its topic is not copied"
    UNKNOWN_CODE = "a newer broker's rule, which this version does not know"


@dataclass(frozen=True, slots=True)
class AclPlan:
    """Rules to create on the target, without duplicates, and what is not copied, and why.

    `wildcards` are the rules in `create` that come from a rule for the topic `*`, all topics. As in
    MirrorMaker 2, this name is formatted like any other: with the default policy it becomes a rule
    for the topic `A.*`, which cannot exist, so it does nothing; with the identity policy it stays a
    rule for all topics of the target, including those of others. The caller should warn.
    """

    create: tuple[AclBinding, ...]
    skipped: tuple[tuple[AclBinding, NotCopied], ...]
    wildcards: tuple[AclBinding, ...]


def plan_acls(
    bindings: Iterable[AclBinding],
    should_replicate_topic: Callable[[str], bool],
    policy: ReplicationPolicy,
    source_alias: str,
    existing: Collection[AclBinding] = (),
) -> AclPlan:
    """Map the source's rules to the target's; those that are `existing` are left out.

    `should_replicate_topic` is the whole rule for copying topics, with cycles and internal topics.
    """
    create: dict[AclBinding, None] = {}
    skipped: list[tuple[AclBinding, NotCopied]] = []
    wildcards: list[AclBinding] = []
    present = frozenset(existing)
    for binding in bindings:
        reason = why_not_copied(binding, should_replicate_topic)
        if reason is not None:
            skipped.append((binding, reason))
            continue
        mapped = target_binding(binding, policy, source_alias)
        if mapped in present or mapped in create:
            continue
        create[mapped] = None
        if binding.resource_name == WILDCARD:
            wildcards.append(mapped)
    return AclPlan(tuple(create), tuple(skipped), tuple(wildcards))


def why_not_copied(
    binding: AclBinding, should_replicate_topic: Callable[[str], bool]
) -> NotCopied | None:
    """Why one rule of the source is not copied; None if it is copied."""
    if binding.resource_type is not ResourceType.TOPIC:
        return NotCopied.NO_TOPIC
    if binding.pattern_type is not PatternType.LITERAL:
        return NotCopied.NO_SINGLE_TOPIC
    is_unknown = (
        binding.operation is AclOperation.UNKNOWN or binding.permission is AclPermission.UNKNOWN
    )
    if is_unknown:
        return NotCopied.UNKNOWN_CODE
    if binding.permission is AclPermission.ALLOW and binding.operation is AclOperation.WRITE:
        return NotCopied.ALLOWS_WRITING
    if not should_replicate_topic(binding.resource_name):
        return NotCopied.TOPIC_NOT_COPIED
    return None


def target_binding(binding: AclBinding, policy: ReplicationPolicy, source_alias: str) -> AclBinding:
    """The form of a copied rule on the target: allowing all becomes allowing to read."""
    remote = policy.format_remote_topic(source_alias, binding.resource_name)
    allows_all = binding.permission is AclPermission.ALLOW and binding.operation is AclOperation.ALL
    operation = AclOperation.READ if allows_all else binding.operation
    return replace(binding, resource_name=remote, operation=operation)
