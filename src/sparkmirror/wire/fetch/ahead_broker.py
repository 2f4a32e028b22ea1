"""What is read ahead from one broker, and over which of several connections to it.

Runs on: executor and worker, on the event loop's thread. TCP lets each connection carry one window
per round trip, so a long line needs several.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.fetch_session import Ahead
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.line_estimate import LineEstimate

# Connections to one broker besides the session's.
FEWEST_CONNECTIONS, MOST_CONNECTIONS = 8, 40
BYTES_PER_CONNECTION = 512 << 10


@dataclass(slots=True, eq=False)
class AheadBroker:
    """What is in flight from one broker; `turn` holds its partitions, the next one first."""

    node: int
    line: LineEstimate
    turn: deque[Ahead] = field(default_factory=deque)
    # Bytes asked for, by connection.
    asked: list[int] = field(default_factory=lambda: [0] * (MOST_CONNECTIONS + 1))
    # Whether the line has turned out to be short: nothing more is read ahead.
    is_short: bool = False

    @property
    def held_bytes(self) -> int:
        """Asked for, or kept."""
        return sum(ahead.reads.bytes for ahead in self.turn)

    def choose_connection(
        self, cluster: NetworkClient, window: int
    ) -> tuple[int, Connection] | None:
        """The least busy connection; that of the session only while there is no other.

        While others are being opened, each takes its share of `window` only: what is asked of the
        first one that is ready would come through it alone, however many there are by then.
        """
        count = min(max(window // BYTES_PER_CONNECTION, FEWEST_CONNECTIONS), MOST_CONNECTIONS)
        opened = [(index, cluster.connection(self.node, index)) for index in range(1, count + 1)]
        ready = [(index, connection) for index, connection in opened if connection is not None]
        if not ready and (session := cluster.connection(self.node)) is not None:
            ready = [(0, session)]
        best = min(ready, key=lambda each: self.asked[each[0]], default=None)
        if best is None or self.asked[best[0]] < max(window // count, BYTES_PER_CONNECTION):
            return best
        return None if any(cluster.is_opening(self.node, index) for index, _ in opened) else best
