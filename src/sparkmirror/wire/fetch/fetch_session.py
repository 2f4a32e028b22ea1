"""What the fetcher remembers of partitions and brokers, and what it reports to its consumer.

Runs on: executor and worker, on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sparkmirror.errors import BrokerError, KafkaError
from sparkmirror.mirror.permissions import Operation, topic_permission
from sparkmirror.types import TopicPartition
from sparkmirror.wire.access import DENIALS, response_error
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.leader_epochs import EpochHistory
from sparkmirror.wire.fetch.offset_fetcher import Range
from sparkmirror.wire.fetch.poll_pace import PollPace
from sparkmirror.wire.fetch.read_ahead import ReadAhead
from sparkmirror.wire.net.buffer_pool import PooledBuffer
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.protocol import fetch_messages as fetch

# The responses of all brokers may come at once: together they must not be larger than this.
RESPONSES_BYTES = 64 << 20
# The epochs of a session begin at 1, and again after this one: 0 opens a session (KIP-227).
LAST_EPOCH = 0x7FFFFFFF


class Records(NamedTuple):
    """What one response holds for one partition; `view` is writable and lies in `buffer`.

    `end_offset` is where the log ended for us when the broker responded.
    """

    tp: TopicPartition
    next_offset: int
    view: memoryview
    buffer: PooledBuffer
    aborted: Sequence[tuple[int, int]]
    end_offset: int


class Taken(NamedTuple):
    """What the consumer has taken: up to where, and the leader epoch of the last batch.

    Epoch -1 is unknown: then a truncation of the source can only be noticed by its offsets.
    """

    next_offset: int
    leader_epoch: int = -1


class FetchListener(Protocol):
    """What the fetcher reports; every method runs on the loop's thread."""

    def request_fetch(self) -> bool:
        """False while too many bytes wait: no request leaves until `send_ready` is called."""

    def request_take(self) -> bool:
        """False while too many bytes wait: what came ahead is kept until `send_ready`."""

    def on_records(self, records: Records) -> Taken:
        """Take the records (hold the buffer to keep them); returns the offset to fetch next."""

    def on_round(self) -> None:
        """All partitions of a response were handed over."""

    def on_out_of_range(self, tp: TopicPartition, position: int | None, found: Range) -> int:
        """Return where to continue; `position` None: none is known. Raises to fail the task."""

    def on_truncated(self, tp: TopicPartition, position: int, next_offset: int) -> None:
        """The log lost what was read from `next_offset` to `position`; other records follow.

        Fetching continues at `next_offset`. Raises to fail the task.
        """

    def on_recreated(self, tp: TopicPartition, position: int) -> None:
        """The topic was deleted and recreated; `on_out_of_range` with position None follows."""

    def on_partition_error(self, tp: TopicPartition, error: KafkaError) -> None:
        """The partition cannot be fetched now; it will be retried."""


@dataclass(slots=True)
class FetchPartition:
    """Where we are in one partition."""

    tp: TopicPartition
    next_offset: int | None
    session: FetchSession | None = None
    # Counts its stays in sessions, and jumps to other offsets: what was sent before is out of date.
    stay: int = 0
    topic_id: bytes | None = None
    # How often the topic had been recreated when the partition was first placed.
    returns: int | None = None
    leader_epoch: int = -1
    # What was read, and the last leader that confirmed that its log has it.
    epochs: EpochHistory = field(default_factory=EpochHistory)
    validated_epoch: int = -1
    preferred: int | None = None
    preferred_until: float = 0.0
    end_offset: int | None = None
    paused: bool = False
    asking: bool = False
    not_before: float = 0.0
    # In a row: the waits between attempts grow with them.
    failures: int = 0
    # Set while a backlog is read ahead: then it is in no session.
    ahead: Ahead | None = None
    # Until then only the session reads it.
    alone_until: float = 0.0

    def is_of_topic(self, topic_id: bytes | None, returns: int) -> bool:
        """Whether this is the topic that was read: by its id or, without one, never deleted."""
        if self.topic_id is None or topic_id is None:
            return self.returns in (None, returns)
        return topic_id == self.topic_id

    @property
    def unread_records(self) -> int | None:
        """From the position to the end of the log as last seen; None while that is not known."""
        if self.next_offset is None or self.end_offset is None:
            return None
        return max(0, self.end_offset - self.next_offset)

    def as_wanted(self) -> fetch.FetchRequestPartition:
        """Its row in a request."""
        assert self.next_offset is not None
        return fetch.FetchRequestPartition(
            self.tp, self.next_offset, self.leader_epoch, self.epochs.last
        )


@dataclass(slots=True, eq=False)
class Ahead:
    """A partition that is read ahead from one broker, while one leader leads (`ahead_reader`)."""

    partition: FetchPartition
    node: int
    leader_epoch: int
    reads: ReadAhead
    is_over: bool = False


class SentOffset(NamedTuple):
    """An offset sent to a broker, and the stay of the partition in its session then."""

    next_offset: int
    stay: int

    def is_of(self, partition: FetchPartition) -> bool:
        """Whether the partition is still there, and has not been added again further back."""
        position = partition.next_offset
        is_reached = position is not None and self.next_offset <= position
        return is_reached and self.stay == partition.stay


class FetchInFlight(NamedTuple):
    """A request of a session in flight: what it changes at the broker."""

    connection: Connection
    version: int
    epoch: int
    resets: int
    departures: int
    sent_at: float
    sent_offsets: dict[TopicPartition, SentOffset]
    forgotten: list[TopicPartition]


@dataclass(slots=True)
class FetchSession:
    """The session with one broker."""

    node: int
    wanted: dict[TopicPartition, FetchPartition] = field(default_factory=dict)
    # What the broker's side of the session holds once it has read all requests, and what it held
    # when it wrote the last response.
    sent_offsets: dict[TopicPartition, SentOffset] = field(default_factory=dict)
    confirmed: dict[TopicPartition, SentOffset] = field(default_factory=dict)
    # What the next request must contain: other offsets, and what is not wanted any more. Kept at
    # hand, like the names: a request is about few of the partitions, and there may be thousands.
    changed: set[TopicPartition] = field(default_factory=set)
    to_forget: set[TopicPartition] = field(default_factory=set)
    names: dict[str | bytes | None, str] | None = None
    session_id: int = 0
    epoch: int = fetch.NEW_SESSION
    in_flight: int = 0
    # Whether the next request waits for a timer.
    is_paced: bool = False
    sent_at: float = 0.0
    # The next request may not leave earlier.
    not_before: float = 0.0
    pace: PollPace = field(default_factory=PollPace)
    version: int = fetch.BY_NAME
    resets: int = 0
    # How many partitions have left: requests before the last of them may bring something of it.
    departures: int = 0

    def join(self, partition: FetchPartition) -> None:
        """Fetch it with the next request."""
        partition.session, self.names = self, None
        partition.stay += 1
        self.wanted[partition.tp] = partition
        self.changed.add(partition.tp)
        self.to_forget.discard(partition.tp)

    def leave(self, partition: FetchPartition) -> None:
        """Stop fetching it."""
        self.departures += 1
        partition.session, self.names = None, None
        self.wanted.pop(partition.tp, None)
        self.changed.discard(partition.tp)
        if partition.tp in self.sent_offsets:
            self.to_forget.add(partition.tp)

    def reset(self) -> None:
        """Start a new session with the next request; a response in flight is of the old one."""
        self.resets += 1
        self.session_id, self.epoch = 0, fetch.NEW_SESSION
        self.sent_offsets.clear()
        self.confirmed.clear()
        self.to_forget.clear()
        self.changed = set(self.wanted)
        self.names = None  # the next session may be of the other kind

    def choose_version(self, ids: Mapping[str, bytes], newest: int) -> None:
        """Ids if the broker and all topics have them (KIP-516); a session keeps to one kind."""
        if self.epoch != fetch.NEW_SESSION:
            can_name = self.version < fetch.BY_ID or all(tp.topic in ids for tp in self.changed)
            # The broker may have come back with an older release.
            if can_name and self.version <= newest:
                return
            self.reset()
        has_ids = newest >= fetch.BY_ID and all(tp.topic in ids for tp in self.wanted)
        self.version = fetch.BY_ID if has_ids else min(newest, fetch.BY_NAME)

    def send(
        self, connection: Connection, now: float
    ) -> tuple[FetchInFlight, list[fetch.FetchRequestPartition]]:
        """The content of the next request, which counts as sent from now on."""
        forgotten = self.take_to_forget()
        wanted, sent_offsets = [], {}
        for tp in self.changed:
            partition = self.wanted[tp]
            row = partition.as_wanted()
            wanted.append(row)
            sent_offsets[tp] = SentOffset(row.next_offset, partition.stay)
        self.sent_offsets.update(sent_offsets)
        self.changed.clear()
        sent = FetchInFlight(
            connection,
            self.version,
            self.epoch,
            self.resets,
            self.departures,
            now,
            sent_offsets,
            forgotten,
        )
        if self.epoch != fetch.NEW_SESSION:
            self.epoch = self.epoch % LAST_EPOCH + 1
        self.in_flight += 1
        self.sent_at = now
        return sent, wanted

    def learn(self, sent: FetchInFlight, session_id: int) -> None:
        """The broker has read this request, and continues this session."""
        self.confirmed.update(sent.sent_offsets)
        for tp in sent.forgotten:
            self.confirmed.pop(tp, None)
        if sent.epoch == fetch.NEW_SESSION:
            self.session_id = session_id
            # Session id 0: the broker keeps none for us, because its cache is full of others
            # (KIP-227: max.incremental.fetch.session.cache.slots): each request names everything.
            self.epoch = 1 if session_id else fetch.NEW_SESSION

    def take_to_forget(self) -> list[TopicPartition]:
        """What the broker is to forget; from now on it has."""
        to_forget = list(self.to_forget)
        self.to_forget.clear()
        for tp in to_forget:
            del self.sent_offsets[tp]
        return to_forget

    def topic_names(self) -> dict[str | bytes | None, str]:
        """The name of each topic by what responses call it: name or id."""
        if self.names is None:
            by_id = self.version >= fetch.BY_ID
            self.names = {
                partition.topic_id if by_id else tp.topic: tp.topic
                for tp, partition in self.wanted.items()
            }
        return self.names


def serving_node(cluster: NetworkClient, partition: FetchPartition, leader: int) -> int:
    """The follower that the leader named, while it can be reached; otherwise the leader.

    KIP-392: only leaders know which replicas are in sync and in whose rack, so they are asked again
    after metadata.max.age.ms, as Java's consumer does.
    """
    preferred = partition.preferred
    if preferred is None:
        return leader
    is_fresh = cluster.loop.clock() < partition.preferred_until
    if is_fresh and not cluster.is_failing(preferred):
        return preferred
    partition.preferred = None
    return leader


def in_the_news(
    cluster: NetworkClient, partitions: Iterable[FetchPartition]
) -> list[FetchPartition]:
    """Those that the current metadata response is about."""
    news = cluster.metadata.news
    return [each for each in partitions if news is None or each.tp.topic in news]


def shared_limits(limits: fetch.Limits, sessions: Iterable[FetchSession]) -> fetch.Limits:
    """The share of each broker: how much one response may bring."""
    most = RESPONSES_BYTES // max(1, sum(bool(session.wanted) for session in sessions))
    return limits if limits.max_bytes <= most else limits._replace(max_bytes=most)


def backoff(cluster: NetworkClient, partition: FetchPartition) -> float:
    """How long to wait after one more failure of `partition`."""
    partition.failures += 1
    return cluster.retries.requests.wait(partition.failures)


def fetch_error(cluster: NetworkClient, tp: TopicPartition, code: int) -> BrokerError:
    """Why the cluster does not return the records of `tp`."""
    what = f"fetch {tp} on '{cluster.config.alias}'"
    return response_error(cluster.config, what, code, topic_permission(Operation.READ, tp.topic))


def denial(cluster: NetworkClient, tp: TopicPartition) -> BrokerError | None:
    """Why `tp` has no leader that we may know of; other reasons for having none pass."""
    code = cluster.metadata.topic_errors.get(tp.topic, 0)
    return fetch_error(cluster, tp, code) if code in DENIALS else None
