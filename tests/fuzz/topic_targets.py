"""Records of internal topics: other programs write there, too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from sparkmirror.batches.records import Record
from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.group.connect_protocol import (
    Assignment,
    MemberState,
    decode_assignment,
    decode_member_state,
    encode_assignment,
    encode_member_state,
)
from sparkmirror.connect.group.member_protocols import WorkSharing
from sparkmirror.connect.storage import config_records as configs
from sparkmirror.connect.storage import stored_offsets
from sparkmirror.connect.storage.status_backing_store import KafkaStatusBackingStore
from sparkmirror.connect.storage.storage_topics import StorageTopic
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.positions.provenance import (
    LEADER_EPOCHS,
    TARGET_OFFSET,
    TOPIC_ID,
    decode_provenance,
)
from sparkmirror.mirror.records import (
    Checkpoint,
    Heartbeat,
    OffsetSync,
    RecordError,
    decode_offset_key,
    decode_offset_value,
    encode_offset_key,
    encode_offset_value,
)
from sparkmirror.mirror.task_configs import assigned_groups, assigned_partitions
from sparkmirror.mirror.translation.offset_map import OffsetMap
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkKey, ChunkStart, OffsetRun
from sparkmirror.mirror.translation.offset_sync_store import OffsetSyncStore
from sparkmirror.mirror.translation.offsets import OffsetPair
from sparkmirror.types import ConnectorTaskId, TopicPartition
from tests.fuzz.target import Choices, Target

TASKS = frozenset((ConnectorTaskId("x", 0), ConnectorTaskId("x", 1)))
POSITIONS = (0, 1, 5, 1000, 1 << 40, (1 << 63) - 1)


def run_topics(data: bytes) -> None:
    """A few records of one of the topics."""
    choices = Choices(data)
    read = choices.pick(READERS)
    records: list[Record] = []
    while len(records) < 20:
        flags = choices.number()
        key, value = choices.take(choices.number()), choices.take(choices.number(2))
        if not flags and not key and not value:
            break
        records.append(
            Record(len(records), 0, None if flags & 1 else key, None if flags & 2 else value)
        )
    read(records)


def _read_configs(records: Sequence[Record]) -> None:
    state = configs.ConfigState()
    for record in records:
        state.apply(record.key, record.value)
    snapshot = state.snapshot()
    for name, settings in snapshot.connectors.items():
        assert isinstance(name, str)
        assert all(each is None or isinstance(each, str) for each in settings.values())
    for tasks in snapshot.tasks.values():
        assert all(isinstance(each, str) for task in tasks for each in task.values())
        for task in tasks:
            assert all(isinstance(group, str) for group in assigned_groups([task]))
            with suppress(ValueError):
                assert all(0 <= tp.partition < 1 << 31 for tp in assigned_partitions(task))


@functools.cache
def _status_store() -> KafkaStatusBackingStore:
    return KafkaStatusBackingStore(
        ClientConfig("t", ("none:9092",)), StorageTopic("status", "status", 1, 1)
    )


def _read_statuses(records: Sequence[Record]) -> None:
    store = _status_store()
    store.on_records(records, restarted=True)
    for record in records:
        name = (record.key or b"").decode(errors="replace").removeprefix("status-task-")
        for status in store.tasks(name.rpartition("-")[0]).values():
            assert status.trace is None or isinstance(status.trace, str)
            assert status.version is None or isinstance(status.version, str)


def _read_offsets(records: Sequence[Record]) -> None:
    for record in records:
        stored_offsets._parse(record.key)
        key = decode_offset_key(record.key)
        if key is not None:
            assert isinstance(key.topic, str)
        try:
            offset = decode_offset_value(record.value)
        except RecordError:
            continue
        assert offset is None or 0 <= offset < 1 << 63
        _read_provenance(record)


def _read_provenance(record: Record) -> None:
    """The record's bytes as the headers that name the log of a position."""
    key, value = record.key, record.value
    headers = ((LEADER_EPOCHS, value), (TOPIC_ID, key), (TARGET_OFFSET, key))
    found = decode_provenance(headers)
    assert (found is None) == (value is None)
    if found is not None:
        assert found.topic_id is None or len(found.topic_id) == 16
        assert list(found.epochs) == sorted(found.epochs)
        assert decode_provenance(found.encode()) == found


def _read_mirror_records(records: Sequence[Record]) -> None:
    kinds: tuple[Callable[[bytes, bytes], object], ...] = (Heartbeat.decode, Checkpoint.decode)
    store = OffsetSyncStore(must_read_to_end=False)
    seen: set[TopicPartition] = set()
    for record in records:
        key, value = record.key or b"", record.value or b""
        for decode in kinds:
            _try(decode, key, value)
        sync = _try(OffsetSync.decode, key, value)
        if isinstance(sync, OffsetSync):
            store.add(sync)
            seen.add(TopicPartition(sync.topic, sync.partition))
    for tp in seen:
        for position in POSITIONS:
            store.translate_downstream(tp, position)


def _try(decode: Callable[[bytes, bytes], object], key: bytes, value: bytes) -> object:
    try:
        return decode(key, value)
    except RecordError:
        return None


def _read_chunks(records: Sequence[Record]) -> None:
    offset_map = OffsetMap(max_runs=8)
    for record in records:
        try:
            key, chunk = ChunkKey.decode(record.key or b""), Chunk.decode(record.value or b"")
        except RecordError:
            continue
        assert key.encode() == record.key
        offset_map.apply(chunk)
    found = [offset_map.translate(position) for position in POSITIONS]
    known = [each for each in found if each is not None]
    assert known == sorted(known)
    offset_map.prune(5)


def _read_members(records: Sequence[Record]) -> None:
    sharing = WorkSharing("u", None, None)
    for record in records:
        data = record.value or b""
        for read in (
            decode_member_state,
            decode_assignment,
            sharing.read,
            lambda data: sharing.assign({"m": data}),
        ):
            try:
                read(data)
            except KafkaError:
                continue


READERS: tuple[Callable[[Sequence[Record]], None], ...] = (
    _read_configs,
    _read_statuses,
    _read_offsets,
    _read_mirror_records,
    _read_chunks,
    _read_members,
)


def topics_seeds() -> Iterator[bytes]:
    status = b'{"state":"RUNNING","trace":null,"worker_id":"w:1","generation":3,"version":"4"}'
    chunk = Chunk(
        ChunkStart.SESSION, (OffsetRun(0, 0, 5), OffsetRun(7, 5, 2), OffsetRun(1 << 30, 900, 0))
    )
    sync, point = OffsetSync("t", 0, 100, 90), Checkpoint("g", "a.t", 0, 100, 90, "m")
    beat = Heartbeat("a", "b", 1_700_000_000_000)
    rows: tuple[Sequence[tuple[bytes, bytes | None]], ...] = (
        [
            *configs.connector_records("c", {"name": "c", "x": None}, "STARTED"),
            *configs.task_records("c", [{"a": "b"}, {"task.assigned.partitions": "t-0,t-1,"}]),
            configs.logger_record("root", "DEBUG"),
            configs.restart_record(configs.RestartRequest("c", True, False)),
            *configs.deletion_records("c"),
        ],
        [
            (b"status-connector-c", status),
            (b"status-task-c-0", status),
            (b"status-topic-t:connector-c", b"{}"),
        ],
        [(encode_offset_key("c", "a", "t", 0), encode_offset_value(77))],
        [(each.encode_key(), each.encode_value()) for each in (sync, point, beat)],
        [(ChunkKey("t", 0, OffsetPair(0, 0)).encode(), chunk.encode())],
        [
            (b"", b'{"url":"http://w:8083"}'),
            (b"", b'{"leader_url":"u","members":["a"]}'),
            (b"", encode_member_state(MemberState("u", 7, 2, TASKS))),
            (b"", encode_assignment(Assignment("u", ("u", "v"), 7, TASKS, TASKS, follow_up=True))),
        ],
    )
    yield from (bytes((number,)) + _written(pairs) for number, pairs in enumerate(rows))


def _written(rows: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    out = bytearray()
    for key, value in rows:
        data = value or b""
        out += bytes((4 | (value is None) << 1, len(key))) + key
        out += len(data).to_bytes(2, "big") + data
    return bytes(out)


TARGETS = (Target("topics", run_topics, topics_seeds),)
