"""A cluster on which changes are only rehearsed: what was "changed" is remembered, and seen later.

Runs on: any machine. The connectors' own code runs against a `RehearsalAdmin`. It reads from the
cluster, lets the cluster validate creations and changes (`validate_only`), which writes nothing,
and passes only the methods in `READS`. ACLs cannot be validated without creating them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.mirror.config_sync import AlterOperation
from sparkmirror.mirror.permissions import Operation
from sparkmirror.mirror.topics import ConfigSource
from sparkmirror.wire.admin.admin import (
    AclRule,
    Admin,
    ConfigChange,
    NewTopic,
    TopicSetting,
    TopicView,
)

# Methods of `Admin` and `GroupAdmin` that write nothing.
READS = frozenset(
    {
        "alias",
        "broker_count",
        "cluster_id",
        "close",
        "committed_offsets",
        "describe_groups",
        "end_offsets",
        "list_groups",
        "log_ranges",
        "release",
        "start_offsets",
    }
)
AUTO_CREATE, PARTITIONS, REPLICAS = (
    "auto.create.topics.enable",
    "num.partitions",
    "default.replication.factor",
)
OWN = ConfigSource.DYNAMIC_TOPIC


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting of a topic that is there; `after` is None where its default comes back."""

    before: str | None
    after: str | None


@dataclass(slots=True)
class RehearsedCluster:
    """What would be different on a cluster; for one thread.

    `grown` has the partition counts before and after, of topics that are there.
    """

    alias: str
    created: dict[str, NewTopic] = field(default_factory=dict)
    grown: dict[str, tuple[int, int]] = field(default_factory=dict)
    altered: dict[str, dict[str, SettingChange]] = field(default_factory=dict)
    acls: list[AclRule] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many changes there are."""
        altered = sum(map(len, self.altered.values()))
        return len(self.created) + len(self.grown) + altered + len(self.acls)


class RehearsalAdmin:
    """An Admin that reads from a cluster and changes only its `RehearsedCluster`."""

    def __init__(self, admin: Admin, cluster: RehearsedCluster, *, validates: bool = True) -> None:
        """`validates`: the brokers make the changes, so they can say what they would refuse."""
        self._admin = admin
        self._cluster = cluster
        self._validates = validates

    def __getattr__(self, name: str) -> Any:
        if name not in READS:
            raise AttributeError(f"a rehearsal does not call {name}")
        return getattr(self._admin, name)

    # -- topics ------------------------------------------------------------------------------------

    def list_topics(self) -> dict[str, TopicView]:
        found = self._admin.list_topics()
        for name, (_, after) in self._cluster.grown.items():
            if name in found:
                found[name] = found[name]._replace(partitions=after)
        new = {name: _view(topic) for name, topic in self._cluster.created.items()}
        return found | new

    def view_topic(self, name: str) -> TopicView | None:
        created = self._cluster.created.get(name)
        if created is not None:
            return _view(created)
        found = self._admin.view_topic(name)
        grown = self._cluster.grown.get(name)
        return found if found is None or grown is None else found._replace(partitions=grown[1])

    def find_topics(self, names: Iterable[str]) -> dict[str, BrokerError | None]:
        wanted = list(names)
        there = {name: None for name in wanted if name in self._cluster.created}
        return self._admin.find_topics([name for name in wanted if name not in there]) | there

    def create_topics(self, topics: Iterable[NewTopic]) -> dict[str, BrokerError | None]:
        wanted = {topic.name: topic for topic in topics}
        new = {name: each for name, each in wanted.items() if name not in self._cluster.created}
        outcome: dict[str, BrokerError | None] = dict.fromkeys(wanted)
        if self._validates:
            outcome |= self._admin.create_topics(new.values(), validate_only=True)
        # The response does not tell those that are there from those that would be created.
        there = self._admin.find_topics(new)
        for name, topic in new.items():
            if outcome[name] is None and there[name] is not None:
                self._cluster.created[name] = topic
        return outcome

    def create_partitions(self, counts: Mapping[str, int]) -> dict[str, BrokerError | None]:
        created = self._cluster.created
        outcome: dict[str, BrokerError | None] = dict.fromkeys(counts)
        there = {name: count for name, count in counts.items() if name not in created}
        if there and self._validates:
            outcome |= self._admin.create_partitions(there, validate_only=True)
        for name, count in counts.items():
            if name in created:
                created[name] = replace(created[name], partitions=count)
            elif outcome[name] is None:
                found = self._admin.view_topic(name)
                self._cluster.grown[name] = (found.partitions if found else 0, count)
        return outcome

    def ask_for_topics(self, names: Iterable[str]) -> None:
        """Brokers that create topics by themselves would create these as they like."""
        settings = self._admin.describe_broker_configs()
        if settings.get(AUTO_CREATE) != "true":
            return
        partitions, replicas = (int(settings.get(key) or -1) for key in (PARTITIONS, REPLICAS))
        for name, error in self._admin.find_topics(names).items():
            if error is not None and name not in self._cluster.created:
                self._cluster.created[name] = NewTopic(name, partitions, replicas)

    # -- settings ----------------------------------------------------------------------------------

    def describe_topic_configs(
        self, topics: Iterable[str]
    ) -> dict[str, list[TopicSetting] | BrokerError]:
        wanted = list(topics)
        created = self._cluster.created
        there = [name for name in wanted if name not in created]
        found = self._admin.describe_topic_configs(there) if there else {}
        for name in wanted:
            settings = found.get(name)
            if name in created:
                found[name] = [_own(*each) for each in created[name].configs.items()]
            elif isinstance(settings, list) and name in self._cluster.altered:
                found[name] = list(_with_changes(settings, self._cluster.altered[name]))
        return found

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]]
    ) -> dict[str, BrokerError | None]:
        created = self._cluster.created
        outcome: dict[str, BrokerError | None] = dict.fromkeys(changes)
        there = {name: each for name, each in changes.items() if name not in created}
        if there and self._validates:
            outcome |= self._admin.alter_topic_configs(there, validate_only=True)
        before = self._admin.describe_topic_configs(there) if there else {}
        for name, wanted in changes.items():
            if name in created:
                created[name] = replace(
                    created[name], configs=_applied(created[name].configs, wanted)
                )
            elif outcome[name] is None:
                settings = before.get(name)
                known = settings if isinstance(settings, list) else []
                self._note(name, {each.name: each.value for each in known}, wanted)
        return outcome

    def _note(
        self, topic: str, before: Mapping[str, str | None], changes: Iterable[ConfigChange]
    ) -> None:
        noted = self._cluster.altered.setdefault(topic, {})
        for name, operation, value in changes:
            after = value if operation == AlterOperation.SET else None
            noted[name] = SettingChange(before.get(name), after)

    # -- ACLs --------------------------------------------------------------------------------------

    def describe_topic_acls(
        self, operation: Operation = Operation.DESCRIBE
    ) -> list[AclRule] | None:
        found = self._admin.describe_topic_acls(operation)
        return None if found is None else [*found, *self._cluster.acls]

    def create_acls(self, rules: Iterable[AclRule]) -> dict[AclRule, BrokerError | None]:
        wanted = list(rules)
        self._cluster.acls += [rule for rule in wanted if rule not in self._cluster.acls]
        return dict.fromkeys(wanted)

    # -- groups ------------------------------------------------------------------------------------

    def alter_offsets(self, group_id: str, offsets: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Never: the groups' offsets are planned without it."""
        raise KafkaError(f"a rehearsal does not write offsets of '{group_id}'")

    alter_many: Callable[..., Any] = alter_offsets


def _view(topic: NewTopic) -> TopicView:
    return TopicView(max(topic.partitions, 1), b"")


def _own(name: str, value: str | None) -> TopicSetting:
    return TopicSetting(name, value, OWN, read_only=False, sensitive=False)


def _with_changes(
    settings: Iterable[TopicSetting], changes: Mapping[str, SettingChange]
) -> Iterable[TopicSetting]:
    found = {each.name: each for each in settings}
    for name, change in changes.items():
        if change.after is not None:
            found[name] = _own(name, change.after)
        elif name in found:
            found[name] = found[name]._replace(source=ConfigSource.DEFAULT)
    return found.values()


def _applied(configs: Mapping[str, str], changes: Iterable[ConfigChange]) -> dict[str, str]:
    found = dict(configs)
    for name, operation, value in changes:
        found.pop(name, None)
        if operation == AlterOperation.SET and value is not None:
            found[name] = value
    return found
