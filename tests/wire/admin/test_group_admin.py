"""Groups of a real broker: every state a group can be in, and errors one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition as TheirPartition

from sparkmirror.config.clients import ClientConfig
from sparkmirror.embedded import KafkaCluster
from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import (
    GROUPS_PER_CONNECTION,
    DescribedGroup,
    GroupAdmin,
    GroupOffset,
)
from sparkmirror.wire.protocol.error_codes import UNKNOWN_MEMBER_ID, UNKNOWN_TOPIC_OR_PARTITION
from tests.clusters import create_topic, produce, unique_name, wait_for
from tests.group_members import member

pytestmark = pytest.mark.kafka

PROTOCOLS = ("classic", "consumer")
ABSENT = "no-such-topic"


@pytest.fixture(scope="module")
def admin(source_cluster: KafkaCluster) -> Iterator[GroupAdmin]:
    client = GroupAdmin(ClientConfig("a", (source_cluster.bootstrap_servers,)), 30_000)
    yield client
    client.close()


@pytest.fixture(scope="module")
def topic(source_cluster: KafkaCluster) -> str:
    """Two partitions; the first has 10 records."""
    name = create_topic(source_cluster, partitions=2)
    produce(source_cluster, name, [b"x"] * 10)
    return name


def commit(admin: GroupAdmin, topic: str, offset: int, metadata: str = "") -> str:
    """An empty group with one offset."""
    group = unique_name("group")
    tp = TopicPartition(topic, 0)
    assert admin.alter_offsets(group, {tp: (offset, metadata)}) == {tp: None}
    return group


def code(error: KafkaError | int | None) -> int:
    assert isinstance(error, BrokerError)
    return error.code


def test_offsets_that_are_written_are_read_back(admin: GroupAdmin, topic: str) -> None:
    group = commit(admin, topic, 7, "from the source")
    assert admin.committed_offsets([group]) == {
        group: {TopicPartition(topic, 0): GroupOffset(7, "from the source")}
    }
    assert admin.describe_groups([group]) == {group: DescribedGroup("Empty")}


def test_a_group_that_is_not_there_is_dead_and_has_no_offsets(admin: GroupAdmin) -> None:
    group = unique_name("unknown")
    assert admin.describe_groups([group]) == {group: DescribedGroup("Dead")}
    assert admin.committed_offsets([group]) == {group: {}}
    assert group not in [listing.group_id for listing in admin.list_groups()]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_with_members_is_not_written(
    source_cluster: KafkaCluster, admin: GroupAdmin, topic: str, protocol: str
) -> None:
    group = unique_name(protocol)
    tp = TopicPartition(topic, 0)
    with member(source_cluster, topic, group, protocol) as consumer:
        assert admin.describe_groups([group])[group].state in ("Stable", "Reconciling")
        assert admin.committed_offsets([group]) == {group: {}}
        assert code(admin.alter_offsets(group, {tp: (3, "")})[tp]) == UNKNOWN_MEMBER_ID
        (listing,) = [each for each in admin.list_groups() if each.group_id == group]
        assert (listing.protocol_type, listing.type.lower()) == ("consumer", protocol)
        consumer.commit(offsets=[TheirPartition(*tp, 4)], asynchronous=False)
    wait_for(
        lambda: admin.describe_groups([group])[group].state == "Empty",
        within=30,
        describe=f"{group} is empty",
    )
    assert admin.alter_offsets(group, {tp: (5, "")}) == {tp: None}
    assert admin.committed_offsets([group]) == {group: {tp: GroupOffset(5)}}


def test_partitions_that_are_not_there_fail_one_by_one(admin: GroupAdmin, topic: str) -> None:
    good, absent = TopicPartition(topic, 1), TopicPartition(ABSENT, 0)
    beyond = TopicPartition(topic, 99)
    group = unique_name("group")
    found = admin.alter_offsets(group, dict.fromkeys((good, absent, beyond), (1, "")))
    assert found[good] is None
    assert code(found[absent]) == code(found[beyond]) == UNKNOWN_TOPIC_OR_PARTITION
    assert ABSENT in str(found[absent])
    assert admin.committed_offsets([group]) == {group: {good: GroupOffset(1)}}


def test_nothing_to_write_is_no_request(admin: GroupAdmin) -> None:
    assert admin.alter_offsets("any", {}) == {}


def test_many_groups_are_written_each_with_its_outcome(
    source_cluster: KafkaCluster, admin: GroupAdmin, topic: str
) -> None:
    tp, absent = TopicPartition(topic, 0), TopicPartition(ABSENT, 0)
    groups = [unique_name("many") for _ in range(2 * GROUPS_PER_CONNECTION)]
    used = unique_name("used")
    wanted = {group: {tp: (at, "m")} for at, group in enumerate(groups)} | {used: {tp: (1, "")}}
    wanted[groups[0]][absent] = (1, "")
    with member(source_cluster, topic, used, "classic"):
        outcomes = admin.alter_many(wanted)
    assert set(outcomes) == set(wanted)
    assert code(outcomes[used][tp]) == UNKNOWN_MEMBER_ID
    assert code(outcomes[groups[0]].pop(absent)) == UNKNOWN_TOPIC_OR_PARTITION
    assert [outcomes[group] for group in groups] == [{tp: None}] * len(groups)
    found = admin.committed_offsets(groups)
    assert found == {group: {tp: GroupOffset(at, "m")} for at, group in enumerate(groups)}


def test_a_stop_ends_writing_between_two_groups(admin: GroupAdmin, topic: str) -> None:
    wanted = {unique_name("stopped"): {TopicPartition(topic, 0): (1, "")} for _ in range(3)}
    responses = iter([False, False, True])
    outcomes = admin.alter_many(wanted, lambda: next(responses))
    assert list(outcomes) == list(wanted)[:2]
    assert admin.alter_many({}) == {}


def test_log_ranges(admin: GroupAdmin, topic: str) -> None:
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    absent, beyond = TopicPartition(ABSENT, 0), TopicPartition(topic, 99)
    ends = admin.end_offsets([full, empty, absent, beyond])
    assert (ends[full], ends[empty]) == (10, 0)
    assert code(ends[absent]) == code(ends[beyond]) == UNKNOWN_TOPIC_OR_PARTITION
    assert admin.start_offsets([full, empty]) == {full: 0, empty: 0}


@pytest.mark.parametrize("old", [False, True], ids=["in few requests", "one by one"])
def test_many_groups(
    admin: GroupAdmin, topic: str, old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [commit(admin, topic, 1) for _ in range(50)]
    if old:
        monkeypatch.setattr(GroupAdmin, "_version", lambda *_: 1)
    unknown = unique_name("unknown")
    asked: list[str] = []
    send = admin._send

    def noted(what: str, *rest: Any) -> Any:
        asked.append(what)
        return send(what, *rest)

    monkeypatch.setattr(admin, "_send", noted)
    found = admin.committed_offsets([*groups, unknown])
    states = admin.describe_groups([*groups, unknown])
    assert (len(asked) < len(groups)) == (not old), asked
    tp = TopicPartition(topic, 0)
    assert found == {group: {tp: GroupOffset(1)} for group in groups} | {unknown: {}}
    assert states == dict.fromkeys(groups, DescribedGroup("Empty")) | {
        unknown: DescribedGroup("Dead")
    }
    assert set(groups) <= {listing.group_id for listing in admin.list_groups()}
