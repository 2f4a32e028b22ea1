"""When a broker's "unknown topic" means that the topic was deleted.

Runs on: executor and worker, on the event loop's thread. A broker that has just been restarted
responds before it has the list of topics from its controller, with ZooKeeper for seconds: to it
every topic is unknown. A broker that knew a topic, on the same connection, and does not any more,
has learned that the topic is deleted. On brokers before 2.8 topics have no ids, and this is the
only sign that a topic of the same name, later, is another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.wire.protocol.messages import MetadataView

# A broker that never knew a topic is believed after so many seconds.
BELIEVE_SECONDS = 10.0


class DeletedTopics:
    """What the brokers of one cluster know, connection by connection."""

    def __init__(self) -> None:
        # How often each topic was recreated after a deletion.
        self.returns: Counter[str] = Counter()
        self._known: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()
        self._deleted: set[str] = set()
        self._doubted: dict[str, float] = {}

    def learn(
        self, connection: Connection, view: MetadataView, known: Iterable[str], now: float
    ) -> set[str]:
        """Take a response; return the `known` topics for which it must be ignored."""
        known_here = self._known.setdefault(connection, set())
        there = {tp.topic for tp in view.leaders}
        self.returns.update(there & self._deleted)
        self._deleted -= there
        for topic in there & self._doubted.keys():
            del self._doubted[topic]
        gone = {t for t, code in view.errors.items() if code == UNKNOWN_TOPIC_OR_PARTITION}
        self._deleted |= gone & known_here
        doubtful = {
            topic for topic in gone.intersection(known) - known_here if self._doubt(topic, now)
        }
        known_here |= there
        known_here -= gone
        return doubtful

    def _doubt(self, topic: str, now: float) -> bool:
        return now - self._doubted.setdefault(topic, now) < BELIEVE_SECONDS
