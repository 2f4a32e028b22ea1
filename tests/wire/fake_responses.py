"""What the fake broker knows and how it responds; sockets and failures are in fake_broker.

Every method is called with the cluster's lock held. Responses are kafka-python's messages.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse
from kafka.protocol.producer import InitProducerIdResponse, ProduceResponse

from tests.wire.fake_epochs import (
    FENCED_EPOCH,
    NOT_LEADER,
    UNKNOWN_EPOCH,
    UNKNOWN_TOPIC,
    diverging_epoch,
    epoch_ends,
)
from tests.wire.fake_log import Appended, FakeLog

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 2, 3, 18, 22
EPOCH_ENDS = 23

OFFSET_OUT_OF_RANGE = 1
SESSION_NOT_FOUND = 70
INVALID_SESSION_EPOCH = 71
UNKNOWN_TOPIC_ID = 100
SESSION_CODES = (SESSION_NOT_FOUND, INVALID_SESSION_EPOCH)

FULL_FETCH = (0, -1)


@dataclass(frozen=True, slots=True)
class Do:
    """What a broker does with a request instead of the usual.

    apply      carry it out (produce: append)
    code       respond with this error code, whatever the result was
    drop       close the connection instead of responding
    garbage    respond with these bytes
    diverging  fetch: report that the log has another epoch, and where it ends
    codes      produce: refuse these partitions with these codes
    """

    apply: bool = False
    code: int | None = None
    drop: bool = False
    garbage: bytes | None = None
    diverging: tuple[int, int] | None = None
    codes: Mapping[int, int] | None = None


class Request(NamedTuple):
    """One request as it came in."""

    node: int
    api: int
    version: int
    body: Any


@dataclass(slots=True)
class Partition:
    """A partition's leader and log; every node has the whole log."""

    leader: int
    epoch: int = 0
    log: FakeLog = field(default_factory=FakeLog)
    preferred: int = -1


@dataclass(slots=True)
class Topic:
    """A topic under its id."""

    topic_id: uuid.UUID
    partitions: list[Partition]


@dataclass(slots=True)
class Session:
    """An incremental fetch session: what is wanted, and the end offsets that were last reported."""

    epoch: int = 1
    wanted: dict[tuple[Any, int], Any] = field(default_factory=dict)
    reported: dict[tuple[Any, int], int] = field(default_factory=dict)


class Responses:
    """The state of a fake cluster, seen through its responses."""

    def __init__(self, changed: threading.Condition, newest: Mapping[int, int]) -> None:
        self.topics: dict[str, Topic] = {}
        # What nodes that lag behind believe.
        self.old_topics: dict[int, dict[str, Topic]] = {}
        self.ports: dict[int, int] = {}
        # Of brokers that advertise another address.
        self.advertised: dict[int, tuple[str, int]] = {}
        self.sessions: dict[tuple[int, int], Session] = {}
        self.keeps_sessions = True
        self.compares_epochs = True
        self.running: set[int] = set()
        self._changed = changed
        self.newest = newest
        self._next_session = 100
        self._next_producer = 1000

    def respond(self, request: Request, action: Do) -> Any:
        """The message that responses `request`."""
        makers = {
            PRODUCE: self._produce,
            FETCH: self._fetch,
            LIST_OFFSETS: self._list_offsets,
            METADATA: self._metadata,
            API_VERSIONS: self._api_versions,
            INIT_PRODUCER_ID: self._init_producer_id,
            EPOCH_ENDS: self._epoch_ends,
        }
        return makers[request.api](request, action)

    def _find(self, topic: Any, partition: int) -> Partition | None:
        for name, found in self.topics.items():
            if topic in (name, found.topic_id) and partition < len(found.partitions):
                return found.partitions[partition]
        return None

    # -- small ones --------------------------------------------------------------------------------

    def _api_versions(self, _: Request, action: Do) -> Any:
        rows = [
            ApiVersionsResponse.ApiVersion(api_key=api, min_version=0, max_version=newest)
            for api, newest in self.newest.items()
        ]
        return ApiVersionsResponse(error_code=action.code or 0, api_keys=rows)

    def _init_producer_id(self, _: Request, action: Do) -> Any:
        self._next_producer += 1
        code = action.code or 0
        return InitProducerIdResponse(
            throttle_time_ms=0,
            error_code=code,
            producer_id=-1 if code else self._next_producer,
            producer_epoch=0,
        )

    def _metadata(self, request: Request, action: Do) -> Any:
        places = {node: ("127.0.0.1", port) for node, port in self.ports.items()}
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=node, host=host, port=port, rack=None)
            for node, (host, port) in (places | self.advertised).items()
        ]
        known = self.old_topics.get(request.node, self.topics)
        topics = [self._metadata_topic(known, asked.name, action) for asked in request.body.topics]
        return MetadataResponse(
            throttle_time_ms=0, brokers=brokers, cluster_id="fake", controller_id=1, topics=topics
        )

    @staticmethod
    def _metadata_topic(topics: Mapping[str, Topic], name: str, action: Do) -> Any:
        kind = MetadataResponse.MetadataResponseTopic
        topic = topics.get(name)
        code = action.code or (0 if topic else UNKNOWN_TOPIC)
        rows = [
            kind.MetadataResponsePartition(
                error_code=0,
                partition_index=at,
                leader_id=each.leader,
                leader_epoch=each.epoch,
                replica_nodes=[],
                isr_nodes=[],
                offline_replicas=[],
            )
            for at, each in enumerate(topic.partitions if topic and not code else [])
        ]
        topic_id = topic.topic_id if topic else uuid.UUID(int=0)
        return kind(
            error_code=code, name=name, topic_id=topic_id, is_internal=False, partitions=rows
        )

    def _list_offsets(self, request: Request, action: Do) -> Any:
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = []
        for topic in request.body.topics:
            rows = []
            for row in topic.partitions:
                code, offset = self._offset_at(request.node, topic.name, row)
                rows.append(
                    kind.ListOffsetsPartitionResponse(
                        partition_index=row.partition_index,
                        error_code=action.code or code,
                        timestamp=-1,
                        offset=offset,
                        leader_epoch=0,
                    )
                )
            topics.append(kind(name=topic.name, partitions=rows))
        return ListOffsetsResponse(throttle_time_ms=0, topics=topics)

    def _offset_at(self, node: int, topic: str, row: Any) -> tuple[int, int]:
        found = self._find(topic, row.partition_index)
        if found is None:
            return UNKNOWN_TOPIC, -1
        if found.leader != node:
            return NOT_LEADER, -1
        return 0, found.log.offset_at(row.timestamp)

    def _epoch_ends(self, request: Request, action: Do) -> Any:
        return epoch_ends(request, action, self._find)

    # -- produce -----------------------------------------------------------------------------------

    def _produce(self, request: Request, action: Do) -> Any:
        kind = ProduceResponse.TopicProduceResponse
        topics = []
        for topic in request.body.topic_data:
            rows = []
            for row in topic.partition_data:
                done, code = Appended(0, -1), action.code
                if action.codes and row.index in action.codes:
                    code = action.codes[row.index]
                elif action.apply:
                    done = self._append(request.node, topic.name, row)
                rows.append(
                    kind.PartitionProduceResponse(
                        index=row.index,
                        error_code=done.code if code is None else code,
                        base_offset=done.base_offset,
                        log_append_time_ms=-1,
                        log_start_offset=0,
                        record_errors=[],
                        error_message=None,
                    )
                )
            topics.append(kind(name=topic.name, partition_responses=rows))
        self._changed.notify_all()
        return ProduceResponse(responses=topics, throttle_time_ms=0)

    def _append(self, node: int, topic: str, row: Any) -> Appended:
        found = self._find(topic, row.index)
        if found is None:
            return Appended(UNKNOWN_TOPIC, -1)
        if found.leader != node:
            return Appended(NOT_LEADER, -1)
        return found.log.append(bytes(row.records))

    # -- fetch -------------------------------------------------------------------------------------

    def _fetch(self, request: Request, action: Do) -> Any:
        if action.code in SESSION_CODES:
            return _fetch_response(action.code, 0, {}, request.version)
        code, session_id, session = self._session(request)
        if session is None:
            return _fetch_response(code, 0, {}, request.version)
        deadline = time.monotonic() + request.body.max_wait_ms / 1000
        while True:
            rows = {
                key: self._fetch_row(request, key, wanted, action)
                for key, wanted in session.wanted.items()
            }
            left = deadline - time.monotonic()
            if left <= 0 or request.node not in self.running or any(map(_matters, rows.values())):
                break
            self._changed.wait(left)
        if session_id and (request.body.session_epoch > 0):
            rows = {key: row for key, row in rows.items() if _is_news(session, key, row)}
        session.reported |= {key: row.high_watermark for key, row in rows.items()}
        return _fetch_response(0, session_id, rows, request.version)

    def _session(self, request: Request) -> tuple[int, int, Session | None]:
        """The session that the request continues, opens, or does without."""
        body = request.body
        session_id, epoch = body.session_id, body.session_epoch
        if epoch in FULL_FETCH:
            session, session_id = Session(), 0
            if self.keeps_sessions and epoch == 0:
                self._next_session += 1
                session_id = self._next_session
                self.sessions[request.node, session_id] = session
        else:
            found = self.sessions.get((request.node, session_id))
            if found is None:
                return SESSION_NOT_FOUND, 0, None
            if found.epoch != epoch:
                return INVALID_SESSION_EPOCH, 0, None
            session = found
            session.epoch += 1
        for topic in body.forgotten_topics_data:
            for at in topic.partitions:
                session.wanted.pop((_topic_key(topic, request.version), at), None)
        for topic in body.topics:
            for row in topic.partitions:
                session.wanted[_topic_key(topic, request.version), row.partition] = row
        return 0, session_id, session

    def _fetch_row(self, request: Request, key: tuple[Any, int], wanted: Any, action: Do) -> Any:
        found = self._find(*key)
        if found is None:
            return _row(key, UNKNOWN_TOPIC_ID if request.version >= 13 else UNKNOWN_TOPIC)
        log, offset = found.log, wanted.fetch_offset
        if action.diverging is not None:
            return _row(key, 0, log, diverging=action.diverging)
        code = action.code or self._fetch_code(request, found, wanted)
        if code:
            return _row(key, code, log)
        if found.leader == request.node and found.preferred >= 0 and request.body.rack_id:
            return _row(key, 0, log, preferred=found.preferred)
        if self.compares_epochs and wanted.last_fetched_epoch >= 0:
            diverging = diverging_epoch(log, wanted)
            if diverging is not None:
                return _row(key, 0, log, diverging=diverging)
        return _row(key, 0, log, records=log.read(offset, wanted.partition_max_bytes))

    def _fetch_code(self, request: Request, found: Partition, wanted: Any) -> int:
        epoch = wanted.current_leader_epoch
        if request.node not in (found.leader, found.preferred):
            return NOT_LEADER
        if epoch not in (-1, found.epoch):
            return FENCED_EPOCH if epoch < found.epoch else UNKNOWN_EPOCH
        if self.compares_epochs and wanted.last_fetched_epoch >= 0:
            if found.log.epoch_end(wanted.last_fetched_epoch)[0] < 0:
                return OFFSET_OUT_OF_RANGE
            if diverging_epoch(found.log, wanted) and wanted.fetch_offset >= found.log.start_offset:
                return 0
        inside = found.log.start_offset <= wanted.fetch_offset <= found.log.end_offset
        return 0 if inside else OFFSET_OUT_OF_RANGE


def _topic_key(topic: Any, version: int) -> Any:
    return topic.topic_id if version >= 13 else topic.topic


def _row(
    key: tuple[Any, int],
    code: int,
    log: FakeLog | None = None,
    *,
    records: bytes = b"",
    preferred: int = -1,
    diverging: tuple[int, int] | None = None,
) -> Any:
    log = log or FakeLog(start_offset=-1, end_offset=-1)
    kind = FetchResponse.FetchableTopicResponse.PartitionData
    return kind(
        diverging_epoch=diverging
        and kind.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1]),
        partition_index=key[1],
        error_code=code,
        high_watermark=log.end_offset,
        last_stable_offset=log.end_offset,
        log_start_offset=log.start_offset,
        aborted_transactions=None,
        preferred_read_replica=preferred,
        records=records,
    )


def _matters(row: Any) -> bool:
    has_news = row.records or row.diverging_epoch or row.preferred_read_replica >= 0
    return bool(row.error_code or has_news)


def _is_news(session: Session, key: tuple[Any, int], row: Any) -> bool:
    return _matters(row) or session.reported.get(key) != row.high_watermark


def _fetch_response(
    code: int, session_id: int, rows: Mapping[tuple[Any, int], Any], version: int
) -> Any:
    kind = FetchResponse.FetchableTopicResponse
    topics: dict[Any, list[Any]] = {}
    for (topic, _), row in rows.items():
        topics.setdefault(topic, []).append(row)
    name = "topic_id" if version >= 13 else "topic"
    return FetchResponse(
        throttle_time_ms=0,
        error_code=code,
        session_id=session_id,
        responses=[kind(**{name: key, "partitions": found}) for key, found in topics.items()],
    )
