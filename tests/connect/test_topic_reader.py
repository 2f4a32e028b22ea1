"""Internal topics are read as committed: what an aborted transaction wrote does not count."""

from __future__ import annotations

import struct

from crc32c import crc32c

from sparkmirror.batches.records import Record, encode
from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.topic_reader import TopicReader
from sparkmirror.types import TopicPartition
from sparkmirror.wire.buffers import BufferPool
from sparkmirror.wire.fetcher import Records


def transactional(batch: bytearray, producer_id: int) -> bytearray:
    struct.pack_into(">h", batch, 21, struct.unpack_from(">h", batch, 21)[0] | 16)
    struct.pack_into(">qhi", batch, 43, producer_id, 0, 0)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return batch


def test_records_of_aborted_transactions_are_left_out() -> None:
    reader = TopicReader(ClientConfig("b", ("127.0.0.1:1",)), "t", 1)
    tp = TopicPartition("t", 0)
    assert reader.on_out_of_range(tp, None, 0, 5) == 0
    batch = transactional(encode([Record(0, 0, b"k", b"aborted")]), 7)
    lease = BufferPool(0).lease(1)
    reader.on_records(Records(tp, 0, memoryview(batch), lease, [(7, 0)]))
    assert reader.records == []
