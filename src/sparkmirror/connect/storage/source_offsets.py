"""The source offsets that Connect stores for heartbeats and checkpoints; they are always 0.

Runs on: worker. Nothing reads them; they make the offsets topic hold what MirrorMaker 2 writes
there. The copy tasks write the positions of the copy themselves.
"""

from __future__ import annotations

import threading
import time

from sparkmirror.config.clients import ProducerConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.mirror.permissions import NO_TRACE
from sparkmirror.mirror.positions.partitioner import partition_for_key
from sparkmirror.mirror.records import encode_offset_value
from sparkmirror.spark.link.lease import Lender, for_ever

OFFSET = encode_offset_value(0)


class SourceOffsets:
    """Keys whose records were stored since the last `store`; for any thread.

    `noted`: the number of records stored since the start. `own`: a producer for the worker's
    cluster, if `writer`, which writes the records themselves, writes to another one.
    """

    def __init__(
        self, writer: RecordProducer, topic: str, own: RecordProducer | None = None
    ) -> None:
        self._writer = writer
        self._own = own
        self._topic = topic
        self._lock = threading.Lock()
        self._keys: dict[bytes, None] = {}
        self.noted = 0

    def note(self, key: bytes) -> None:
        """A record with this key was stored."""
        with self._lock:
            self._keys[key] = None
            self.noted += 1

    def store(self, partitions: int) -> None:
        """Write the noted keys to the offsets topic, which has this number of partitions.

        Raises:
            KafkaError: the writer is closed, or died.
        """
        with self._lock:
            keys, self._keys = self._keys, {}
        now_ms = time.time_ns() // 1_000_000
        by_partition: dict[int, list[tuple[bytes, bytes, int]]] = {}
        for key in keys:
            rows = by_partition.setdefault(partition_for_key(key, partitions), [])
            rows.append((key, OFFSET, now_ms))
        for partition, rows in by_partition.items():
            (self._own or self._writer).send(self._topic, partition, rows)

    def start(self) -> None:
        """Start the writer, if there is one for offsets."""
        if self._own is not None:
            self._own.start()

    def flush(self, seconds: float) -> bool:
        """Wait until all offsets are stored; return whether they are."""
        return (self._own or self._writer).flush(seconds)

    def close(self) -> None:
        """Close the writer, if there is one for offsets."""
        if self._own is not None:
            self._own.close()


def own_writer(
    worker: WorkerConfig, producer: ProducerConfig, name: str, lease: Lender = for_ever
) -> RecordProducer | None:
    """A writer for the worker's cluster, if the producer of the records writes to another."""
    if worker.client.is_same_cluster(producer.client):
        return None
    return RecordProducer(
        worker.producer, f"{name} offsets", {worker.offset_storage_topic: NO_TRACE}, lease
    )
