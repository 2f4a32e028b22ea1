"""What we know of one Kafka cluster, and our connections to its brokers.

Runs on: executor and worker, on the event loop's thread. Reconnects with back-off, refreshes
metadata when it is old or when somebody says that it is wrong. Retries of requests are decided by
their owners (fetcher, producer) from the table in error_codes.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import (
    AuthenticationError,
    KafkaError,
    TransportError,
    UnsupportedVersionError,
)
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.broker_link import BrokerConnection, check_open
from sparkmirror.wire.client.deleted_topics import DeletedTopics
from sparkmirror.wire.client.leaders import Leader, MetadataListener, merge_leaders
from sparkmirror.wire.client.retry_policies import REFUSED_LOGIN, RetryPolicies
from sparkmirror.wire.client.topic_ids import TopicIds
from sparkmirror.wire.client.wanted_topics import WantedTopics
from sparkmirror.wire.net.buffer_pool import BufferPool, PooledBuffer
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.net.idle import IdleConnections
from sparkmirror.wire.net.outages import OUTAGES, BrokerAddress
from sparkmirror.wire.net.stream import HungUp, Stream
from sparkmirror.wire.protocol import messages
from sparkmirror.wire.protocol.api_versions import METADATA, Api
from sparkmirror.wire.security import Security

log = logging.getLogger(__name__)

OpenStream = Callable[[str, int, int], Stream]
"""(host, port, how many attempts have failed) -> a stream that is being connected."""

# A broker that does not answer a metadata request by then may be frozen: another one is asked.
METADATA_PATIENCE_SECONDS = 5.0
# The same while no broker is connected: a frozen one accepts connections and says nothing.
CONNECT_PATIENCE_SECONDS = 2.0
# A login that is refused is logged again after this time.
SAY_AGAIN_SECONDS = 60.0
# Errors that another attempt cures only after somebody has changed something.
LASTING = (AuthenticationError, UnsupportedVersionError)
NEVER_REACHED = "; if that broker is up, correct the address that it tells (advertised.listeners)"
BOOTSTRAP = -1  # first id of the addresses in bootstrap.servers: -1, -2, ...


class NetworkClient:
    """Brokers, leaders and topic ids as of the last metadata answer; one connection per broker.

    Whoever wants several to the same broker numbers them: by `connection_index`.
    """

    def __init__(
        self,
        loop: EventLoop,
        config: ClientConfig,
        pool: BufferPool,
        open_stream: OpenStream | None = None,
        *,
        is_trial: bool = False,
    ) -> None:
        """Nothing is logged of a trial: whoever makes it tells how it ended."""
        self.loop = loop
        self.config = config
        self.pool = pool
        self.leaders: dict[TopicPartition, Leader] = {}
        self.topic_ids = TopicIds()
        self.deleted_topics = DeletedTopics()
        self.topic_errors: dict[str, int] = {}
        # Why a broker could not be reached; None again as soon as one answers.
        self.last_error: KafkaError | None = None
        self.listeners: list[MetadataListener] = []
        self.security = Security.of(config)
        self.retries = RetryPolicies.of(config)
        self._open_stream = open_stream or self._stream
        self._nodes: dict[int, tuple[str, int]] = {}
        # By (broker, connection index).
        self._links: dict[tuple[int, int], BrokerConnection] = {}
        # What the metadata answer that listeners hear of is about; None: everything.
        self.news: frozenset[str] | None = None
        self._topics = WantedTopics()
        self._asked: frozenset[str] = frozenset()
        self._refreshing = False
        self._last_refresh = float("-inf")
        self._refresh_due = 0.0
        self._refresh_failures = 0
        self._missed = False
        self._last_attempt = float("-inf")
        self._say_again = float("-inf")
        self._closed = False
        # Whether any broker has answered a request after the login, on a connection that is gone.
        self._has_served = False
        self._is_trial = is_trial
        self._idle = IdleConnections(config)
        for at, server in enumerate(config.bootstrap_servers):
            host, _, port = server.rpartition(":")
            self._nodes[BOOTSTRAP - at] = (host.strip("[]"), int(port))
        self._tick()

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
        """True once a metadata answer was about `topic`: a partition without a leader has none."""
        return topic in self._topics.answered

    def refresh(self, *topics: str) -> None:
        """Ask about these topics, or all, soon: at once the first time, with back-off then."""
        if topics:
            self._topics.doubt(topics)
        else:
            self._topics.doubt_all()
        self._refresh_soon()

    def mark_missed(self, topic: str) -> None:
        """Somebody needs a partition that metadata lacks: look again, less and less often."""
        self._missed = True
        self._topics.doubt([topic])
        self._refresh_soon()

    def _refresh_soon(self) -> None:
        now = self.loop.clock()
        soonest = self._last_refresh + self.retries.requests.wait(self._refresh_failures + 1)
        due = max(now, soonest)
        if due >= self._refresh_due > now:
            return  # thousands of partitions may ask for the same
        self._refresh_due = min(self._refresh_due, due)
        if self._refresh_due <= now:
            self._maybe_refresh(now)
        else:
            self.loop.call_later(self._refresh_due - now, self._wake)

    def connection(self, node: int, connection_index: int = 0) -> Connection | None:
        """The connection to `node` if it is ready; else one is opened and listeners hear of it."""
        link = self._links.get((node, connection_index))
        if link is None:
            link = self._links[node, connection_index] = BrokerConnection()
        if link.ready:
            return link.connection
        if link.connection is None and self.loop.clock() >= link.not_before and not self._closed:
            self._connect(node, link)
        return None

    def is_opening(self, node: int, connection_index: int) -> bool:
        """Whether that connection is on its way and not ready yet."""
        link = self._links.get((node, connection_index))
        return link is not None and link.connection is not None and not link.ready

    def is_failing(self, node: int) -> bool:
        """True while the last attempt to reach `node`, or its connection, has failed."""
        return self.failures(node) > 0

    def failures(self, node: int) -> int:
        """How many attempts to reach `node` have failed since the last that did not."""
        link = self._links.get((node, 0))
        return 0 if link is None else link.failures

    def any_connection(self) -> Connection | None:
        """The least busy connection of all that are ready, or None while one is being opened.

        Answers come in order: behind a long poll, or at a frozen broker, a request waits.
        """
        links = self._links.values()
        ready = [link.connection for link in links if link.ready and link.connection is not None]
        if ready:
            even = self.topic_ids.are_in_doubt  # then no broker is to be asked more than others
            return min(ready, key=lambda each: (not even and each.in_flight, random.random()))
        if not any(link.connection for link in links) or self._is_slow_to_connect():
            self._connect_another()
        return None

    def _is_slow_to_connect(self) -> bool:
        return self.loop.clock() - self._last_attempt > CONNECT_PATIENCE_SECONDS

    def _connect_another(self) -> None:
        links = self._links
        untried = [n for n in self._nodes if (n, 0) not in links or not links[n, 0].connection]
        for node in random.sample(untried, len(untried)):
            self.connection(node)
            if links[node, 0].connection is not None:
                break

    def learn_address(self, node: int, host: str, port: int) -> None:
        """Somebody else than metadata told where `node` is."""
        self._nodes[node] = (host, port)

    def newest(self, api: Api) -> int:
        """The newest version of `api` that some broker speaks, once one has answered."""
        return max(link.versions.get(api.key, (0, -1))[1] for link in self._links.values())

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for link in list(self._links.values()):
            if link.connection is not None:
                link.connection.fail(TransportError(f"'{self.config.alias}' is being closed"))

    # -- connections -----------------------------------------------------------------------------

    def _stream(self, host: str, port: int, attempt: int) -> Stream:
        send, receive = self.config.send_buffer_bytes, self.config.receive_buffer_bytes
        return self.security.open_stream(host, port, attempt, send, receive)

    def _connect(self, node: int, link: BrokerConnection) -> None:
        self._last_attempt = self.loop.clock()
        host, port = self._nodes.get(node, ("", 0))
        if not host:  # a leader we know no address of: the next metadata answer will tell
            self.refresh()
            return
        try:
            stream = self._open_stream(host, port, link.failures)
        except KafkaError as error:
            self._on_closed(node, link, error)
            return
        link.connection = Connection(
            self.loop,
            stream,
            self.config.client_id,
            self.pool,
            on_open=lambda: self._handshake(node, link, host),
            on_closed=lambda error: self._on_closed(node, link, error),
        )
        connection = link.connection
        patience = self.retries.setup_timeouts.wait(link.failures + 1)
        self.loop.call_later(patience, lambda: check_open(connection, f"{host}:{port}", patience))

    def _handshake(self, node: int, link: BrokerConnection, host: str) -> None:
        """Learn which versions the broker speaks, then log in."""
        assert link.connection is not None
        connection, timeout = link.connection, self.config.request_timeout_ms / 1000

        def answered(answer: memoryview, _: PooledBuffer | None) -> None:
            connection.versions = link.versions = messages.decode_api_versions(answer)
            link.versions.require()
            authenticator = self.security.authenticator(host)
            if authenticator is None:
                self._on_ready(node, link)
            else:
                authenticator.start(connection, timeout, lambda: self._on_ready(node, link))

        # When it fails, the connection's own on_closed does what is needed.
        connection.send(messages.API_VERSIONS, [], answered, lambda _: None, timeout)

    def _on_ready(self, node: int, link: BrokerConnection) -> None:
        assert link.connection is not None
        link.open(link.connection)
        self.last_error = None
        OUTAGES.heard(self.config)
        for listener in self.listeners:
            listener.on_connected(node)
        self._maybe_refresh(self.loop.clock())

    def _on_closed(self, node: int, link: BrokerConnection, error: KafkaError) -> None:
        was_ready = link.ready
        self._has_served = self._has_served or link.has_served
        connection = link.close()
        if self._closed:
            return
        if was_ready and connection is not None and connection.was_idle:
            # Brokers close connections that nobody has used for ten minutes.
            log.debug("'%s', broker %d: %s", self.config.alias, node, error)
            return
        host, port = self._nodes.get(node, ("?", 0))
        refused = isinstance(error, LASTING)
        kind = type(error) if isinstance(error, LASTING) else TransportError
        hint = self._hint(connection) if isinstance(error, HungUp) and connection else ""
        if node >= 0 and not link.versions and not refused:
            hint = hint or NEVER_REACHED
        place = f"cluster '{self.config.alias}', broker {host}:{port}"
        self.last_error = kind(f"{place}: {error}{hint}")
        self._say(link, error, (host, port))
        link.failures += 1
        wait = self.retries.reconnects.wait(link.failures)
        if refused:
            wait = max(wait, REFUSED_LOGIN.wait(link.failures))
        link.not_before = self.loop.clock() + wait
        self.refresh()
        self.loop.call_later(wait, lambda: self._reconnect(node))

    def _hint(self, connection: Connection) -> str:
        """What a broker may mean that hung up; nothing if one has served us as we are."""
        has_served = self._has_served or any(link.has_served for link in self._links.values())
        return "" if has_served else self.security.hint(connection)

    def _say(self, link: BrokerConnection, error: KafkaError, address: BrokerAddress) -> None:
        """The first failure, and that a login is still refused; of a silent cluster no more."""
        now = self.loop.clock()
        refused = isinstance(error, AuthenticationError)
        is_new = link.failures == 0 or (refused and now >= self._say_again)
        if self._is_trial or OUTAGES.is_told(self.config, error, address, self._nodes.values()):
            return
        if is_new:
            log.warning("%s", self.last_error)
            self._say_again = now + SAY_AGAIN_SECONDS

    def _reconnect(self, node: int) -> None:
        """Only brokers that somebody needs are connected again: listeners ask when they want it."""
        if not self._closed:
            self._tell(None)
            self._wake()

    # -- metadata --------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Once a second: overdue requests, old metadata."""
        if self._closed:
            return
        now = self.loop.clock()
        for link in list(self._links.values()):
            if link.connection is not None:
                link.connection.fail_if_overdue(now)
        self._idle.close(now, [link.connection for link in self._links.values() if link.ready])
        if self._refreshing and now - self._last_refresh > METADATA_PATIENCE_SECONDS:
            self._refresh_failed(self._asked)
        self._maybe_refresh(now)
        self.loop.call_later(1.0, self._tick)

    def _wake(self) -> None:
        if not self._closed:
            self._maybe_refresh(self.loop.clock())

    def _maybe_refresh(self, now: float) -> None:
        if self._closed or self._refreshing or now < self._refresh_due or not self._topics.names:
            return
        connection = self.any_connection()
        if connection is None:
            return
        asked = self._asked = self._topics.take(now, self.config.metadata_max_age_ms / 1000)
        self._refresh_due = self._topics.all_due
        if not asked:
            return
        self._refreshing = True
        self._last_refresh = now
        version = connection.versions.choose(METADATA)
        connection.send(
            (METADATA.key, version),
            [messages.encode_metadata(sorted(asked), version)],
            lambda answer, _: self._on_metadata(connection, answer, version, asked),
            lambda _: self._refresh_failed(asked),
            self.config.request_timeout_ms / 1000,
            flexible=version >= METADATA.first_flexible,
        )

    def _refresh_failed(self, asked: frozenset[str]) -> None:
        self._refreshing = False
        self._refresh_failures += 1
        self._topics.doubt(asked)
        self._refresh_soon()

    def _on_metadata(
        self, connection: Connection, answer: memoryview, version: int, asked: frozenset[str]
    ) -> None:
        self._refreshing = False
        view = messages.decode_metadata(answer, version)
        if not view.nodes:
            self._refresh_failed(asked)
            return
        self._nodes = {**{n: a for n, a in self._nodes.items() if n < 0}, **view.nodes}
        now = self.loop.clock()
        known = {tp.topic for tp in self.leaders}
        doubtful = self.deleted_topics.learn(connection, view, known, now)
        doubtful |= self.topic_ids.learn(view.topic_ids, now)
        self._merge(view, (asked - doubtful) & self._topics.names)
        open_topics = view.errors.keys() | view.leaderless | doubtful
        self._topics.doubt(open_topics)
        is_all_known = not open_topics & self._topics.names
        missed, self._missed = self._missed, False
        self._refresh_failures = 0 if is_all_known and not missed else self._refresh_failures + 1
        self._tell(asked)
        if self._topics.has_doubts:
            self._refresh_soon()

    def _tell(self, news: frozenset[str] | None) -> None:
        self.news = news
        for listener in self.listeners:
            listener.on_metadata()

    def _merge(self, view: messages.MetadataView, asked: frozenset[str]) -> None:
        self.leaders = merge_leaders(self.leaders, view.leaders, asked)
        kept = {t: code for t, code in self.topic_errors.items() if t not in asked}
        self.topic_errors = kept | {t: code for t, code in view.errors.items() if t in asked}
        self._topics.answered |= asked
