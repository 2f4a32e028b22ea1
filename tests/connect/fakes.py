"""A source connector without clusters: admins, tasks and stored positions that the test plays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore, StoredPosition
from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.mirror.permissions import Operation
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.task_runner import TaskRunner, TaskState
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import (
    AclRule,
    Admin,
    ConfigChange,
    NewTopic,
    TopicSetting,
    TopicView,
)
from sparkmirror.wire.fetch.log_ranges import Ranges
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION, broker_error
from tests.connect.local_source import LocalSource
from tests.flows import make_flow


class FakeAdmin:
    """Topics of one cluster, their settings and their ACLs, in memory.

    `hidden` has topics whose settings are not told, `invisible` those that may not be described;
    `acls` is None without an authorizer.
    """

    alias = "b"

    def __init__(self) -> None:
        self.topics: dict[str, TopicView] = {}
        self.ranges: dict[TopicPartition, Range | KafkaError] = {}
        self.settings: dict[str, list[TopicSetting]] = {}
        self.created: list[NewTopic] = []
        self.topics_asked: list[str] = []
        # Partitions of topics that brokers create for those who ask; 0: they create none.
        self.auto_creates = 0
        # Creations with more replicas are refused; 0: all are as many as is wanted.
        self.brokers = 0
        self.refuses: dict[str, BrokerError] = {}
        self.refuses_creation: dict[str, BrokerError] = {}
        self.refuses_altering: dict[str, BrokerError] = {}
        # Names of settings, and least values, that brokers of another release refuse.
        self.unknown_settings: set[str] = set()
        self.least_settings: dict[str, int] = {}
        self.hidden: dict[str, BrokerError] = {}
        self.invisible: dict[str, BrokerError] = {}
        self.config_changes: list[tuple[str, ConfigChange]] = []
        self.acls: list[AclRule] | None = None
        self.acl_errors: list[BrokerError] = []
        self.failures: list[KafkaError] = []
        self.closed = False

    def add(self, topic: str, partitions: int = 1, topic_id: bytes = b"") -> None:
        """A topic; its id is made of its name unless given."""
        self.topics[topic] = TopicView(partitions, topic_id or topic.encode())

    def broker_count(self) -> int:
        return self.brokers

    def list_topics(self) -> dict[str, TopicView]:
        if self.failures:
            raise self.failures.pop()
        return dict(self.topics)

    def view_topic(self, name: str) -> TopicView | None:
        return self.list_topics().get(name)

    def log_ranges(self, partitions: Iterable[TopicPartition], seconds: float) -> Ranges:
        """Logs are empty unless `ranges` says otherwise."""
        assert seconds > 0
        return {tp: self.ranges.get(tp, Range(0, 0)) for tp in partitions}

    def describe_topic_configs(
        self, topics: Iterable[str]
    ) -> dict[str, list[TopicSetting] | BrokerError]:
        return {topic: self.hidden.get(topic) or self.settings.get(topic, []) for topic in topics}

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]]
    ) -> dict[str, BrokerError | None]:
        refused = self.refuses | self.refuses_altering
        for topic, wanted in changes.items():
            values = {name: value for name, _, value in wanted if value is not None}
            if error := self._refused_setting(f"alter configs of topic '{topic}'", values):
                refused[topic] = error
            if topic not in refused:
                self.config_changes += [(topic, change) for change in wanted]
                self.settings[topic] = changed(self.settings.get(topic, []), wanted)
        return {topic: refused.get(topic) for topic in changes}

    def _refused_setting(self, what: str, settings: Mapping[str, str]) -> BrokerError | None:
        """In the words of Kafka 4.3."""
        for name, value in settings.items():
            if name in self.unknown_settings:
                return broker_error(what, 40, f"Unknown topic config name: {name}")
            least = self.least_settings.get(name)
            if least is not None and int(value) < least:
                words = f"Invalid value {value} for configuration {name}: Value must be at least "
                return broker_error(what, 40, f"{words}{least}")
        return None

    def describe_topic_acls(
        self, operation: Operation = Operation.DESCRIBE
    ) -> list[AclRule] | None:
        del operation
        if self.acl_errors:
            raise self.acl_errors.pop()
        return None if self.acls is None else list(self.acls)

    def create_acls(self, rules: Iterable[AclRule]) -> dict[AclRule, BrokerError | None]:
        assert self.acls is not None
        outcome = {rule: self.refuses.get(rule.resource_name) for rule in rules}
        self.acls += [rule for rule, error in outcome.items() if error is None]
        return outcome

    def find_topics(self, names: Iterable[str]) -> dict[str, BrokerError | None]:
        unknown = broker_error("find topic", UNKNOWN_TOPIC_OR_PARTITION)
        return {
            name: None if name in self.topics else self.invisible.get(name, unknown)
            for name in names
        }

    def ask_for_topics(self, names: Iterable[str]) -> None:
        for name in names:
            self.topics_asked.append(name)
            if self.auto_creates:
                self.add(name, self.auto_creates)

    def create_topics(self, topics: Iterable[NewTopic]) -> dict[str, BrokerError | None]:
        outcome: dict[str, BrokerError | None] = {}
        for topic in topics:
            error = self.refuses_creation.get(topic.name) or self.refuses.get(topic.name)
            what = f"create topic '{topic.name}' on '{self.alias}'"
            if 0 < self.brokers < topic.replication_factor:
                error = broker_error(what, 38)
            error = error or self._refused_setting(what, topic.configs)
            outcome[topic.name] = error
            if error is None:
                self.created.append(topic)
                self.add(topic.name, topic.partitions)
        return outcome

    def create_partitions(self, counts: Mapping[str, int]) -> dict[str, BrokerError | None]:
        for topic, count in counts.items():
            if topic not in self.refuses:
                self.add(topic, count)
        return {topic: self.refuses.get(topic) for topic in counts}

    def close(self) -> None:
        self.closed = True


def changed(
    settings: Iterable[TopicSetting], changes: Iterable[ConfigChange]
) -> list[TopicSetting]:
    """Settings of a topic after changes; what is deleted is gone."""
    left = {setting.name: setting for setting in settings}
    for name, operation, value in changes:
        left.pop(name, None)
        if operation == 0:
            left[name] = TopicSetting(name, value, 1, read_only=False, sensitive=False)
    return list(left.values())


class FakeTask:
    """A task runner that only notes what it is told."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.state = TaskState.RUNNING
        self.trace = ""
        self.has_failed = False
        self.numbers: dict[str, Any] = {}
        self.records = 0
        self.bytes = 0
        self.sent: list[LinkMessage] = []
        self.attempts = 1
        self.needs_files = False
        self.started = 0
        self.stopped = False

    def start(self) -> None:
        self.started += 1

    def send(self, message: LinkMessage) -> None:
        self.sent.append(message)

    def restart(self) -> None:
        self.started += 1

    def take_topics(self) -> set[str]:
        return set()

    def stop(self) -> None:
        self.stopped = True

    def join(self, seconds: float) -> bool:
        return self.stopped


class FakeStore:
    """Stored positions, which may be out of reach."""

    partitions = 25

    def __init__(self) -> None:
        self.positions: dict[TopicPartition, int | StoredPosition] = {}
        self.failures: list[KafkaError] = []

    def load_existing(self, admin: object, client: object) -> dict[TopicPartition, StoredPosition]:
        del admin, client
        return self.load()

    def load(self) -> dict[TopicPartition, StoredPosition]:
        if self.failures:
            raise self.failures.pop()
        return {
            tp: StoredPosition(last + 1) if isinstance(last, int) else last
            for tp, last in self.positions.items()
        }


class Connector(LocalSource):
    """The real one over fakes, with tasks beside it; a refresh is one look on the test's thread."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(make_flow(folder, settings))
        self.source, self.target, self.store = FakeAdmin(), FakeAdmin(), FakeStore()
        self._admins = [cast("Admin", self.source), cast("Admin", self.target)]
        self._use(*self._admins)
        self._store = cast("KafkaOffsetBackingStore", self.store)
        self.task_settings.store = self._store

    def refresh(self) -> str:
        self.look()
        return ""

    def orders(self, at: int) -> LinkMessage:
        """What task `at` would be told if it called in now."""
        return self._copies[at].start_message()

    @property
    def fake_tasks(self) -> list[FakeTask]:
        """What `tasks` really holds."""
        return cast("list[FakeTask]", self.tasks)

    def _new_runner(self, name: str, make_message: Callable[[], LinkMessage]) -> TaskRunner:
        del make_message
        return cast("TaskRunner", FakeTask(name))
