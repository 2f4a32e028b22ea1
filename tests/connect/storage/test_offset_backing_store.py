"""Connect's offsets topic: read back from a fake broker, created and checked by a fake admin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from sparkmirror.batches.records import Record, encode
from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.storage.offset_backing_store import KafkaOffsetBackingStore, StoredPosition
from sparkmirror.connect.storage.storage_topics import (
    bring_up_storage_topic,
    configs_topic,
    offsets_topic,
    statuses_topic,
)
from sparkmirror.errors import ConfigError, KafkaError
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.mirror.records import encode_offset_key, encode_offset_value
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.admin import Admin, NewTopic, TopicSetting
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.protocol.error_codes import broker_error
from tests.connect.fakes import FakeAdmin
from tests.flows import NOWHERE, make_flow
from tests.wire.fake_broker import FETCH, Do, FakeCluster, once

NAME = "MirrorSourceConnector"
TOPIC = "mm2-offsets.a.internal"
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def target() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        yield cluster


@pytest.fixture
def store(tmp_path: Path, target: FakeCluster) -> KafkaOffsetBackingStore:
    flow = make_flow(tmp_path, target=target.bootstrap_servers)
    store = KafkaOffsetBackingStore(flow.worker, NAME, "a")
    store.partitions = 3
    return store


def write(target: FakeCluster, at: int, *rows: tuple[bytes | None, bytes | None]) -> None:
    records = [Record(delta, 0, key, value) for delta, (key, value) in enumerate(rows)]
    assert target.log(TOPIC, at).append(bytes(encode(records))).code == 0


def key(tp: TopicPartition, connector: str = NAME, cluster: str = "a") -> bytes:
    return encode_offset_key(connector, cluster, tp.topic, tp.partition)


def value(last_offset: int) -> bytes:
    return encode_offset_value(last_offset)


def loaded(store: KafkaOffsetBackingStore) -> dict[TopicPartition, int]:
    """The last offset copied of each partition."""
    return {tp: position.next_offset - 1 for tp, position in store.load().items()}


# -- reading --------------------------------------------------------------------------------------


def test_an_empty_topic(store: KafkaOffsetBackingStore) -> None:
    assert store.load() == {}


def test_the_newest_position_of_each_partition(
    store: KafkaOffsetBackingStore, target: FakeCluster
) -> None:
    write(target, 0, (key(T0), value(1)), (key(T1), value(5)))
    write(target, 0, (key(T0), value(2)))
    write(target, 2, (key(U0), value(7)))
    assert loaded(store) == {T0: 2, T1: 5, U0: 7}


def test_a_tombstone_takes_the_position_away_until_there_is_another(
    store: KafkaOffsetBackingStore, target: FakeCluster
) -> None:
    write(target, 0, (key(T0), value(1)), (key(T1), value(5)))
    write(target, 0, (key(T0), None), (key(T1), None), (key(T1), value(0)))
    assert loaded(store) == {T1: 0}


def test_a_tombstone_of_a_position_that_was_never_there(
    store: KafkaOffsetBackingStore, target: FakeCluster
) -> None:
    write(target, 0, (key(T0), None))
    assert store.load() == {}


def test_a_position_of_ours_says_which_log_it_is_of(
    store: KafkaOffsetBackingStore, target: FakeCluster
) -> None:
    known = Provenance(bytes(range(16)), ((3, 0),), 12)
    record = Record(0, 0, key(T0), value(9), known.encode())
    assert target.log(TOPIC, 0).append(bytes(encode([record]))).code == 0
    assert store.load() == {T0: StoredPosition(10, known)}


def test_offset_minus_one_is_the_start_if_we_wrote_it_and_no_position_otherwise(
    store: KafkaOffsetBackingStore, target: FakeCluster
) -> None:
    write(target, 0, (key(T1), value(-1)))
    record = Record(0, 0, key(T0), value(-1), Provenance().encode())
    assert target.log(TOPIC, 0).append(bytes(encode([record]))).code == 0
    assert store.load() == {T0: StoredPosition(0)}


def test_records_of_others_are_left_alone(
    store: KafkaOffsetBackingStore, target: FakeCluster
) -> None:
    write(
        target,
        0,
        (key(T0, connector="MirrorHeartbeatConnector"), value(1)),
        (key(T0, cluster="c"), value(1)),
        (b'["jdbc",{"table":"x"}]', b'{"offset":9}'),
        (b"not json", b"\xff"),
        (None, None),
        (key(T1), value(3)),
    )
    assert loaded(store) == {T1: 3}


def test_compaction_leaves_holes(store: KafkaOffsetBackingStore, target: FakeCluster) -> None:
    for last_offset in range(5):
        write(target, 0, (key(T0), value(last_offset)))
    log = target.log(TOPIC, 0)
    log.batches = [batch for batch in log.batches if batch.base_offset in (1, 4)]
    assert loaded(store) == {T0: 4}


def test_a_connection_that_breaks_is_survived(
    store: KafkaOffsetBackingStore, target: FakeCluster
) -> None:
    write(target, 0, (key(T0), value(1)))
    target.intercept(FETCH, once(Do(drop=True)))
    assert loaded(store) == {T0: 1}


def test_a_topic_that_cannot_be_read_says_why(
    store: KafkaOffsetBackingStore, target: FakeCluster
) -> None:
    write(target, 0, (key(T0), value(1)))
    target.intercept(FETCH, lambda _: Do(code=29))
    with pytest.raises(KafkaError, match=f"read topic '{TOPIC}' on 'b'.*TOPIC_AUTHORIZATION"):
        store.load()


# -- a topic of the connector's own ---------------------------------------------------------------

OWN = "mine"


@pytest.fixture
def own(tmp_path: Path, target: FakeCluster) -> KafkaOffsetBackingStore:
    target.create_topic(OWN, partitions=3)
    settings = {"a->b.offsets.storage.topic": OWN}
    flow = make_flow(tmp_path, settings, target=target.bootstrap_servers)
    store = KafkaOffsetBackingStore.of(flow.worker, flow.source)
    admin = FakeAdmin()
    for topic in (TOPIC, OWN):
        admin.add(topic, 3)
    store.prepare(cast("Admin", admin))
    return store


def write_own(target: FakeCluster, at: int, *rows: tuple[bytes | None, bytes | None]) -> None:
    records = [Record(delta, 0, key, value) for delta, (key, value) in enumerate(rows)]
    assert target.log(OWN, at).append(bytes(encode(records))).code == 0


def test_a_connectors_own_topic_counts_before_the_workers(
    own: KafkaOffsetBackingStore, target: FakeCluster
) -> None:
    assert (own.topic, own.partitions) == (OWN, 3)
    write(target, 0, (key(T0), value(1)), (key(T1), value(1)), (key(U0), value(1)))
    write_own(target, 0, (key(T1), value(7)))
    write_own(target, 1, (key(U0), None))
    assert {tp: found.next_offset for tp, found in own.load().items()} == {T0: 2, T1: 8}


def test_an_own_topic_that_is_not_there_yet_leaves_the_workers(
    tmp_path: Path, target: FakeCluster
) -> None:
    flow = make_flow(
        tmp_path, {"a->b.offsets.storage.topic": "later"}, target=target.bootstrap_servers
    )
    write(target, 0, (key(T0), value(1)))
    admin = FakeAdmin()
    admin.add(TOPIC, 3)
    store = KafkaOffsetBackingStore.of(flow.worker, flow.source)
    found = store.load_existing(cast("Admin", admin))
    assert {tp: position.next_offset for tp, position in found.items()} == {T0: 2}
    assert admin.created == []
    store.prepare(cast("Admin", admin))
    assert [(topic.name, topic.partitions) for topic in admin.created] == [("later", 25)]


# -- creating -------------------------------------------------------------------------------------


def test_a_missing_topic_is_created_compacted(store: KafkaOffsetBackingStore) -> None:
    admin = FakeAdmin()
    store.prepare(cast("Admin", admin))
    (created,) = admin.created
    assert (created.name, created.partitions, created.replication_factor) == (TOPIC, 25, 3)
    assert created.configs == {"cleanup.policy": "compact"}
    assert store.partitions == 25


def test_internal_topics_are_created_as_the_worker_keys_say(tmp_path: Path) -> None:
    settings = {
        "b.offset.storage.partitions": "4",
        "b.offset.storage.min.insync.replicas": "2",
        "b.config.storage.topic": "configs",
        "b.config.storage.replication.factor": "1",
        "b.status.storage.topic": "statuses",
        "b.status.storage.partitions": "2",
        "b.status.storage.segment.ms": "1000",
        "b.status.storage.replication.factor": "-1",
    }
    worker = make_flow(tmp_path, settings).worker
    admin = FakeAdmin()
    for topic in (offsets_topic(worker), configs_topic(worker), statuses_topic(worker)):
        bring_up_storage_topic(cast("Admin", admin), topic)
    compact = {"cleanup.policy": "compact"}
    assert admin.created == [
        NewTopic(TOPIC, 4, 3, {"min.insync.replicas": "2"} | compact),
        NewTopic("configs", 1, 1, compact),
        NewTopic("statuses", 2, -1, {"segment.ms": "1000"} | compact),
    ]


def test_the_topic_is_on_the_workers_own_cluster(
    store: KafkaOffsetBackingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, own = FakeAdmin(), FakeAdmin()
    monkeypatch.setattr("sparkmirror.connect.storage.storage_topics.Admin", lambda *_: own)
    store.prepare(cast("Admin", target), ClientConfig("elsewhere", NOWHERE))
    assert [topic.name for topic in own.created] == [TOPIC]
    assert (target.created, own.closed) == ([], True)


def test_a_topic_that_is_there_keeps_its_partitions(store: KafkaOffsetBackingStore) -> None:
    admin = FakeAdmin()
    admin.add(TOPIC, partitions=7)
    admin.settings[TOPIC] = [setting("compact")]
    store.prepare(cast("Admin", admin))
    assert admin.created == []
    assert store.partitions == 7


def test_a_topic_of_ours_that_would_forget_positions_is_put_right(
    store: KafkaOffsetBackingStore, caplog: pytest.LogCaptureFixture
) -> None:
    admin = FakeAdmin()
    admin.add(TOPIC)
    admin.settings[TOPIC] = [setting("delete")]
    store.prepare(cast("Admin", admin))
    assert [change.value for _, change in admin.config_changes] == ["compact"]
    assert f"'{TOPIC}' on 'b' has cleanup.policy=delete" in caplog.text


def test_a_topic_with_records_that_may_be_somebody_elses_is_refused(tmp_path: Path) -> None:
    worker = make_flow(tmp_path, {"b.offset.storage.topic": "orders"}).worker
    admin = FakeAdmin()
    admin.add("orders")
    admin.settings["orders"] = [setting("delete")]
    admin.ranges[TopicPartition("orders", 0)] = Range(0, 7)
    expected = r"'orders' on 'b' has cleanup\.policy=delete.*set cleanup\.policy=compact"
    with pytest.raises(ConfigError, match=expected):
        bring_up_storage_topic(cast("Admin", admin), offsets_topic(worker))
    assert admin.config_changes == []


def test_a_topic_that_cannot_be_created_says_what_to_do(store: KafkaOffsetBackingStore) -> None:
    admin = FakeAdmin()
    admin.refuses[TOPIC] = broker_error(f"create topic '{TOPIC}'", 38)
    with pytest.raises(KafkaError, match=r"INVALID_REPLICATION_FACTOR; set offset\.storage"):
        store.prepare(cast("Admin", admin))


def setting(policy: str) -> TopicSetting:
    return TopicSetting("cleanup.policy", policy, 1, read_only=False, sensitive=False)
