"""Which permissions each feature needs, on which cluster, and what happens without each of them.

Runs on: worker and executor. One table: docs/security.md shows it, `sparkmirror check` asks the
clusters about it, and every message about a denied request takes its last words from it.

READ, WRITE and ALTER include DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS: only the
larger one is in the table.

Run as: python -m sparkmirror.mirror.permissions  (prints the table of docs/security.md)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple

# The only resource of its kind, as Kafka calls it.
CLUSTER_NAME = "kafka-cluster"


class Resource(StrEnum):
    """What a permission is about, as `kafka-acls` spells it."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional-id"


class Operation(StrEnum):
    """What a permission allows, as `kafka-acls` spells it."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    IDEMPOTENT_WRITE = "IdempotentWrite"


class Permission(NamedTuple):
    """One operation on one resource; `is_prefix`: on all whose names have this prefix."""

    resource: Resource
    name: str
    operation: Operation
    is_prefix: bool = False

    def __str__(self) -> str:
        """As in `READ on topic 'orders'`."""
        return f"{self.operation.name} on {self.place}"

    @property
    def place(self) -> str:
        """The resource in words."""
        if self.resource is Resource.CLUSTER:
            return "the cluster"
        kind = "transactional id" if self.resource is Resource.TRANSACTIONAL_ID else self.resource
        if self.name == "*":
            return f"all {kind}s"
        return f"{kind}s '{self.name}*'" if self.is_prefix else f"{kind} '{self.name}'"


def topic_permission(operation: Operation, topic: str) -> Permission:
    """A permission on one topic."""
    return Permission(Resource.TOPIC, topic, operation)


def group_permission(operation: Operation, group: str) -> Permission:
    """A permission on one group."""
    return Permission(Resource.GROUP, group, operation)


def cluster_permission(operation: Operation) -> Permission:
    """A permission on the cluster itself."""
    return Permission(Resource.CLUSTER, CLUSTER_NAME, operation)


def transaction_permission(operation: Operation, transactional_id: str) -> Permission:
    """A permission on one transactional id."""
    return Permission(Resource.TRANSACTIONAL_ID, transactional_id, operation)


READ, WRITE, CREATE, ALTER = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.ALTER
DESCRIBE, DESCRIBE_CONFIGS = Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS
ALTER_CONFIGS, IDEMPOTENT_WRITE = Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE


class Feature(StrEnum):
    """What permissions are needed for, and the setting that turns it on."""

    COPY = "copy"
    CONFIGS = "topic configs"
    ACLS = "ACL sync"
    CHECKPOINTS = "checkpoints"
    GROUP_OFFSETS = "group offsets"
    HEARTBEATS = "heartbeats"
    WORKER = "Connect worker"
    DEDICATED = "dedicated mode"


SETTINGS = {
    Feature.COPY: "always",
    Feature.CONFIGS: "`sync.topic.configs.enabled`, on unless set",
    Feature.ACLS: "`sync.topic.acls.enabled`, on unless set",
    Feature.CHECKPOINTS: "`emit.checkpoints.enabled`, on unless set",
    Feature.GROUP_OFFSETS: "`sync.group.offsets.enabled`, off unless set",
    Feature.HEARTBEATS: "`emit.heartbeats.enabled`, on unless set",
    Feature.WORKER: "`sparkmirror worker`",
    Feature.DEDICATED: "`sparkmirror run`",
}


class Side(StrEnum):
    """The cluster; a worker's own one is the target in an mm2 file."""

    SOURCE = "source"
    TARGET = "target"
    WORKER = "worker's"


class ResourceKind(Enum):
    """A kind of resource, in the words of the documentation."""

    COPIED = "topics that are copied"
    REMOTE = "remote topics"
    SYNCS = "`mm2-offset-syncs.<target>.internal`"
    OFFSET_MAP = "`mm2-offset-map.<source>.internal`"
    CHECKPOINTS = "`<source>.checkpoints.internal`"
    HEARTBEATS = "`heartbeats`"
    OFFSETS = "`offset.storage.topic`"
    CONFIG = "`config.storage.topic`"
    STATUS = "`status.storage.topic`"
    GROUPS = "groups that are followed"
    MEMBERS = "group `group.id`"
    FLOW_GROUP = "group `<source>-mm2`, or what `group.id` says"
    CLUSTER = "the cluster"
    TRANSACTIONAL_ID = "transactional id `connect-cluster-<group.id>`"


@dataclass(frozen=True, slots=True)
class Need:
    """One permission. `is_optional`: everything works without it, if `unless` holds."""

    feature: Feature
    side: Side
    place: ResourceKind
    operation: Operation
    why: str
    without: str
    unless: str = ""

    @property
    def is_optional(self) -> bool:
        return bool(self.unless)


EXISTS = "the topic exists"
REMOTE_EXISTS = "the remote topic exists"
# One of these two is needed.
EITHER = ("the offset map may be read", "offset syncs may be read")
NEW_BROKERS = "brokers run Kafka 2.8 or later"
NO_SYNCS = "copying continues without offset syncs, which only MirrorMaker 2's own tools need"
NO_MAP = "copying continues; group offsets are translated as coarsely as by MirrorMaker 2"
NO_CHECKPOINTS = "copying continues, but no checkpoints are written"
NO_HEARTBEATS = "copying continues without heartbeats"
NO_WRITING = "nothing is written there until it is granted"
NO_STORE = "nothing that needs it starts until it exists"
NO_START = "nothing is copied until it is granted"
NO_POSITIONS = (
    "copying continues, but a restart copies all records since the last stored position again"
)
NO_TRACE = "everything else continues: nothing reads what is not written"
NO_WORKER = "the worker does not start"
NO_CHANGES = "connectors run, but cannot be created, changed or deleted"
NO_CONNECTORS = "the worker serves REST requests, but runs no connectors and accepts no changes"
NO_STATES = "connectors run, but their states are not stored"
NO_NODE = "the process ends; of a pair that only gets heartbeats, it retries and copies the flows"
NO_FLOW = "the flow is not copied, because another process might copy it too"
NO_LIST = "connectors can neither read nor list their positions"
NO_ALTERING = "positions cannot be changed through REST"
NOT_LOOKED = "whether the topic is compacted is not checked"
EARLIER = "checkpoints are written without those of earlier runs, which can make them coarser"


def _internal(
    feature: Feature,
    side: Side,
    place: ResourceKind,
    create: str,
    permissions: Mapping[Operation, str],
) -> Iterator[Need]:
    """An internal topic: it is created if it is missing, then read and written."""
    yield Need(feature, side, place, CREATE, "create it", create, EXISTS)
    for operation, without in permissions.items():
        verb = "read" if operation is READ else "write"
        yield Need(feature, side, place, operation, f"{verb} it", without)
    yield Need(
        feature,
        side,
        place,
        DESCRIBE_CONFIGS,
        "check that it is compacted",
        NOT_LOOKED,
        "the topic is compacted",
    )


NEEDS: tuple[Need, ...] = (
    Need(
        Feature.COPY, Side.SOURCE, ResourceKind.COPIED, READ,
        "list and fetch", "it is not copied; the other topics are",
    ),
    Need(
        Feature.COPY, Side.SOURCE, ResourceKind.COPIED, DESCRIBE_CONFIGS,
        "create the remote topic like it",
        "its remote topic is not created, so it is not copied; the other topics are",
        REMOTE_EXISTS,
    ),
    *_internal(Feature.COPY, Side.SOURCE, ResourceKind.SYNCS, NO_SYNCS, {WRITE: NO_SYNCS}),
    Need(
        Feature.COPY, Side.TARGET, ResourceKind.REMOTE, CREATE,
        "create them", "the topic is not copied; the others are", EXISTS,
    ),
    Need(
        Feature.COPY, Side.TARGET, ResourceKind.REMOTE, WRITE,
        "write the records", "its partitions wait and lose nothing; the others continue",
    ),
    Need(
        Feature.COPY, Side.TARGET, ResourceKind.REMOTE, ALTER,
        "add partitions", "new partitions are not copied; existing ones are",
        "source topics never get more partitions",
    ),
    *_internal(Feature.COPY, Side.TARGET, ResourceKind.OFFSET_MAP, NO_MAP, {WRITE: NO_MAP}),
    *_internal(
        Feature.COPY,
        Side.WORKER,
        ResourceKind.OFFSETS,
        NO_STORE,
        {READ: NO_START, WRITE: NO_POSITIONS},
    ),
    Need(
        Feature.COPY, Side.TARGET, ResourceKind.CLUSTER, IDEMPOTENT_WRITE,
        "write without duplicates", NO_WRITING, NEW_BROKERS,
    ),
    Need(
        Feature.COPY, Side.SOURCE, ResourceKind.CLUSTER, IDEMPOTENT_WRITE,
        "write offset syncs", NO_WRITING, NEW_BROKERS,
    ),
    Need(
        Feature.CONFIGS, Side.SOURCE, ResourceKind.COPIED, DESCRIBE_CONFIGS,
        "read their settings", "the settings of its remote topic stay as they are; it is copied",
    ),
    Need(
        Feature.CONFIGS, Side.TARGET, ResourceKind.REMOTE, ALTER_CONFIGS,
        "change their settings", "its settings stay as they are; it is copied",
    ),
    Need(
        Feature.ACLS, Side.SOURCE, ResourceKind.CLUSTER, DESCRIBE,
        "read ACLs", "no ACLs are copied, everything else is; if you need none, set "
        "sync.topic.acls.enabled=false",
    ),
    Need(
        Feature.ACLS, Side.TARGET, ResourceKind.CLUSTER, ALTER,
        "read and create ACLs", "no ACLs are copied, everything else is; if you "
        "need none, set sync.topic.acls.enabled=false",
    ),
    Need(
        Feature.CHECKPOINTS, Side.SOURCE, ResourceKind.GROUPS, DESCRIBE,
        "list them and read their offsets", "the group gets no checkpoints; the others do",
    ),
    Need(
        Feature.CHECKPOINTS, Side.SOURCE, ResourceKind.SYNCS, READ,
        "translate offsets", "offsets are translated with the offset map alone",
        EITHER[0],
    ),
    Need(
        Feature.CHECKPOINTS, Side.TARGET, ResourceKind.OFFSET_MAP, READ,
        "translate offsets exactly", "offsets are translated as coarsely as by MirrorMaker 2",
        EITHER[1],
    ),
    *_internal(
        Feature.CHECKPOINTS, Side.TARGET, ResourceKind.CHECKPOINTS, NO_CHECKPOINTS,
        {READ: EARLIER, WRITE: NO_CHECKPOINTS},
    ),
    *_internal(Feature.CHECKPOINTS, Side.WORKER, ResourceKind.OFFSETS, NO_STORE, {WRITE: NO_TRACE}),
    Need(
        Feature.GROUP_OFFSETS, Side.TARGET, ResourceKind.GROUPS, READ,
        "read and commit their offsets",
        "the group's offsets are not written; its checkpoints and the other groups' offsets are",
    ),
    Need(
        Feature.GROUP_OFFSETS, Side.TARGET, ResourceKind.REMOTE, READ,
        "commit offsets in them",
        "offsets of groups in this topic are not written; those in other topics are",
    ),
    *_internal(
        Feature.HEARTBEATS,
        Side.TARGET,
        ResourceKind.HEARTBEATS,
        NO_HEARTBEATS,
        {WRITE: NO_HEARTBEATS},
    ),
    *_internal(Feature.HEARTBEATS, Side.WORKER, ResourceKind.OFFSETS, NO_STORE, {WRITE: NO_TRACE}),
    Need(
        Feature.WORKER, Side.WORKER, ResourceKind.MEMBERS, READ,
        "join the group of workers", NO_CONNECTORS,
    ),
    *_internal(
        Feature.WORKER,
        Side.WORKER,
        ResourceKind.CONFIG,
        NO_STORE,
        {READ: NO_WORKER, WRITE: NO_CHANGES},
    ),
    *_internal(
        Feature.WORKER, Side.WORKER, ResourceKind.STATUS, NO_STORE,
        {READ: NO_WORKER, WRITE: NO_STATES},
    ),
    *_internal(
        Feature.WORKER, Side.WORKER, ResourceKind.OFFSETS, NO_STORE,
        {READ: NO_LIST, WRITE: NO_ALTERING},
    ),
    Need(
        Feature.WORKER, Side.WORKER, ResourceKind.TRANSACTIONAL_ID, WRITE,
        "write connectors to the config topic as the only leader", NO_CONNECTORS,
    ),
    Need(
        Feature.DEDICATED, Side.TARGET, ResourceKind.FLOW_GROUP, READ,
        "share tasks with the other nodes, and ensure that only one copies each", NO_FLOW,
    ),
    *_internal(
        Feature.DEDICATED, Side.TARGET, ResourceKind.CONFIG, NO_STORE,
        {READ: NO_NODE, WRITE: NO_FLOW},
    ),
    *_internal(
        Feature.DEDICATED, Side.TARGET, ResourceKind.STATUS, NO_STORE,
        {READ: NO_NODE, WRITE: NO_STATES},
    ),
    Need(
        Feature.DEDICATED, Side.TARGET, ResourceKind.TRANSACTIONAL_ID, WRITE,
        "write connectors to the config topic as the only leader", NO_FLOW,
    ),
)  # fmt: skip

_BY_PLACE = {(need.feature, need.place, need.operation): need for need in NEEDS}


def consequence_without(feature: Feature, place: ResourceKind, operation: Operation) -> str:
    """What happens as long as the permission is missing."""
    return _BY_PLACE[feature, place, operation].without


def needs_of(*features: Feature) -> list[Need]:
    """The rows of these features, in the table's order."""
    return [need for need in NEEDS if need.feature in features]


def table_lines() -> Iterator[str]:
    """The table of docs/security.md, feature by feature."""
    for feature in Feature:
        yield f"### For {feature.value}"
        yield f"Turned on by: {SETTINGS[feature]}."
        yield ""
        yield "| cluster | resource | permission | for | without it |"
        yield "|---|---|---|---|---|"
        for need in needs_of(feature):
            unless = f" (not needed if {need.unless})" if need.unless else ""
            yield (
                f"| {need.side.value} | {need.place.value} | {need.operation.name} | "
                f"{need.why}{unless} | {need.without} |"
            )
        yield ""


if __name__ == "__main__":
    print("\n".join(table_lines()))  # noqa: T201 - to be pasted into the document
