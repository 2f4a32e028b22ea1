"""MirrorMaker 1's group on real brokers: what the copy begins with, and what is committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from sparkmirror.config.legacy.mirror_maker_1 import LegacyOptions, load_legacy
from sparkmirror.connect.legacy.legacy_group import LegacyGroup
from sparkmirror.connect.legacy.legacy_mirror import identify
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore, StoredPosition
from sparkmirror.embedded import KafkaCluster
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.positions.provenance import decode_topic_id
from sparkmirror.types import TopicPartition
from tests.clusters import create_topic, produce, wait_for
from tests.group_members import member
from tests.group_offsets import commit_offsets
from tests.kafka.topics import delete_topic
from tests.legacy.mirrors import Files

pytestmark = pytest.mark.kafka

COMMIT_MS = 3_600_000
RECORDS = 10


class World:
    """A topic with two partitions, and the group of a MirrorMaker 1 that has copied it."""

    def __init__(self, folder: Path, source: KafkaCluster, target: KafkaCluster) -> None:
        self.files = Files(folder, source, target)
        self.topic = create_topic(source, f"{self.files.prefix}-orders", partitions=2)
        for at in range(2):
            produce(source, self.topic, [b"%d" % n for n in range(RECORDS)], partition=at)
        options = LegacyOptions(
            consumer_config=str(self.files.consumer_file),
            producer_config=str(self.files.producer_file),
            include=self.topic,
        )
        (self.flow,) = identify(load_legacy(options)).flows
        self.tasks = SimpleNamespace(assignment=[])

    def tp(self, at: int) -> TopicPartition:
        return TopicPartition(self.topic, at)

    def group(self) -> LegacyGroup:
        """As a process has it."""
        return LegacyGroup(
            self.flow.spec(self.flow.source),
            lambda: self.tasks.assignment,
            self.files.group,
            COMMIT_MS,
        )

    def assign(self) -> None:
        """The tasks copy both partitions: what they store is committed from now on."""
        self.tasks.assignment = [[self.tp(0)], [self.tp(1)]]

    def end(self, group: LegacyGroup) -> bool:
        """Whether all was committed."""
        self.assign()
        group.stop()
        return group.join(10.0)

    def begin(self) -> LegacyGroup:
        group = self.group()
        group.connect()
        group.start()
        return group

    def store(self, group: LegacyGroup, positions: Mapping[TopicPartition, int]) -> None:
        """As the tasks do."""
        group._write(positions, group._topic_ids())

    def positions(self) -> dict[TopicPartition, StoredPosition]:
        """What tasks find."""
        store = KafkaOffsetBackingStore.of(self.flow.worker, self.flow.source)
        store.partitions = self.flow.worker.offset_storage_partitions
        return store.load()

    def stored(self) -> dict[TopicPartition, int]:
        """Where tasks would begin."""
        return {tp: position.next_offset for tp, position in self.positions().items()}

    def topic_id(self) -> bytes:
        """As an independent client sees it."""
        admin = AdminClient({"bootstrap.servers": self.files.source.bootstrap_servers})
        found = admin.describe_topics(TopicCollection([self.topic]))[self.topic].result(30.0)
        topic_id = decode_topic_id(str(found.topic_id))
        assert topic_id
        return topic_id

    def recreate_topic(self, records: int) -> None:
        """Somebody deletes the topic and creates it again, with so many records in each partition.

        The brokers take the group's offsets away with it.
        """
        delete_topic(self.files.source, self.topic)
        create_topic(self.files.source, self.topic, partitions=2)
        for at in range(2):
            produce(self.files.source, self.topic, [b"new"] * records, partition=at)
        wait_for(lambda: not self.files.committed(), within=30.0, describe="offsets are gone")


@pytest.fixture
def world(source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path) -> World:
    return World(tmp_path, source_cluster, target_cluster)


def test_the_copy_begins_where_the_group_stopped_and_the_group_follows_it(world: World) -> None:
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 4, world.tp(1): 0})
    group = world.begin()
    # 0 too: it is not "no position", which auto.offset.reset=latest would turn into the end.
    assert world.stored() == {world.tp(0): 4, world.tp(1): 0}
    world.store(group, {world.tp(0): 7})
    assert world.files.committed() == {world.tp(0): 4, world.tp(1): 0}
    assert world.end(group)
    assert world.files.committed() == {world.tp(0): 7, world.tp(1): 0}


def test_what_mirror_maker_1_or_a_person_committed_since_is_stronger(world: World) -> None:
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 4, world.tp(1): 5})
    assert world.end(world.begin())
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 2})
    group = world.begin()
    assert world.stored() == {world.tp(0): 2, world.tp(1): 5}
    assert world.end(group)


def test_after_a_crash_the_stored_positions_are_the_newer_ones(world: World) -> None:
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 4})
    crashed = world.begin()
    world.assign()
    crashed.stop()
    crashed.commit(everything=True)
    world.store(crashed, {world.tp(0): 9})
    group = world.begin()
    assert world.stored() == {world.tp(0): 9}
    assert world.end(group)
    assert world.files.committed() == {world.tp(0): 9}
    crashed.disconnect()


def test_positions_of_a_deleted_topic_are_not_committed_for_the_one_that_replaced_it(
    world: World,
) -> None:
    group = world.begin()
    world.store(group, {world.tp(0): 9, world.tp(1): 9})
    assert world.end(group)
    assert world.files.committed() == {world.tp(0): 9, world.tp(1): 9}
    before = world.positions()
    world.recreate_topic(records=3)

    again = world.begin()
    world.assign()
    again.commit(everything=True)
    assert world.files.committed() == {}
    # The tasks decide, which see that the topic is another one.
    assert world.positions() == before
    world.store(again, {world.tp(1): 2})
    assert world.end(again)
    assert world.files.committed() == {world.tp(1): 2}


def test_a_commit_that_came_too_late_is_no_position_of_the_new_topic(world: World) -> None:
    group = world.begin()
    world.store(group, {world.tp(0): 9})
    world.assign()
    group.commit(everything=True)
    late = group._committed()
    group.stop()
    world.recreate_topic(records=3)
    assert group._groups.alter_offsets(world.files.group, late) == {world.tp(0): None}
    group.disconnect()

    before = world.positions()
    again = world.begin()
    assert world.positions() == before
    # MirrorMaker 1 would leave out what the new topic has before it.
    world.assign()
    again.commit(everything=False)
    assert world.files.committed() == {world.tp(0): 0}
    world.store(again, {world.tp(0): 1})
    assert world.end(again)
    assert world.files.committed() == {world.tp(0): 1}


def test_what_the_group_committed_for_the_new_topic_replaces_a_position_of_the_old_one(
    world: World,
) -> None:
    group = world.begin()
    world.store(group, {world.tp(0): 2})
    assert world.end(group)
    world.recreate_topic(records=3)
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 2})
    again = world.begin()
    position = world.positions()[world.tp(0)]
    assert (position.next_offset, position.is_of(world.topic_id())) == (2, True)
    assert world.end(again)


def test_a_group_offset_is_stored_with_the_id_of_its_topic(world: World) -> None:
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 4, world.tp(1): 5})
    group = world.begin()
    found = {position.provenance.topic_id for position in world.positions().values()}
    assert found == {world.topic_id()}
    assert world.end(group)


def test_a_group_with_members_is_refused_before_anything_is_created(world: World) -> None:
    with member(world.files.source, world.topic, world.files.group):
        group = world.group()
        with pytest.raises(KafkaError, match=r"has active members .*stop all of its processes"):
            group.connect()
        group.disconnect()


def test_members_that_come_later_are_noticed_and_nothing_is_committed(world: World) -> None:
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 4})
    group = world.begin()
    world.store(group, {world.tp(0): 9})
    with member(world.files.source, world.topic, world.files.group):
        world.assign()
        with pytest.raises(KafkaError, match="has active members"):
            group.commit(everything=True)
        wait_for(lambda: group.failure is not None, within=30.0, describe="it looks at the group")
        assert not world.end(group)
    assert world.files.committed() == {world.tp(0): 4}


def test_somebody_who_commits_beside_us_is_told_of(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 4})
    group = world.begin()
    world.assign()
    group.commit(everything=True)
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 1})
    assert world.end(group)
    assert "another client has committed offsets for group" in caplog.text
    assert world.files.committed() == {world.tp(0): 4}


def test_a_position_that_the_group_forgot_is_kept_and_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    commit_offsets(world.files.source, world.files.group, {world.tp(0): 4})
    group = world.begin()
    world.store(group, {world.tp(1): 6})
    group.stop()
    group.disconnect()
    again = world.begin()
    assert world.stored() == {world.tp(0): 4, world.tp(1): 6}
    assert f"no longer has an offset for {world.tp(1)}" in caplog.text
    assert world.end(again)
    assert world.files.committed() == {world.tp(0): 4, world.tp(1): 6}


def test_a_topic_that_was_deleted_does_not_keep_the_others_from_being_committed(
    world: World,
) -> None:
    gone = create_topic(world.files.source, f"{world.files.prefix}-gone")
    commit_offsets(
        world.files.source, world.files.group, {TopicPartition(gone, 0): 0, world.tp(0): 4}
    )
    group = world.begin()
    delete_topic(world.files.source, gone)
    world.store(group, {world.tp(0): 7})
    world.tasks.assignment = [[TopicPartition(gone, 0), world.tp(0)]]
    group.stop()
    assert group.join(10.0)
    assert world.files.committed() == {world.tp(0): 7}


def test_topics_with_fewer_partitions_on_the_target_are_refused(
    world: World, target_cluster: KafkaCluster
) -> None:
    create_topic(target_cluster, world.topic, partitions=1)
    group = world.group()
    with pytest.raises(KafkaError, match="has 2 partitions on 'source' and only 1 on 'target'"):
        group.connect()
    group.disconnect()


def test_more_partitions_on_the_target_are_told(
    world: World, target_cluster: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(target_cluster, world.topic, partitions=3)
    group = world.group()
    group.connect()
    group.disconnect()
    assert "a key may now be in a different partition" in caplog.text


def test_one_cluster_as_source_and_target_is_refused(
    source_cluster: KafkaCluster, tmp_path: Path
) -> None:
    files = Files(tmp_path, source_cluster, source_cluster)
    options = LegacyOptions(
        consumer_config=str(files.consumer_file),
        producer_config=str(files.producer_file),
        include="x",
    )
    with pytest.raises(KafkaError, match="both files name the same cluster"):
        identify(load_legacy(options))
