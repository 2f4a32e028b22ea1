"""Writes small records to internal topics from a copy task, without ever stopping the copy.

Runs on: executor, on the copy loop's thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.batches.records import Record, encode
from sparkmirror.config.clients import ProducerConfig
from sparkmirror.errors import BrokerError, DeniedError, KafkaError, describe_error
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.produce.producer import KafkaProducer
from sparkmirror.wire.produce.record_accumulator import ProducerBatch, Replacement

log = logging.getLogger(__name__)

TopicRecord = tuple[bytes, bytes]
OnWritten = Callable[[], None]
WITHOUT_SYNCS = "offsets of records copied until then are translated less exactly"


class InternalTopicWriter:
    """One cluster's internal topics, all of which have one partition.

    What the cluster rejects is logged and given up: these records help others to translate
    offsets, and are no reason to stop copying.
    """

    def __init__(
        self, cluster: NetworkClient, config: ProducerConfig, without: Mapping[str, str]
    ) -> None:
        """`without`: for each topic, what happens as long as it cannot be written."""
        self._without = without
        self._producer = KafkaProducer(
            cluster, self, acks=-1, request_timeout_ms=config.request_timeout_ms
        )
        self._rejected: set[str] = set()

    @property
    def idle(self) -> bool:
        """True when everything was stored or given up."""
        return self._producer.idle

    def write(self, topic: str, rows: Sequence[TopicRecord], on_done: OnWritten) -> None:
        """Write one batch; `on_done` is called when it is stored or given up."""
        now_ms = int(time.time() * 1000)
        records = [Record(at, now_ms, key, value) for at, (key, value) in enumerate(rows)]
        batch = ProducerBatch(encode(records), len(records), None, on_done, self)
        self._producer.append(TopicPartition(topic, 0), [batch])
        self._producer.send_ready()

    # -- from the producer -------------------------------------------------------------------------

    def on_stored(self, tp: TopicPartition, batch: ProducerBatch[OnWritten]) -> None:
        """Report it to the caller of `write`."""
        self._rejected.discard(tp.topic)
        batch.payload()

    def on_rejected(
        self, tp: TopicPartition, batch: ProducerBatch[OnWritten], error: BrokerError
    ) -> Replacement:
        """Given up; logged once until the topic accepts something again."""
        self._log_failure(tp.topic, error)
        batch.payload()
        return []

    def on_blocked(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """It waits; the copy does not. The copy itself reports a cluster that is gone."""
        if isinstance(error, DeniedError):
            self._log_failure(tp.topic, error)
        elif error is not None:
            log.debug("'%s' waits: %s", tp.topic, error)

    def _log_failure(self, topic: str, error: KafkaError) -> None:
        if topic not in self._rejected:
            self._rejected.add(topic)
            log.warning("%s", describe_error(error, WITHOUT_SYNCS, if_denied=self._without[topic]))
