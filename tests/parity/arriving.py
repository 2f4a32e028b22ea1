"""Waiting until a target holds what it should, by the end offsets of its partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from confluent_kafka import Consumer, KafkaException, TopicPartition

from sparkmirror.demo.seed import SeededTopic
from tests.clusters import wait_for

_ANSWER_SECONDS = 30.0

# (topic, partition) -> offset that the next record will get
Ends = Mapping[tuple[str, int], int]


def expected_ends(
    topics: Iterable[SeededTopic], remote: Callable[[str], str]
) -> dict[tuple[str, int], int]:
    """One offset per record: true without transactions, where nothing is deleted."""
    return {
        (remote(topic.name), at): count for topic in topics for at, count in topic.records.items()
    }


def list_ends(bootstrap: str, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """End offsets; -1 for a partition that is not there yet."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "ends", "log_level": 2}
    with closing(Consumer(settings)) as consumer:
        return {where: _end(consumer, where) for where in partitions}


def wait_for_ends(
    bootstrap: str, expected: Ends, *, within: float, describe: Callable[[], str]
) -> None:
    """Return once every partition has at least the records it should have."""
    found: dict[tuple[str, int], int] = {}

    def have_arrived() -> bool:
        found.update(list_ends(bootstrap, expected))
        return all(found[where] >= end for where, end in expected.items())

    def show() -> str:
        lacking = {
            where: (end, found[where]) for where, end in expected.items() if found[where] < end
        }
        return f"expected and found ends: {lacking}; {describe()}"

    wait_for(have_arrived, within=within, describe=show)


def _end(consumer: Consumer, where: tuple[str, int]) -> int:
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(*where), _ANSWER_SECONDS)[1])
    except KafkaException:
        return -1
