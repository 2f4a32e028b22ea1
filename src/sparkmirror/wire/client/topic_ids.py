"""Topic ids (KIP-516), and when to believe that a topic is another one under the same name.

Runs on: executor and worker, on the event loop's thread. Brokers learn of a recreation one after
the other, so metadata may alternate between the old and the new topic for a while, in either
order: a broker that lags behind may also respond after a fresh one. Each wrong change would copy a
topic again, or with auto.offset.reset=latest skip records. So another id counts only once several
responses in a row have named it, from brokers chosen at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Responses in a row that name the new id, and the time they span at least.
CONFIRM_RESPONSES = 3
CONFIRM_SECONDS = 1.0


@dataclass(slots=True)
class Doubt:
    """An id that is not the known one, since when it is seen, and how often."""

    topic_id: bytes
    since: float
    responses: int = 0


class TopicIds(dict[str, bytes]):
    """The id of each topic, as far as it is believed."""

    def __init__(self) -> None:
        super().__init__()
        self._doubts: dict[str, Doubt] = {}

    @property
    def are_in_doubt(self) -> bool:
        """Whether another id was seen that is not believed yet."""
        return bool(self._doubts)

    def learn(self, found: Mapping[str, bytes], now: float) -> set[str]:
        """Take the ids of a response. Returns topics of which it may be wrong: to be ignored."""
        return {topic for topic, topic_id in found.items() if not self._learn(topic, topic_id, now)}

    def _learn(self, topic: str, topic_id: bytes, now: float) -> bool:
        is_known = self.get(topic, topic_id) == topic_id
        if not is_known and not self._confirm(topic, topic_id, now):
            return False
        self[topic] = topic_id
        self._doubts.pop(topic, None)
        return True

    def _confirm(self, topic: str, topic_id: bytes, now: float) -> bool:
        doubt = self._doubts.get(topic)
        if doubt is None or doubt.topic_id != topic_id:
            doubt = self._doubts[topic] = Doubt(topic_id, now)
        doubt.responses += 1
        has_lasted = now - doubt.since >= CONFIRM_SECONDS
        return has_lasted and doubt.responses >= CONFIRM_RESPONSES
