"""What goes on at the source while mirrors come and go: records are written, and a group reads."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer

from sparkmirror.demo.client import client_settings
from sparkmirror.demo.reading import read_topics
from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.group_offsets import ask_offsets, group_client
from tests.kafka.records import Feeder

_JOIN_SECONDS = 30.0
_COMMIT_SECONDS = 0.2


@contextmanager
def steady_load(
    cluster: KafkaCluster, topics: Sequence[str], partitions: int, *, per_second: int
) -> Iterator[None]:
    """Numbered records for every partition of every topic, `per_second` for each topic."""
    with ExitStack() as stack:
        for topic in topics:
            stack.enter_context(Feeder(cluster, topic, partitions, per_second=per_second))
        yield


def numbers_of(cluster: KafkaCluster, topics: Iterable[str]) -> dict[TopicPartition, list[int]]:
    """The numbers of all records, in the order of their offsets."""
    read = read_topics(cluster.bootstrap_servers, topics, read_committed=False)
    return {
        TopicPartition(topic, at): [int((record.content.value or b"")[:10]) for record in records]
        for topic, partitions in read.items()
        for at, records in partitions.items()
    }


class GroupMember:
    """Reads topics as the only member of a group, and commits all the time, from a thread."""

    def __init__(self, cluster: KafkaCluster, group: str, topics: Sequence[str]) -> None:
        settings = client_settings(
            cluster.bootstrap_servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=True,
            auto_commit_interval_ms=round(_COMMIT_SECONDS * 1000),
        )
        self.read = 0
        self._consumer = Consumer(settings)
        self._consumer.subscribe(list(topics))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"member of {group}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        # Closing commits what was read.
        with closing(self._consumer) as consumer:
            while not self._stop.is_set():
                self.read += len(consumer.consume(1000, timeout=_COMMIT_SECONDS))


class GroupWatch:
    """Looks where the group stands on the target; fails if it has ever gone back.

    Never a member of it: mirrors leave groups alone that have members.
    """

    def __init__(
        self, cluster: KafkaCluster, group: str, partitions: Iterable[TopicPartition]
    ) -> None:
        self._group = group
        self._client = group_client(cluster, group)
        self._partitions = list(partitions)
        self._seen: dict[TopicPartition, int] = {}
        self.look()

    def look(self) -> Mapping[TopicPartition, int]:
        """Its offset in every partition where it has one."""
        now = ask_offsets(self._client, self._partitions)
        back = {
            tp: (offset, now.get(tp))
            for tp, offset in self._seen.items()
            if now.get(tp, -1) < offset
        }
        assert not back, f"{self._group} went back on the target: {back}"
        self._seen = now
        return now

    def close(self) -> None:
        """Close its client."""
        self._client.close()
