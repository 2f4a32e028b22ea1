"""What brokers send: fetch responses, all other responses, and the frames around them."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from kafka.protocol.consumer import FetchResponse
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.batches.forward import plan, stamp
from sparkmirror.batches.header import Buffer
from sparkmirror.errors import BatchError, KafkaError
from sparkmirror.wire.fetch import leader_epochs
from sparkmirror.wire.net.buffer_pool import BufferPool, PooledBuffer
from sparkmirror.wire.net.connection import Connection
from sparkmirror.wire.net.event_loop import READ, WRITE, EventLoop, Timer
from sparkmirror.wire.protocol import fetch_messages as fetch
from sparkmirror.wire.protocol import group_messages, messages, produce_messages
from sparkmirror.wire.protocol.api_versions import FETCH, METADATA, ApiVersions
from tests.batches.logs import Step, build
from tests.fuzz.batch_targets import RULES, check_plan
from tests.fuzz.target import Choices, Target

# In this order: inputs that were found name a version by its place.
FETCH_VERSIONS = (fetch.BY_NAME, fetch.BY_ID, 10, 11)
METADATA_VERSIONS = range(METADATA.newest + 1)
DECODERS: tuple[Callable[[memoryview], object], ...] = (
    messages.decode_api_versions,
    messages.decode_list_offsets,
    messages.decode_init_producer_id,
    lambda view: produce_messages.decode_produce(view, 8),
    group_messages.decode_find_coordinator,
    group_messages.decode_join,
    group_messages.decode_sync,
    group_messages.decode_code,
    group_messages.decode_add_partition,
    leader_epochs.decode_epoch_ends,
    lambda view: produce_messages.decode_produce(view, 7),
)


# -- fetch ----------------------------------------------------------------------------------------


def run_fetch(data: bytes) -> None:
    """A fetch response, and the batches in it."""
    version = FETCH_VERSIONS[data[0] % len(FETCH_VERSIONS)] if data else fetch.BY_ID
    try:
        response = fetch.decode_fetch(memoryview(bytearray(data[1:])), version)
    except KafkaError:
        return
    for row in response.rows:
        assert isinstance(row.topic, bytes if version == fetch.BY_ID else str)
        assert version < fetch.BY_ID or len(row.topic) == 16
        try:
            planned = plan(row.records, 0, row.aborted, RULES[3], {})
        except BatchError:
            continue
        for at, batch in enumerate(planned.batches):
            stamp(batch.view, 5, 6, at)
        check_plan(planned, 0)


def fetch_seeds() -> Iterator[bytes]:
    topic_row = FetchResponse.FetchableTopicResponse
    row = topic_row.PartitionData
    records = bytes(build([Step("transactional", 2, repeat=2), Step("abort")], 1).data)
    aborted = [row.AbortedTransaction(producer_id=11, first_offset=0)]
    for version in FETCH_VERSIONS:
        for found in ([], aborted):
            part = row(
                partition_index=3,
                error_code=0,
                high_watermark=100,
                last_stable_offset=100,
                log_start_offset=0,
                aborted_transactions=found,
                preferred_read_replica=-1,
                records=records,
            )
            topic = topic_row(topic="orders", topic_id=uuid.UUID(int=7), partitions=[part, part])
            response = FetchResponse(
                throttle_time_ms=0, error_code=0, session_id=7, responses=[topic], version=version
            )
            tags = b"\0" if version >= FETCH.first_flexible else b""
            yield bytes((FETCH_VERSIONS.index(version),)) + tags + bytes(response.encode())


# -- other responses ------------------------------------------------------------------------------


def run_responses(data: bytes) -> None:
    """Any other response."""
    choices = Choices(data)
    which = choices.number()
    try:
        if which < len(METADATA_VERSIONS):
            _check_metadata(messages.decode_metadata(memoryview(choices.rest()), which))
        else:
            found = DECODERS[which % len(DECODERS)](memoryview(choices.rest()))
            if isinstance(found, dict) and which % len(DECODERS) == 0:
                assert isinstance(found, ApiVersions)
                messages.encode_metadata(["t"], found.choose(METADATA))
    except KafkaError:
        return


def _check_metadata(view: messages.MetadataView) -> None:
    for node, (host, port) in view.nodes.items():
        assert isinstance(node, int)
        assert isinstance(host, str)
        assert 0 <= port < 1 << 16
    for tp in view.leaders:
        assert isinstance(tp.topic, str)
        assert tp.partition >= 0
    assert all(isinstance(name, str) for name in (*view.errors, *view.topic_ids, *view.leaderless))
    assert all(len(each) == 16 for each in view.topic_ids.values())


def responses_seeds() -> Iterator[bytes]:
    first = len(DECODERS) * 2  # above all versions, and no remainder
    text = messages.encode_string
    rows = struct.pack(">ihqqi", 0, 0, -1, 50, 3)
    produced = struct.pack(">ihqqqi", 1, 0, 50, -1, 0, 0) + text(None)
    refused = struct.pack(">ihqqqi", 1, 87, -1, -1, 0, 1) + struct.pack(">i", 4) + text("why")
    bodies = (
        struct.pack(">hi", 0, 2) + struct.pack(">hhhhhh", 0, 3, 9, 1, 4, 13),
        struct.pack(">ii", 0, 1) + text("orders") + struct.pack(">i", 2) + rows + rows,
        struct.pack(">ihqh", 0, 0, 1000, 3),
        struct.pack(">i", 1) + text("t") + struct.pack(">i", 2) + produced + refused + text("no"),
        struct.pack(">ih", 0, 0) + text(None) + struct.pack(">i", 1) + text("b") + b"\0\0\x23\x84",
        struct.pack(">ihi", 0, 0, 5) + text("p") + text("m1") + text("m1") + struct.pack(">i", 1)
        + text("m1") + group_messages.encode_data(b"meta"),
        struct.pack(">ih", 0, 0) + group_messages.encode_data(b"assignment"),
        struct.pack(">ih", 0, 25),
        struct.pack(">ii", 0, 1) + text("t") + struct.pack(">iih", 1, 0, 0),
        struct.pack(">ii", 0, 1) + text("t") + struct.pack(">ihiiq", 1, 0, 0, 3, 50),
    )  # fmt: skip
    yield from (bytes((first + number,)) + body for number, body in enumerate(bodies))
    yield from (bytes((version,)) + _metadata(version) for version in METADATA_VERSIONS)


def _metadata(version: int) -> bytes:
    kind = MetadataResponse.MetadataResponseTopic
    rows = [
        kind.MetadataResponsePartition(
            error_code=0, partition_index=at, leader_id=at, leader_epoch=5, replica_nodes=[1, 2],
            isr_nodes=[1], offline_replicas=[],
        )
        for at in (0, 1)
    ]  # fmt: skip
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="b1", port=9092, rack="r")
    topic = kind(
        error_code=0, name="orders", topic_id=uuid.UUID(int=7), is_internal=False, partitions=rows
    )
    response = MetadataResponse(
        throttle_time_ms=0, brokers=[broker], cluster_id="c", controller_id=1, topics=[topic],
        version=version,
    )  # fmt: skip
    return (b"\0" if version >= 9 else b"") + bytes(response.encode())


# -- frames ---------------------------------------------------------------------------------------


class _Stream:
    """Gives the fuzzed bytes in pieces of fuzzed sizes."""

    address = "broker:9092"
    wants = WRITE

    def __init__(self, choices: Choices) -> None:
        self._sizes = choices.take(8)
        self._data = choices.rest()
        self._turn = 0

    @property
    def is_over(self) -> bool:
        return not self._data

    def fileno(self) -> int:
        return 0

    def finish_connect(self) -> bool:
        return True

    def wake_at(self, size: int) -> None:
        assert size > 0

    def pending(self) -> bool:
        return False

    def receive(self, into: memoryview) -> int:
        size = 1 + (self._sizes[self._turn % len(self._sizes)] if self._sizes else 0)
        self._turn += 1
        piece = self._data[: min(size, len(into))]
        self._data = self._data[len(piece) :]
        into[: len(piece)] = piece
        return len(piece)

    def send(self, pieces: Sequence[Buffer]) -> int:
        return sum(map(len, pieces))

    def close(self) -> None:
        """Nothing is open."""


class _Loop:
    """Watches nothing: the target decides when there is something to read."""

    before_write = None

    def clock(self) -> float:
        return 0.0

    def watch(self, handler: object, events: int) -> None:
        """The target knows the connection."""

    rewatch = watch

    def unwatch(self, handler: object) -> None:
        """The same."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """The clock stands still, so a deadline never comes."""
        return Timer(seconds, call)


def run_frames(data: bytes) -> None:
    """Responses cut into pieces: each request gets one response or one failure, in order."""
    choices = Choices(data)
    keeps = [bool(bit) for bit in map(int, f"{choices.number():08b}")]
    stream = _Stream(choices)
    noted: list[tuple[int, str]] = []
    connection = Connection(
        cast("EventLoop", _Loop()), stream, "me", BufferPool(1 << 20), on_open=lambda: None,
        on_closed=lambda _: None,
    )  # fmt: skip
    connection.on_ready(WRITE)
    for number, keep in enumerate(keeps):
        connection.send((3, 7), [b""], *_noting(noted, number, keep), 10.0, keep=keep)
    while not stream.is_over and not connection.closed:
        connection.on_ready(READ)
    assert [number for number, _ in noted] == list(range(len(noted)))
    assert connection.in_flight == (0 if connection.closed else len(keeps) - len(noted))


def _noting(noted: list[tuple[int, str]], number: int, keep: bool) -> tuple[Any, Any]:
    def on_response(view: memoryview, buffer: PooledBuffer | None) -> None:
        assert (buffer is not None) == keep
        noted.append((number, "response"))
        if buffer is not None:
            buffer.release()

    def failed(_: KafkaError) -> None:
        noted.append((number, "failure"))

    return on_response, failed


def frames_seeds() -> Iterator[bytes]:
    responses = [b"", b"short", b"x" * 300]
    frames = b"".join(
        struct.pack(">ii", len(body) + 4, number + 1) + body
        for number, body in enumerate(responses)
    )
    for sizes in (bytes(8), b"\xff" * 8, bytes(range(8))):
        yield from (bytes((keep,)) + sizes + frames for keep in (0, 255, 0b1010_1010))


TARGETS = (
    Target("fetch", run_fetch, fetch_seeds),
    Target("responses", run_responses, responses_seeds),
    Target("frames", run_frames, frames_seeds),
)
