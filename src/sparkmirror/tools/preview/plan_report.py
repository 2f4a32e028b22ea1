"""What `sparkmirror plan` prints: the changes of both clusters, like a diff, and as JSON.

Runs on: any machine. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.mirror.acls import AclOperation, AclPermission, PatternType
from sparkmirror.tools.preview.rehearsed_cluster import RehearsedCluster
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import AclRule, NewTopic


@dataclass(frozen=True, slots=True)
class GroupWrite:
    """The offsets that a group would get on the target: before and after, by partition."""

    group: str
    offsets: Mapping[TopicPartition, tuple[int | None, int]]


@dataclass(frozen=True, slots=True)
class FlowGroups:
    """The groups of one flow.

    `later`: followed, and written as soon as their records were copied. `kept`: why others are not
    written. `followed` are all of them.
    """

    flow: str
    target: str
    writes: tuple[GroupWrite, ...] = ()
    later: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    followed: tuple[str, ...] = ()
    is_written: bool = True


@dataclass(frozen=True, slots=True)
class MirrorPlan:
    """Everything that `run` would change. `problems` keep it from running as it should."""

    file: str
    flows: tuple[str, ...]
    clusters: tuple[RehearsedCluster, ...]
    groups: tuple[FlowGroups, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def change_count(self) -> int:
        """How many changes there are."""
        written = sum(len(each.writes) for each in self.groups)
        return written + sum(each.size for each in self.clusters)

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "file": self.file,
            "flows": list(self.flows),
            "changes": [row for cluster in self.clusters for row in self._changes(cluster)],
            "groups": [_groups_json(each) for each in self.groups],
            "warnings": list(self.warnings),
            "problems": list(self.problems),
        }

    def _changes(self, cluster: RehearsedCluster) -> Iterator[dict[str, Any]]:
        alias = cluster.alias
        for topic in _sorted(cluster.created):
            yield {"cluster": alias, "action": "create", "kind": "topic"} | _topic_json(
                cluster.created[topic]
            )
        for topic in _sorted(cluster.grown):
            before, after = cluster.grown[topic]
            yield _row(alias, "grow", "topic", topic) | {"before": before, "after": after}
        for topic in _sorted(cluster.altered):
            for name, change in sorted(cluster.altered[topic].items()):
                yield _row(alias, "reset" if change.after is None else "set", "config", topic) | {
                    "key": name,
                    "before": change.before,
                    "after": change.after,
                }
        for rule in cluster.acls:
            yield {"cluster": alias, "action": "create", "kind": "acl"} | _acl_json(rule)
        for groups in self.groups:
            if groups.target == alias:
                yield from (_write_json(alias, each) for each in groups.writes)

    def lines(self) -> Iterator[str]:
        """For a terminal."""
        for cluster in self.clusters:
            rows = list(self._lines_of(cluster))
            if rows:
                yield f"cluster '{cluster.alias}'"
                yield from (f"  {row}" for row in rows)
                yield ""
        for groups in self.groups:
            yield from _group_lines(groups)
        yield from (f"warning: {each}" for each in self.warnings)
        yield from (f"problem: {each}" for each in self.problems)
        yield self._summary()

    def _lines_of(self, cluster: RehearsedCluster) -> Iterator[str]:
        for name in _sorted(cluster.created):
            topic = cluster.created[name]
            yield f"+ topic {name}: {_size(topic)}"
            yield from (f"    {key} = {value}" for key, value in sorted(topic.configs.items()))
        for name in _sorted(cluster.grown):
            before, after = cluster.grown[name]
            yield f"~ topic {name}: {before} -> {after} partitions"
        for name in _sorted(cluster.altered):
            yield f"~ topic {name}"
            for key, change in sorted(cluster.altered[name].items()):
                if change.after is None:
                    yield f"    - {key} = {change.before} (back to the cluster's default)"
                else:
                    yield f"    ~ {key} = {change.before} -> {change.after}"
        yield from (f"+ ACL: {_acl_text(rule)}" for rule in cluster.acls)
        for groups in self.groups:
            if groups.target == cluster.alias:
                for write in groups.writes:
                    yield f"~ group {write.group}"
                    for tp, (old, new) in sorted(write.offsets.items()):
                        yield f"    ~ {tp}: {'none' if old is None else old} -> {new}"

    def _summary(self) -> str:
        flows = ", ".join(self.flows)
        if not self.change_count:
            return f"{self.file} ({flows}): nothing to do; both clusters are as the file says"
        words = [
            f"{count} {noun if count == 1 else plural} {verb}"
            for count, noun, plural, verb in self._counts()
            if count
        ]
        return f"{self.file} ({flows}): {', '.join(words)}; nothing was written"

    def _counts(self) -> Sequence[tuple[int, str, str, str]]:
        return (
            (sum(len(each.created) for each in self.clusters), "topic", "topics", "to create"),
            (sum(len(each.grown) for each in self.clusters), "topic", "topics", "to grow"),
            (
                sum(len(rows) for each in self.clusters for rows in each.altered.values()),
                "setting",
                "settings",
                "to change",
            ),
            (sum(len(each.acls) for each in self.clusters), "ACL", "ACLs", "to create"),
            (sum(len(each.writes) for each in self.groups), "group", "groups", "to write"),
        )


def _sorted(names: Mapping[str, object]) -> list[str]:
    return sorted(names)


def _row(alias: str, action: str, kind: str, name: str) -> dict[str, Any]:
    return {"cluster": alias, "action": action, "kind": kind, "name": name}


def _size(topic: NewTopic) -> str:
    count, replicas = topic.partitions, topic.replication_factor
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    if count < 0:
        partitions = "the cluster's default number of partitions"
    return f"{partitions}, replication factor {'of the cluster' if replicas < 0 else replicas}"


def _topic_json(topic: NewTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": topic.partitions if topic.partitions > 0 else None,
        "replication_factor": topic.replication_factor if topic.replication_factor > 0 else None,
        "configs": dict(sorted(topic.configs.items())),
    }


def _acl_json(rule: AclRule) -> dict[str, Any]:
    return {
        "name": rule.resource_name,
        "pattern": PatternType(rule.pattern_type).name,
        "principal": rule.principal,
        "host": rule.host,
        "operation": AclOperation(rule.operation).name,
        "permission": AclPermission(rule.permission).name,
    }


def _acl_text(rule: AclRule) -> str:
    permission, operation = AclPermission(rule.permission).name, AclOperation(rule.operation).name
    return (
        f"{permission} {operation} on topic '{rule.resource_name}' for '{rule.principal}' from "
        f"{rule.host}"
    )


def _write_json(alias: str, write: GroupWrite) -> dict[str, Any]:
    return _row(alias, "write", "group", write.group) | {
        "offsets": [
            {"topic": tp.topic, "partition": tp.partition, "before": old, "after": new}
            for tp, (old, new) in sorted(write.offsets.items())
        ]
    }


def _groups_json(groups: FlowGroups) -> dict[str, Any]:
    return {
        "flow": groups.flow,
        "followed": list(groups.followed),
        "offsets_are_written": groups.is_written,
        "written_later": list(groups.later),
        "not_written": dict(groups.kept),
    }


def _group_lines(groups: FlowGroups) -> Iterator[str]:
    if not groups.followed:
        return
    count = len(groups.followed)
    noun = "group gets" if count == 1 else "groups get"
    if not groups.is_written:
        yield (
            f"{groups.flow}: {count} {noun} checkpoints, but no offsets on '{groups.target}' "
            "(sync.group.offsets.enabled=false)"
        )
    else:
        yield f"{groups.flow}: {count} {noun} checkpoints"
    if groups.later:
        yield f"  written as soon as their records are copied: {', '.join(groups.later)}"
    for group, reason in groups.kept.items():
        yield f"  not written: {group}: {reason}"
    yield ""
