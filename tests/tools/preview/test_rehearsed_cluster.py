"""A rehearsal changes nothing, and remembers exactly what the connector would change."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.connect.source import remote_topics
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.mirror.admin_types import AclRule, ConfigChange, NewTopic
from sparkmirror.tools.preview.rehearsed_cluster import (
    RehearsalAdmin,
    RehearsedCluster,
    SettingChange,
)
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import Admin, TopicSetting
from tests.connect.fakes import FakeAdmin
from tests.flows import make_flow

READ, WRITE, ALL = 3, 4, 2


@pytest.fixture(scope="module", autouse=True)
def no_wait() -> Iterator[None]:
    """These brokers create no topics by themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_topics, "AUTO_CREATE_SECONDS", 0.0)
        patch.setattr(remote_topics, "LOOK_SECONDS", 0.0)
        yield


class ValidatingAdmin(FakeAdmin):
    """A fake that also validates, and gives new topics their settings."""

    def __init__(self) -> None:
        super().__init__()
        self.broker_settings: dict[str, str | None] = {}

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, BrokerError | None]:
        place = copy.deepcopy(self) if validate_only else self
        wanted = list(topics)
        new = [topic for topic in wanted if topic.name not in self.topics]
        outcome = dict.fromkeys(topic.name for topic in wanted) | FakeAdmin.create_topics(
            place, new
        )
        for topic in new:
            if outcome[topic.name] is None:
                place.settings[topic.name] = [own(*each) for each in topic.configs.items()]
        return outcome

    def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, BrokerError | None]:
        return FakeAdmin.create_partitions(copy.deepcopy(self) if validate_only else self, counts)

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> dict[str, BrokerError | None]:
        place = copy.deepcopy(self) if validate_only else self
        return FakeAdmin.alter_topic_configs(place, changes)

    def describe_broker_configs(self) -> dict[str, str | None]:
        return self.broker_settings

    def holds(self) -> Any:
        """Everything that a request could change."""
        counts = {name: view.partitions for name, view in self.topics.items()}
        values = {name: values_of(rows) for name, rows in self.settings.items() if values_of(rows)}
        return counts, values, frozenset(self.acls or ()), list(self.topics_asked)


def own(name: str, value: str | None) -> TopicSetting:
    return TopicSetting(name, value, 1, read_only=False, sensitive=False)


def values_of(settings: Iterable[TopicSetting]) -> dict[str, str | None]:
    return {each.name: each.value for each in settings if each.source == 1}


def rehearsal(admin: FakeAdmin) -> tuple[RehearsalAdmin, RehearsedCluster]:
    cluster = RehearsedCluster("b")
    return RehearsalAdmin(cast("Admin", admin), cluster), cluster


def carried_out(before: Any, cluster: RehearsedCluster) -> Any:
    """What the cluster would hold after the changes."""
    counts, values, acls, _ = copy.deepcopy(before)
    counts |= {name: topic.partitions for name, topic in cluster.created.items()}
    counts |= {name: after for name, (_, after) in cluster.grown.items()}
    values |= {name: dict(topic.configs) for name, topic in cluster.created.items()}
    for name, changes in cluster.altered.items():
        left = values.get(name, {}) | {key: each.after for key, each in changes.items()}
        values[name] = {key: value for key, value in left.items() if value is not None}
    filled = {name: each for name, each in values.items() if each}
    return counts, filled, acls | set(cluster.acls), []


NAMES = st.sampled_from(["orders", "users", "heartbeats", "b.loop", "x" * 248, "mm2-x.internal"])
SETTINGS = st.dictionaries(
    st.sampled_from(["retention.ms", "cleanup.policy", "max.message.bytes", "new.setting"]),
    st.sampled_from(["1", "5", "100"]),
    max_size=3,
)
TOPICS = st.dictionaries(NAMES, st.tuples(st.integers(1, 4), SETTINGS), max_size=4)
RULES = st.lists(
    st.builds(
        AclRule,
        st.just(2),
        st.sampled_from(["orders", "users", "*", "none"]),
        st.sampled_from([3, 4]),
        st.sampled_from(["User:a", "User:b"]),
        st.just("*"),
        st.sampled_from([READ, WRITE, ALL]),
        st.sampled_from([2, 3]),
    ),
    max_size=4,
)


@given(TOPICS, TOPICS, RULES, RULES, st.sampled_from([0, 1]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_rehearsal_writes_nothing_and_then_the_connector_does_what_it_said(  # noqa: PLR0917
    on_source: dict[str, tuple[int, dict[str, str]]],
    on_target: dict[str, tuple[int, dict[str, str]]],
    source_rules: list[AclRule],
    target_rules: list[AclRule],
    brokers: int,
    is_old: bool,
) -> None:
    source, target = ValidatingAdmin(), ValidatingAdmin()
    for admin, topics, prefix in ((source, on_source, ""), (target, on_target, "a.")):
        for name, (count, values) in topics.items():
            admin.add(prefix + name, count)
            admin.settings[prefix + name] = [own(*each) for each in values.items()]
    source.acls, target.acls = source_rules, list(dict.fromkeys(target_rules))
    target.brokers = brokers
    if is_old:
        target.unknown_settings, target.least_settings = {"new.setting"}, {"max.message.bytes": 5}
    with tempfile.TemporaryDirectory() as folder:
        flow = make_flow(Path(folder), {"replication.factor": "2"})
    before = source.holds(), target.holds()
    (a, on_a), (b, on_b) = rehearsal(source), rehearsal(target)
    MirrorSourceConnector(flow.spec(flow.source)).rehearse(cast("Admin", a), cast("Admin", b))
    assert (source.holds(), target.holds()) == before

    # The second time on the clusters themselves: the same code, the same calls.
    really = MirrorSourceConnector(flow.spec(flow.source))
    really.rehearse(cast("Admin", source), cast("Admin", target))
    target.topics_asked.clear()
    assert source.holds() == carried_out(before[0], on_a)
    assert target.holds() == carried_out(before[1], on_b)

    # And then there is nothing to do.
    (a, on_a), (b, on_b) = rehearsal(source), rehearsal(target)
    MirrorSourceConnector(flow.spec(flow.source)).rehearse(cast("Admin", a), cast("Admin", b))
    assert (on_a.size, on_b.size) == (0, 0)


@pytest.mark.parametrize("name", ["delete_topics", "alter_many", "_client", "send"])
def test_what_might_write_is_not_called(name: str) -> None:
    admin, _ = rehearsal(ValidatingAdmin())
    with pytest.raises((AttributeError, KafkaError)):
        getattr(admin, name)("group", {TopicPartition("t", 0): (1, "")})


def test_later_reads_see_earlier_changes() -> None:
    real = ValidatingAdmin()
    real.add("there", 2)
    real.settings["there"] = [own("retention.ms", "5")]
    admin, cluster = rehearsal(real)
    admin.create_topics([NewTopic("new", 3, 1, {"cleanup.policy": "compact"})])
    admin.create_topics([NewTopic("there", 9, 1)])
    admin.create_partitions({"new": 4, "there": 6})
    admin.alter_topic_configs(
        {
            "there": [ConfigChange("retention.ms", 1, None), ConfigChange("x", 0, "7")],
            "new": [ConfigChange("y", 0, "8")],
        }
    )
    assert {name: view.partitions for name, view in admin.list_topics().items()} == {
        "new": 4,
        "there": 6,
    }
    assert admin.find_topics(["new", "there"]) == {"new": None, "there": None}
    assert (view := admin.view_topic("there")) is not None
    assert view.partitions == 6
    found = admin.describe_topic_configs(["new", "there"])
    assert values_of(cast("list[TopicSetting]", found["there"])) == {"x": "7"}
    assert values_of(cast("list[TopicSetting]", found["new"])) == {
        "cleanup.policy": "compact",
        "y": "8",
    }
    assert list(cluster.created) == ["new"]
    assert cluster.grown == {"there": (2, 6)}
    assert cluster.altered == {
        "there": {"retention.ms": SettingChange("5", None), "x": SettingChange(None, "7")}
    }


@pytest.mark.parametrize(("enabled", "expected"), [("true", ["t"]), ("false", []), (None, [])])
def test_brokers_may_create_topics_by_themselves(enabled: str | None, expected: list[str]) -> None:
    real = ValidatingAdmin()
    real.broker_settings = {"auto.create.topics.enable": enabled, "num.partitions": "2"}
    admin, cluster = rehearsal(real)
    admin.ask_for_topics(["t"])
    assert real.topics_asked == []
    assert list(cluster.created) == expected


def test_a_class_of_ones_own_is_not_validated_by_brokers() -> None:
    real = ValidatingAdmin()
    real.refuses_creation["t"] = BrokerError("no", 1, retriable=False)
    cluster = RehearsedCluster("b")
    admin = RehearsalAdmin(cast("Admin", real), cluster, validates=False)
    assert admin.create_topics([NewTopic("t", 1, 1)]) == {"t": None}
    assert list(cluster.created) == ["t"]
