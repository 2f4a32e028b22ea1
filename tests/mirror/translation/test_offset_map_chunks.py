"""Golden bytes of the offset map's records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.records import RecordError, UnsupportedRecordError
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkKey, ChunkStart, OffsetRun
from sparkmirror.mirror.translation.offsets import OffsetPair

LONG_MAX = 2**63 - 1

GOLDEN = [
    pytest.param(ChunkStart.SESSION, [(0, 0, 0)], "00 01 00 00", id="the start of a task"),
    pytest.param(ChunkStart.CONTINUES, [(0, 0, 5)], "00 00 00 05", id="from the first offset on"),
    pytest.param(
        ChunkStart.NEW_LOG, [(100, 200, 300)], "00 02 c901 c801 ac02", id="anywhere on both sides"
    ),
    pytest.param(
        ChunkStart.CONTINUES,
        [(0, 0, 5), (7, 5, 2), (9, 8, 64)],
        "00 00 0005 0402 010140",
        id="gaps upstream, then downstream",
    ),
]


@pytest.mark.parametrize(("start", "runs", "value"), GOLDEN)
def test_chunks_are_written_and_read_as_golden_bytes(
    start: ChunkStart, runs: list[tuple[int, int, int]], value: str
) -> None:
    chunk = Chunk(start, tuple(OffsetRun(*run) for run in runs))
    assert chunk.encode() == bytes.fromhex(value)
    assert Chunk.decode(bytes.fromhex(value)) == chunk


def test_keys_are_written_and_read_as_golden_bytes() -> None:
    key = ChunkKey("t", 3, OffsetPair(100, 200))
    data = bytes.fromhex("0001 74 00000003 0000000000000064 00000000000000c8")
    assert key.encode() == data
    assert ChunkKey.decode(data) == key
    assert ChunkKey.decode(data).first == (100, 200)


def test_key_says_where_a_chunk_begins() -> None:
    chunk = Chunk(ChunkStart.CONTINUES, (OffsetRun(7, 5, 2), OffsetRun(20, 7, 1)))
    assert chunk.first == OffsetPair(7, 5)


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"\x00",
        bytes.fromhex("0001 74 00000003 0000000000000064"),
        bytes.fromhex("0001 74 00000003 0000000000000064 00000000000000c8 00"),
        bytes.fromhex("0001 ff 00000003 0000000000000064 00000000000000c8"),
    ],
    ids=["empty", "cut in the length", "no downstream offset", "too long", "not UTF-8"],
)
def test_keys_that_are_none_are_rejected(key: bytes) -> None:
    with pytest.raises(RecordError, match="read the key of an offset map's chunk"):
        ChunkKey.decode(key)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "too short"),
        ("00", "too short"),
        ("00 00", "it is empty"),
        ("00 03 00 05", "starts in an unknown way, 3"),
        ("00 00 00", "number at byte 3 does not end"),
        ("00 00 80", "number at byte 2 does not end"),
        ("00 00 01 05", "number at byte 4 does not end"),
        ("00 00 80808080808080808080 00 05", "number at byte 2 does not end"),
        ("00 00 00 ffffffffffffffff7f 00 01", "offsets are too large"),
    ],
)
def test_values_that_are_none_are_rejected(value: str, reason: str) -> None:
    with pytest.raises(RecordError, match=f"read a chunk of an offset map.*{reason}"):
        Chunk.decode(bytes.fromhex(value))


def test_later_versions_are_rejected() -> None:
    with pytest.raises(UnsupportedRecordError, match="version 1 is not supported"):
        Chunk.decode(bytes.fromhex("01 00 00 05"))


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    upstream = downstream = 0
    runs = []
    small = st.integers(0, 3)
    steps = st.tuples(small | st.integers(0, 2**60), small, st.integers(0, 2**58))
    for missing, gap, length in draw(st.lists(steps, min_size=1, max_size=5)):
        upstream, downstream = upstream + missing, downstream + gap
        runs.append(OffsetRun(upstream, downstream, length))
        upstream, downstream = upstream + length, downstream + length
    return Chunk(draw(st.sampled_from(ChunkStart)), tuple(runs))


@given(chunks())
def test_every_chunk_reads_back(chunk: Chunk) -> None:
    assert Chunk.decode(chunk.encode()) == chunk


@given(st.text(max_size=20), st.integers(0, 2**31 - 1), st.integers(0, LONG_MAX))
def test_every_key_reads_back(topic: str, partition: int, offset: int) -> None:
    key = ChunkKey(topic, partition, OffsetPair(offset, LONG_MAX - offset))
    assert ChunkKey.decode(key.encode()) == key
