"""Leaders, topic ids and addresses of brokers, and when to ask the cluster for them again.

Runs on: executor and worker, on the event loop's thread. Requested when it is old
(metadata.max.age.ms), or when a response shows that it is wrong: at once the first time, then less
and less often (KIP-580). Listeners are notified of each response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sparkmirror.config.clients import ClientConfig
from sparkmirror.retry import RetryPolicy
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.deleted_topics import DeletedTopics
from sparkmirror.wire.client.leaders import Leader, MetadataListener, merge_leaders
from sparkmirror.wire.client.topic_ids import TopicIds
from sparkmirror.wire.client.wanted_topics import WantedTopics
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.net.outages import BrokerAddress
from sparkmirror.wire.protocol import messages
from sparkmirror.wire.protocol.api_versions import METADATA

# A broker that has not responded by then may be frozen: another one is asked.
PATIENCE_SECONDS = 5.0
BOOTSTRAP = -1  # first id of the addresses in bootstrap.servers: -1, -2, ...


class Metadata:
    """The tracked topics of one cluster, as in its last responses."""

    def __init__(
        self,
        loop: EventLoop,
        config: ClientConfig,
        retries: RetryPolicy,
        find_connection: Callable[[], Connection | None],
    ) -> None:
        """`find_connection` returns any connection that is ready, or opens one."""
        self._loop = loop
        self._config = config
        self._retries = retries
        self._find_connection = find_connection
        self.listeners: list[MetadataListener] = []
        self.leaders: dict[TopicPartition, Leader] = {}
        self.topic_ids = TopicIds()
        self.deleted_topics = DeletedTopics()
        self.topic_errors: dict[str, int] = {}
        # The topics that listeners are notified about; None: all.
        self.news: frozenset[str] | None = None
        # By broker; bootstrap servers have ids of their own.
        self.addresses: dict[int, BrokerAddress] = {}
        for at, server in enumerate(config.bootstrap_servers):
            host, _, port = server.rpartition(":")
            self.addresses[BOOTSTRAP - at] = (host.strip("[]"), int(port))
        self._topics = WantedTopics()
        self._asked: frozenset[str] = frozenset()
        self._is_asking = False
        self._asked_at = float("-inf")
        self._due = 0.0
        self._failures = 0
        self._missed = False
        self._closed = False

    # -- what users of the cluster ask -----------------------------------------------------------

    def track(self, topics: Iterable[str]) -> None:
        """Keep metadata of these topics too."""
        if self._topics.add(topics):
            self._refresh_soon()

    def untrack(self, topics: Iterable[str]) -> None:
        """Forget these topics."""
        gone = self._topics.names.intersection(topics)
        if not gone:
            return
        self._topics.drop(gone)
        self.leaders = {tp: leader for tp, leader in self.leaders.items() if tp.topic not in gone}

    def knows(self, topic: str) -> bool:
        """True once a response was about `topic`: then a partition without a leader has none."""
        return topic in self._topics.looked_up

    def refresh(self, *topics: str) -> None:
        """Ask about these topics, or all, soon: at once the first time, with back-off then."""
        if topics:
            self._topics.doubt(topics)
        else:
            self._topics.doubt_all()
        self._refresh_soon()

    def mark_missed(self, topic: str) -> None:
        """A partition is needed that metadata lacks: refresh, less and less often."""
        self._missed = True
        self._topics.doubt([topic])
        self._refresh_soon()

    def learn_address(self, node: int, host: str, port: int) -> None:
        """Another response, about a coordinator, names the address of `node`."""
        self.addresses[node] = (host, port)

    # -- from the network client -----------------------------------------------------------------

    def notify(self, news: frozenset[str] | None) -> None:
        """Notify listeners of changes: to these topics, or (None) to any."""
        self.news = news
        for listener in self.listeners:
            listener.on_metadata()

    def tick(self) -> None:
        """Once a second: ask another broker if one is silent, and when metadata is old."""
        if self._is_asking and self._loop.clock() - self._asked_at > PATIENCE_SECONDS:
            self._on_failure(self._asked)
        self.ask_if_due()

    def ask_if_due(self) -> None:
        """Send a request if there is something to ask, the time has come, and a broker is ready."""
        now = self._loop.clock()
        if self._closed or self._is_asking or now < self._due or not self._topics.names:
            return
        connection = self._find_connection()
        if connection is None:
            return
        asked = self._asked = self._topics.take(now, self._config.metadata_max_age_ms / 1000)
        self._due = self._topics.all_due
        if not asked:
            return
        self._is_asking = True
        self._asked_at = now
        version = connection.versions.choose(METADATA)
        connection.send(
            (METADATA.key, version),
            [messages.encode_metadata(sorted(asked), version)],
            lambda response, _: self._on_response(connection, response, version, asked),
            lambda _: self._on_failure(asked),
            self._config.request_timeout_ms / 1000,
            flexible=version >= METADATA.first_flexible,
        )

    def close(self) -> None:
        """Ask nothing more."""
        self._closed = True

    # -- inside ----------------------------------------------------------------------------------

    def _refresh_soon(self) -> None:
        now = self._loop.clock()
        due = max(now, self._asked_at + self._retries.wait(self._failures + 1))
        if due >= self._due > now:
            return  # thousands of partitions may ask for the same
        self._due = min(self._due, due)
        if self._due <= now:
            self.ask_if_due()
        else:
            self._loop.call_later(self._due - now, self.ask_if_due)

    def _on_failure(self, asked: frozenset[str]) -> None:
        self._is_asking = False
        self._failures += 1
        self._topics.doubt(asked)
        self._refresh_soon()

    def _on_response(
        self, connection: Connection, response: memoryview, version: int, asked: frozenset[str]
    ) -> None:
        self._is_asking = False
        view = messages.decode_metadata(response, version)
        if not view.nodes:
            self._on_failure(asked)
            return
        bootstrap = {node: address for node, address in self.addresses.items() if node < 0}
        self.addresses = {**bootstrap, **view.nodes}
        now = self._loop.clock()
        known = {tp.topic for tp in self.leaders}
        doubtful = self.deleted_topics.learn(connection, view, known, now)
        doubtful |= self.topic_ids.learn(view.topic_ids, now)
        self._merge(view, (asked - doubtful) & self._topics.names)
        open_topics = view.errors.keys() | view.leaderless | doubtful
        self._topics.doubt(open_topics)
        is_all_known = not open_topics & self._topics.names
        missed, self._missed = self._missed, False
        self._failures = 0 if is_all_known and not missed else self._failures + 1
        self.notify(asked)
        if self._topics.has_doubts:
            self._refresh_soon()

    def _merge(self, view: messages.MetadataView, asked: frozenset[str]) -> None:
        self.leaders = merge_leaders(self.leaders, view.leaders, asked)
        kept = {t: code for t, code in self.topic_errors.items() if t not in asked}
        self.topic_errors = kept | {t: code for t, code in view.errors.items() if t in asked}
        self._topics.looked_up |= asked
