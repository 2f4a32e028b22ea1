"""Connect's topics on a real broker: what one worker writes, all workers read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.storage.backing_stores import StoredStatus
from sparkmirror.connect.storage.config_backing_store import KafkaConfigBackingStore, _batch
from sparkmirror.connect.storage.log_reader import read_topic
from sparkmirror.connect.storage.status_backing_store import KafkaStatusBackingStore
from sparkmirror.connect.storage.storage_topics import StorageTopic
from sparkmirror.connect.storage.stored_offsets import ConnectorOffsets
from sparkmirror.embedded import KafkaCluster
from sparkmirror.errors import BrokerError, ConfigError
from sparkmirror.mirror.records import encode_offset_key
from sparkmirror.types import TopicPartition
from sparkmirror.wire.produce.transactional_writer import FencedError, TransactionalWriter
from tests.clusters import Record as Produced
from tests.clusters import create_topic, produce, read_partition, unique_name, wait_for

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def client(target_cluster: KafkaCluster) -> ClientConfig:
    return ClientConfig("b", tuple(target_cluster.bootstrap_servers.split(",")))


@contextmanager
def config_store(
    client: ClientConfig,
    topic: str,
    group: str = "g",
    term: Callable[[], int | None] = lambda: 0,
) -> Iterator[KafkaConfigBackingStore]:
    store = KafkaConfigBackingStore(
        client, StorageTopic("config", topic, 1, 1), group_id=f"{topic}-{group}", term=term
    )
    try:
        store.start()
        yield store
    finally:
        store.stop()


@contextmanager
def status_store(client: ClientConfig, topic: str) -> Iterator[KafkaStatusBackingStore]:
    store = KafkaStatusBackingStore(client, StorageTopic("status", topic, 3, 1))
    try:
        store.start()
        yield store
    finally:
        store.stop()


# -- config ----------------------------------------------------------------------------------------


def test_what_the_leader_writes_is_there_at_once_and_soon_everywhere(client: ClientConfig) -> None:
    topic = unique_name("config")
    with (
        config_store(client, topic) as leader,
        config_store(client, topic, term=lambda: None) as follower,
    ):
        changes: list[int] = []
        follower.on_change(lambda: changes.append(1))
        leader.put_connector("c", {"a": "1"}, "PAUSED")
        assert leader.snapshot().connectors == {"c": {"a": "1"}}
        assert leader.snapshot().target_states == {"c": "PAUSED"}
        leader.put_tasks("c", [{"n": "0"}, {"n": "1"}])
        leader.put_target_state("c", "STOPPED")
        leader.put_connector("d", {"b": "2"})
        leader.delete_connector("d")
        wanted = leader.snapshot()
        assert wanted.tasks == {"c": ({"n": "0"}, {"n": "1"})}
        assert wanted.target_states == {"c": "STOPPED"}
        wait_for(lambda: follower.snapshot() == wanted and changes, within=30)
        with pytest.raises(FencedError, match="do not lead"):
            follower.put_connector("e", {})
    with config_store(client, topic) as later:
        assert later.snapshot() == wanted


def test_restarts_and_levels_are_told_once(client: ClientConfig) -> None:
    topic = unique_name("config")
    with config_store(client, topic) as leader:
        asked: list[tuple[str, bool, bool]] = []
        leader.on_restart(lambda *restart: asked.append(restart))
        leader.put_restart("c", True, False)
        leader.put_logger("org.x", "DEBUG")
        assert asked == [("c", True, False)]
        assert leader.snapshot().loggers == {"org.x": "DEBUG"}
    later = KafkaConfigBackingStore(client, StorageTopic("config", topic, 1, 1), group_id="g")
    later.on_restart(lambda *restart: asked.append(restart))
    try:
        later.start()
        later.refresh()
        assert asked == [("c", True, False)]
        assert later.snapshot().loggers == {}
    finally:
        later.stop()


@pytest.mark.parametrize(
    ("partitions", "policy", "reason"),
    [(2, "compact", "2 partitions"), (1, "delete", "cleanup.policy=delete")],
)
def test_a_topic_that_would_lose_state_is_refused(
    target_cluster: KafkaCluster, client: ClientConfig, partitions: int, policy: str, reason: str
) -> None:
    config = {"cleanup.policy": policy}
    topic = create_topic(target_cluster, partitions=partitions, config=config)
    # One with records may be somebody else's; an empty one is compacted (tests of compaction).
    produce(target_cluster, topic, [Produced(b"a record", b"key")])
    store = KafkaConfigBackingStore(client, StorageTopic("config", topic, 1, 1), group_id="g")
    with pytest.raises(ConfigError, match=reason):
        store.start()
    store.stop()


# -- fencing ---------------------------------------------------------------------------------------


def test_the_leader_before_cannot_write_any_more(
    target_cluster: KafkaCluster, client: ClientConfig
) -> None:
    topic = unique_name("config")
    with config_store(client, topic) as old, config_store(client, topic) as new:
        assert not old.is_still_claimed()  # never claimed
        old.put_connector("c", {"of": "old"})
        assert old.is_still_claimed()
        new.claim()
        assert not old.is_still_claimed()
        assert new.is_still_claimed()
        assert new.snapshot().connectors == {"c": {"of": "old"}}
        for _ in range(2):
            with pytest.raises(FencedError):
                old.put_connector("c", {"of": "nobody"})
        new.put_connector("d", {"of": "new"})
        assert new.snapshot().connectors == {"c": {"of": "old"}, "d": {"of": "new"}}
        old.refresh()
        assert old.snapshot().connectors == new.snapshot().connectors
        # Whoever leads all the same, and knows it, claims again.
        old.claim()
        old.put_connector("c", {"of": "old again"})
        with pytest.raises(FencedError):
            new.put_connector("d", {})
    assert b"nobody" not in b"".join(r.value or b"" for r in read_partition(target_cluster, topic))


def test_a_leader_that_could_not_tell_for_a_while_goes_on(client: ClientConfig) -> None:
    terms: list[int | None] = [1]
    with config_store(client, unique_name("config"), term=lambda: terms[-1]) as store:
        store.put_connector("c", {"n": "1"})
        terms.append(None)
        with pytest.raises(FencedError):
            store.put_connector("c", {"n": "2"})
        terms.append(1)
        store.put_connector("c", {"n": "3"})
        assert store.snapshot().connectors == {"c": {"n": "3"}}


def test_of_a_write_that_was_not_finished_nothing_is_read(
    target_cluster: KafkaCluster, client: ClientConfig
) -> None:
    topic = create_topic(target_cluster, config={"cleanup.policy": "compact"})
    tp, responses = TopicPartition(topic, 0), [True, True, False]
    frozen = TransactionalWriter(client, topic, lambda: responses.pop(0))
    with closing(frozen), closing(TransactionalWriter(client, topic)) as next_one:
        frozen.claim(30)
        with pytest.raises(FencedError):  # between its records and the commit
            frozen.write(tp, _batch([(b"k", b"half")]), 1, 30)
        next_one.claim(30)
        next_one.write(tp, _batch([(b"k", b"whole")]), 1, 30)
    assert [r.value for r in read_partition(target_cluster, topic)] == [b"half", b"whole"]
    found = read_topic(client, topic, 1, 30)
    assert [record.value for record in found] == [b"whole"]


def test_whoever_claims_without_leading_writes_nothing(
    target_cluster: KafkaCluster, client: ClientConfig
) -> None:
    topic = create_topic(target_cluster)
    with closing(TransactionalWriter(client, topic, lambda: False)) as writer:
        with pytest.raises(FencedError):
            writer.claim(30)
        with pytest.raises(FencedError):
            writer.write(TopicPartition(topic, 0), _batch([(b"k", b"v")]), 1, 30)
    assert read_partition(target_cluster, topic) == []


def test_refused_records_leave_the_writer_usable(
    target_cluster: KafkaCluster, client: ClientConfig
) -> None:
    topic = create_topic(target_cluster, config={"max.message.bytes": "1000"})
    tp = TopicPartition(topic, 0)
    with closing(TransactionalWriter(client, topic)) as writer:
        writer.claim(30)
        with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
            writer.write(tp, _batch([(b"k", b"x" * 2000)]), 1, 30)
        writer.write(tp, _batch([(b"k", b"small")]), 1, 30)
        writer.write(tp, _batch([(b"k", b"next")]), 1, 30)
    found = read_topic(client, topic, 1, 30)
    assert [record.value for record in found] == [b"small", b"next"]


def test_a_write_whose_commit_is_refused_is_not_taken_for_the_next_one(
    target_cluster: KafkaCluster, client: ClientConfig
) -> None:
    topic = create_topic(target_cluster)
    tp, asked = TopicPartition(topic, 0), itertools.count(1)

    def may_write() -> bool:
        if next(asked) == 3:  # after the claim and the begin: the records are there
            assert writer._identity is not None
            writer._end(writer._identity, commit=False)  # so the broker refuses to commit
        return True

    with closing(TransactionalWriter(client, topic, may_write)) as writer:
        writer.claim(30)
        with pytest.raises(BrokerError, match="INVALID_TXN_STATE"):
            writer.write(tp, _batch([(b"k", b"refused")]), 1, 30)
        assert writer.must_claim
        writer.claim(30)
        writer.write(tp, _batch([(b"k", b"next")]), 1, 30)
    found = read_topic(client, topic, 1, 30)
    assert [record.value for record in found] == [b"next"]


# -- status ----------------------------------------------------------------------------------------


def test_statuses_come_back(client: ClientConfig) -> None:
    topic = unique_name("status")
    with status_store(client, topic) as writer, status_store(client, topic) as reader:
        writer.put_connector("c-1", StoredStatus("RUNNING", "w:1", 7, None, "4.3.1"))
        writer.put_task("c-1", 1, StoredStatus("FAILED", "w:1", 7, "why", "4.3.1"))
        writer.put_task("c-1", 0, StoredStatus("RUNNING", "w:1", 7))
        writer.put_topic("t.x", "c-1", 0, 1700000000000)
        writer.flush(10)
        wait_for(lambda: reader.topics("c-1") and len(reader.tasks("c-1")) == 2, within=30)
        wait_for(lambda: reader.connector("c-1") is not None, within=30)
        for store in (writer, reader):
            assert store.topics("c-1") == {"t.x"}
            assert store.connector("c-1") == StoredStatus("RUNNING", "w:1", 7, None, "4.3.1")
            assert list(store.tasks("c-1")) == [0, 1]
            assert store.tasks("c-1")[1] == StoredStatus("FAILED", "w:1", 7, "why", "4.3.1")
        writer.forget_task("c-1", 1)
        writer.flush(10)
        assert list(writer.tasks("c-1")) == [0]
        writer.forget("c-1")
        writer.flush(10)
        assert (writer.connector("c-1"), writer.tasks("c-1"), writer.topics("c-1")) == (
            None,
            {},
            set(),
        )
        wait_for(lambda: reader.connector("c-1") is None, within=30)


def test_topics_are_reset_that_were_not_read_back_yet(client: ClientConfig) -> None:
    with status_store(client, unique_name("status")) as store:
        store.put_topic("t.x", "c-1", 0, 1700000000000)
        store.reset_topics("c-1")
        store.flush(10)
        assert store.topics("c-1") == set()


# -- offsets ---------------------------------------------------------------------------------------


def test_offsets_are_listed_changed_and_deleted(
    target_cluster: KafkaCluster, client: ClientConfig
) -> None:
    topic = create_topic(target_cluster, partitions=3, config={"cleanup.policy": "compact"})
    offsets = ConnectorOffsets(client, topic, 3)
    one, two = (
        {"cluster": "a", "partition": 0, "topic": "t"},
        {"cluster": "a", "partition": 1, "topic": "t"},
    )
    offsets.write("c", [(one, {"offset": 5}), (two, {"offset": 6})])
    offsets.write("other", [(one, {"offset": 1})])
    offsets.write("c", [(one, {"offset": 7}), (two, None), (one, {"offset": 8})])
    assert offsets.list("c") == [(one, {"offset": 8})]
    assert offsets.list("other") == [(one, {"offset": 1})]
    keys = {r.key for at in range(3) for r in read_partition(target_cluster, topic, at)}
    assert encode_offset_key("c", "a", "t", 0) in keys


def test_keys_that_are_there_keep_their_bytes(
    target_cluster: KafkaCluster, client: ClientConfig
) -> None:
    topic = create_topic(target_cluster, config={"cleanup.policy": "compact"})
    odd = b'["c", {"topic":"t","partition":0,"cluster":"a"}]'
    produce(target_cluster, topic, [Produced(b'{"offset":3}', odd)])
    offsets = ConnectorOffsets(client, topic, 1)
    offsets.write("c", [({"cluster": "a", "partition": 0, "topic": "t"}, None)])
    assert offsets.list("c") == []
    assert [(r.key, r.value) for r in read_partition(target_cluster, topic)][-1] == (odd, None)
