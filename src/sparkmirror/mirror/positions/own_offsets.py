"""A connector's own offsets topic: `offsets.storage.topic` of a source connector (KIP-618).

Runs on: worker and executor. Pure. The topic is on the cluster that the connector's records go to,
and has the settings of the worker's own (`offset.storage.*`). Positions that a connector stored
before it had this topic are in the worker's topic, which is read too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from sparkmirror.config.clients import ProducerConfig
from sparkmirror.config.worker_config import WorkerConfig


class OffsetsSettings(Protocol):
    """The part of a connector's settings that is needed here."""

    @property
    def offsets_storage_topic(self) -> str | None: ...
    @property
    def producer(self) -> ProducerConfig: ...


def with_own_offsets(worker: WorkerConfig, connector: OffsetsSettings) -> WorkerConfig:
    """The worker with the offsets topic of `connector`; unchanged if that has no separate topic.

    Only the offsets topic, `client` and `producer` differ; use them for positions only.
    """
    topic, producer = connector.offsets_storage_topic, connector.producer
    is_same = topic == worker.offset_storage_topic and worker.client.is_same_cluster(
        producer.client
    )
    if topic is None or is_same:
        return worker
    return replace(worker, offset_storage_topic=topic, client=producer.client, producer=producer)
