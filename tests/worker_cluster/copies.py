"""What workers have left on the target: who wrote what, in which order, and what twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from sparkmirror.demo.reading import read_topic
from sparkmirror.embedded import KafkaCluster
from tests.handover.seams import repeated_at_seams
from tests.kafka.log_files import stored_batches


class Position(NamedTuple):
    """One record of the offsets topic: where a source partition stands, and who says so."""

    offset: int | None
    producer_id: int


def positions(
    cluster: KafkaCluster, offsets_topic: str, connector: str
) -> dict[tuple[str, int], list[Position]]:
    """All that were ever stored for a source connector, by source partition, in their order."""
    found: dict[tuple[str, int], list[Position]] = {}
    for at, records in read_topic(
        cluster.bootstrap_servers, offsets_topic, read_committed=False
    ).items():
        writers = _writers(cluster, offsets_topic, at)
        for record in records:
            name, partition = json.loads(record.content.key or b"[0, 0]")
            if name == connector:
                value = json.loads(record.content.value or b"{}")
                where = partition["topic"], partition["partition"]
                position = Position(value.get("offset"), writers[record.offset])
                found.setdefault(where, []).append(position)
    return found


def assert_positions_only_grow(found: dict[tuple[str, int], list[Position]]) -> None:
    """None is stored twice, none goes back, and who was followed by another writes no more."""
    for where, history in found.items():
        offsets = [-1 if each.offset is None else each.offset for each in history]
        back = [pair for pair in pairwise(offsets) if pair[1] <= pair[0]]
        assert not back, f"positions of {where}: {back} in {history[-20:]}"
        assert_no_writer_returns([each.producer_id for each in history], f"positions of {where}")


def assert_no_writer_returns(writers: Iterable[int], what: str) -> None:
    runs = [writer for writer, _ in groupby(writers)]
    assert len(runs) == len(set(runs)), f"{what}: producers came back: {runs}"


def repeated(cluster: KafkaCluster, topic: str, partition: int) -> list[int]:
    """How many records were copied once more each time another task began to write.

    Fails if records are missing or out of order, or if a task writes that had a successor.
    """
    values = read_topic(cluster.bootstrap_servers, topic, read_committed=False)[partition]
    numbers = [int((record.content.value or b"")[:10]) for record in values]
    assert [record.offset for record in values] == list(range(len(values)))
    writers = _writers(cluster, topic, partition)[: len(numbers)]
    assert_no_writer_returns(writers, f"{topic}-{partition}")
    return repeated_at_seams(numbers, _changes(writers))


def _changes(writers: Sequence[int]) -> list[int]:
    """Offsets at which another producer begins."""
    return [at + 1 for at, pair in enumerate(pairwise(writers)) if pair[0] != pair[1]]


def _writers(cluster: KafkaCluster, topic: str, partition: int) -> list[int]:
    """The producer id of every record, from the broker's disk."""
    batches = stored_batches(cluster, topic, partition)
    return [batch.producer_id for batch in batches for _ in range(batch.records)]
