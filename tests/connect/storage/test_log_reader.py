"""An internal topic is followed: each record once, whatever happens to the topic in between."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator, Sequence

import pytest
from crc32c import crc32c

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.records import Record, encode
from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.storage.log_reader import LogReader
from sparkmirror.errors import BatchError, BrokerError, TransportError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.fetcher import Records
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.net.buffer_pool import BufferPool
from tests.batches.sources import message, wrapper
from tests.wire.fake_broker import FETCH, METADATA, Do, FakeCluster, Request, once

TOPIC = "followed"
T0, T1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
SECONDS = 10.0
TOO_SHORT = 2.0


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        yield cluster


@pytest.fixture
def follower(cluster: FakeCluster) -> Iterator[LogReader]:
    follower = LogReader(ClientConfig("b", cluster.bootstrap_servers), TOPIC, 2)
    yield follower
    follower.close()


def values(records: Sequence[Record]) -> list[bytes]:
    return [record.value or b"" for record in records]


class Switch:
    """An interceptor that acts while it is on."""

    def __init__(self, action: Do, after: int = 0) -> None:
        self._action = action
        self._left = after
        self.is_on = True

    def __call__(self, _: Request) -> Do | None:
        self._left -= 1
        return self._action if self.is_on and self._left < 0 else None


def test_each_record_comes_once(cluster: FakeCluster, follower: LogReader) -> None:
    assert values(follower.catch_up(SECONDS)) == []
    cluster.write(T0, [b"a", b"b"])
    cluster.write(T1, [b"x"])
    assert sorted(values(follower.catch_up(SECONDS))) == [b"a", b"b", b"x"]
    cluster.write(T0, [b"c"])
    assert values(follower.catch_up(SECONDS)) == [b"c"]
    assert values(follower.catch_up(SECONDS)) == []
    assert not follower.restarted


def test_passes_do_not_become_slower(follower: LogReader) -> None:
    for _ in range(8):
        follower.catch_up(SECONDS)
    assert follower._cluster.metadata._failures == 0, "metadata is asked for less and less often"


def test_nothing_is_fetched_when_nothing_is_new(cluster: FakeCluster, follower: LogReader) -> None:
    cluster.write(T0, [b"a"])
    follower.catch_up(SECONDS)
    before = len(cluster.sent(FETCH))
    assert values(follower.catch_up(SECONDS)) == []
    assert len(cluster.sent(FETCH)) == before


def test_a_topic_that_does_not_exist_yet_is_empty(
    cluster: FakeCluster, follower: LogReader
) -> None:
    cluster.delete_topic(TOPIC)
    assert values(follower.catch_up(SECONDS)) == []
    cluster.create_topic(TOPIC, partitions=2)
    cluster.write(T1, [b"x"])
    assert values(follower.catch_up(SECONDS)) == [b"x"]
    assert not follower.restarted


def test_a_topic_that_must_exist_is_waited_for(cluster: FakeCluster) -> None:
    follower = LogReader(ClientConfig("b", cluster.bootstrap_servers), "nowhere", must_exist=True)
    with pytest.raises(TransportError, match=r"'nowhere' on 'b'.*UNKNOWN_TOPIC_OR_PARTITION"):
        follower.catch_up(TOO_SHORT)
    follower.close()


def test_a_topic_that_was_created_anew_is_read_from_its_start(
    cluster: FakeCluster, follower: LogReader
) -> None:
    cluster.write(T0, [b"old", b"older"])
    follower.catch_up(SECONDS)
    cluster.create_topic(TOPIC, partitions=2)
    # More than before: the old position is inside the new log.
    cluster.write(T0, [b"a", b"b", b"c"])
    assert values(follower.catch_up(SECONDS)) == [b"a", b"b", b"c"]
    assert follower.restarted
    assert values(follower.catch_up(SECONDS)) == []
    assert not follower.restarted


def test_records_deleted_before_they_were_read_let_it_start_anew(
    cluster: FakeCluster, follower: LogReader
) -> None:
    cluster.write(T0, [b"a"])
    follower.catch_up(SECONDS)
    cluster.write(T0, [b"lost"])
    cluster.write(T0, [b"c"])
    log = cluster.log(TOPIC)
    log.batches, log.start_offset = log.batches[2:], 2
    assert values(follower.catch_up(SECONDS)) == [b"c"]
    assert follower.restarted


def test_records_deleted_after_they_were_read_do_not_matter(
    cluster: FakeCluster, follower: LogReader
) -> None:
    cluster.write(T0, [b"a"])
    follower.catch_up(SECONDS)
    cluster.write(T0, [b"b"])
    log = cluster.log(TOPIC)
    log.batches, log.start_offset = log.batches[1:], 1
    assert values(follower.catch_up(SECONDS)) == [b"b"]
    assert not follower.restarted


def test_a_call_that_takes_too_long_loses_and_repeats_nothing(
    cluster: FakeCluster, follower: LogReader
) -> None:
    # One fetch brings one of these, so the second fetch fails half-way.
    large = [bytes([at]) * (1 << 20) for at in range(3)]
    for value in large:
        cluster.write(T0, [value])
    broken = Switch(Do(code=56), after=1)
    cluster.intercept(FETCH, broken)
    with pytest.raises(TransportError, match=r"read topic 'followed'.*KAFKA_STORAGE_ERROR"):
        follower.catch_up(TOO_SHORT)
    broken.is_on = False
    cluster.write(T0, [b"more"])
    assert values(follower.catch_up(SECONDS)) == [*large, b"more"]
    assert not follower.restarted


def test_a_rewind_is_told_even_if_the_call_that_saw_it_failed(
    cluster: FakeCluster, follower: LogReader
) -> None:
    cluster.write(T0, [b"old"])
    follower.catch_up(SECONDS)
    cluster.create_topic(TOPIC, partitions=2)
    cluster.write(T0, [b"new"])
    broken = Switch(Do(code=56))
    cluster.intercept(FETCH, broken)
    with pytest.raises(TransportError):
        follower.catch_up(2.0)
    broken.is_on = False
    assert values(follower.catch_up(SECONDS)) == [b"new"]
    assert follower.restarted


def test_a_topic_that_may_not_be_read_says_so_at_once(
    cluster: FakeCluster, follower: LogReader
) -> None:
    cluster.intercept(METADATA, lambda _: Do(code=29))
    began = time.monotonic()
    with pytest.raises(BrokerError, match=r"read topic 'followed' on 'b': TOPIC_AUTHORIZATION"):
        follower.catch_up(SECONDS)
    assert time.monotonic() - began < SECONDS / 2


def test_a_broken_connection_is_survived(cluster: FakeCluster, follower: LogReader) -> None:
    cluster.write(T0, [b"a"])
    cluster.intercept(FETCH, once(Do(drop=True)))
    assert values(follower.catch_up(SECONDS)) == [b"a"]


def test_brokers_that_restart_between_two_calls_are_survived(
    cluster: FakeCluster, follower: LogReader
) -> None:
    cluster.write(T0, [b"a"])
    follower.catch_up(SECONDS)
    cluster.stop_node(1)
    cluster.start_node(1)
    cluster.write(T0, [b"b"])
    assert values(follower.catch_up(SECONDS)) == [b"b"]


def test_it_gives_up_when_told_so(cluster: FakeCluster, follower: LogReader) -> None:
    cluster.write(T0, [b"a"])
    cluster.intercept(FETCH, lambda _: Do(code=56))
    threading.Timer(0.2, follower.cancel).start()
    with pytest.raises(TransportError, match="given up"):
        follower.catch_up(SECONDS)


def test_records_of_aborted_transactions_are_left_out() -> None:
    follower = LogReader(ClientConfig("b", ("127.0.0.1:1",)), TOPIC)
    assert follower.on_out_of_range(T0, None, Range(0, 5)) == 0
    batch = transactional(encode([Record(0, 0, b"k", b"aborted")]), 7)
    buffer = BufferPool(0).take(1)
    taken = follower.on_records(Records(T0, 0, memoryview(batch), buffer, [(7, 0)], 1))
    assert taken.next_offset == 1
    assert follower._records == []
    follower.close()


def _read_once(*batches: bytes) -> tuple[int, list[bytes]]:
    follower = LogReader(ClientConfig("b", ("127.0.0.1:1",)), TOPIC)
    try:
        follower.on_out_of_range(T0, None, Range(0, 5))
        view = memoryview(bytearray(b"".join(batches)))
        taken = follower.on_records(Records(T0, 0, view, BufferPool(0).take(1), [], 1))
        return taken.next_offset, values(follower._records)
    finally:
        follower.close()


def test_messages_of_old_formats_are_read() -> None:
    old = [message(Record(at, 5, b"k", b"%d" % at), magic) for at, magic in ((3, 0), (4, 1))]
    wrapped = wrapper([Record(at, 5, None, b"%d" % at) for at in (5, 6)], 1, Codec.GZIP)
    assert _read_once(*old, wrapped) == (7, [b"3", b"4", b"5", b"6"])


@pytest.mark.parametrize(
    ("at", "data", "problem"),
    [
        pytest.param(0, b"\xff" * 8, "negative offset", id="negative offset"),
        pytest.param(0, b"\x7f" + b"\xff" * 7, "leads too far", id="offset too large"),
        pytest.param(16, b"\x03", "unknown magic 3", id="unknown format"),
    ],
)
def test_batches_that_make_no_sense_are_refused(at: int, data: bytes, problem: str) -> None:
    batch = encode([Record(0, 0, b"k", b"v")])
    batch[at : at + len(data)] = data
    batch[22] |= 32  # those that are passed over, too
    with pytest.raises(BatchError, match=problem):
        _read_once(bytes(batch))


def test_records_of_gigabytes_are_refused() -> None:
    large = encode([Record(0, 0, b"k", bytes(40 << 20))], Codec.ZSTD)
    with pytest.raises(BatchError, match="more than the allowed 33554432 bytes"):
        _read_once(bytes(large))


def transactional(batch: bytearray, producer_id: int) -> bytearray:
    struct.pack_into(">h", batch, 21, struct.unpack_from(">h", batch, 21)[0] | 16)
    struct.pack_into(">qhi", batch, 43, producer_id, 0, 0)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return batch
