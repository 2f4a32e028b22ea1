"""What a copy task gets over the control link: both clusters, settings, partitions.

Runs on: worker (writes it) and executor (reads it). Settings travel as the properties they came
from, with placeholders resolved, and are parsed again on arrival: no secret is in a Spark job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sparkmirror.config.findings import Findings, Settings
from sparkmirror.config.masking import provided_in, remember_provided
from sparkmirror.config.mirror_configs import SourceConfig, parse_source
from sparkmirror.config.worker_config import WorkerConfig, parse_worker
from sparkmirror.mirror.positions.own_offsets import with_own_offsets
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.types import TopicPartition


class AssignedPartition(NamedTuple):
    """One partition to copy. `next_offset` None: none is stored, auto.offset.reset decides."""

    source: TopicPartition
    target: TopicPartition
    next_offset: int | None
    # Which log the position is of; empty where that is not stored.
    provenance: Provenance = Provenance()


@dataclass(frozen=True, slots=True)
class CopyTaskConfig:
    """All that a copy task needs to start. An internal topic without a name is not written."""

    connector: SourceConfig
    worker: WorkerConfig
    offsets_partitions: int
    assigned: tuple[AssignedPartition, ...]
    offset_syncs_topic: str = ""
    offset_map_topic: str = ""


def encode_assigned(assigned: Iterable[AssignedPartition]) -> list[Any]:
    """As JSON: [source topic, target topic, partition, next offset, its provenance if known]."""
    return [
        [a.source.topic, a.target.topic, a.source.partition, a.next_offset, *_encode(a.provenance)]
        for a in assigned
    ]


def decode_assigned(rows: Iterable[Any]) -> tuple[AssignedPartition, ...]:
    """The reverse."""
    return tuple(
        AssignedPartition(
            TopicPartition(source, partition),
            TopicPartition(target, partition),
            next_offset,
            _decode(*provenance),
        )
        for source, target, partition, next_offset, *provenance in rows
    )


def _encode(provenance: Provenance) -> list[Any]:
    topic_id, epochs, target_offset = provenance
    if provenance == Provenance():
        return []
    return [topic_id.hex() if topic_id else None, epochs, target_offset]


def _decode(
    topic_id: str | None = None, epochs: Iterable[Any] = (), target_offset: int | None = None
) -> Provenance:
    rows = tuple((epoch, first) for epoch, first in epochs)
    return Provenance(bytes.fromhex(topic_id) if topic_id else None, rows, target_offset)


def start_message(
    connector_props: Mapping[str, str],
    worker_props: Mapping[str, str],
    offsets_partitions: int,
    assigned: Iterable[AssignedPartition],
    *,
    offset_syncs_topic: str = "",
    offset_map_topic: str = "",
) -> LinkMessage:
    """The worker's response to a task that has connected."""
    return {
        "type": "start",
        "provided": provided_in([*connector_props.values(), *worker_props.values()]),
        "connector": dict(connector_props),
        "worker": dict(worker_props),
        "offsets_partitions": offsets_partitions,
        "assigned": encode_assigned(assigned),
        "offset_syncs_topic": offset_syncs_topic,
        "offset_map_topic": offset_map_topic,
    }


def parse_start(message: LinkMessage) -> CopyTaskConfig:
    """The task's reading of it."""
    for value in message.get("provided", ()):
        remember_provided(value)
    findings = Findings("the worker's start message")
    worker_settings = Settings(message["worker"], findings)
    connector = parse_source(Settings(message["connector"], findings), worker_settings)
    worker = with_own_offsets(parse_worker(worker_settings, connector.target_alias), connector)
    findings.raise_errors()
    return CopyTaskConfig(
        connector=connector,
        worker=worker,
        offsets_partitions=int(message["offsets_partitions"]),
        assigned=decode_assigned(message["assigned"]),
        offset_syncs_topic=str(message.get("offset_syncs_topic", "")),
        offset_map_topic=str(message.get("offset_map_topic", "")),
    )
