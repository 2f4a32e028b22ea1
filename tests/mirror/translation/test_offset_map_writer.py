"""Chunks that the copy task writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.translation.offset_map import OffsetMap
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkStart, OffsetRun
from sparkmirror.mirror.translation.offset_map_writer import (
    MAX_CHUNK_BYTES,
    MAX_CHUNK_RUNS,
    OffsetMapWriter,
)


def taken(writer: OffsetMapWriter) -> list[Chunk]:
    """What is to be written, and that it is keyed by where it begins."""
    encoded = writer.take_changed()
    chunks = [Chunk.decode(chunk.value) for chunk in encoded]
    assert [chunk.first for chunk in encoded] == [chunk.first for chunk in chunks]
    return chunks


def session(*runs: tuple[int, int, int]) -> Chunk:
    return Chunk(ChunkStart.SESSION, tuple(OffsetRun(*run) for run in runs))


def continued(*runs: tuple[int, int, int]) -> Chunk:
    return Chunk(ChunkStart.CONTINUES, tuple(OffsetRun(*run) for run in runs))


def test_nothing_copied_is_nothing_to_write() -> None:
    assert OffsetMapWriter(ChunkStart.SESSION).take_changed() == []


def test_batches_that_follow_each_other_are_one_run() -> None:
    writer = OffsetMapWriter(ChunkStart.SESSION)
    writer.append(0, None, 10, 100)
    writer.append(10, None, 5, 110)
    assert taken(writer) == [session((0, 100, 15))]


def test_open_chunk_is_written_again_only_if_it_has_grown() -> None:
    writer = OffsetMapWriter(ChunkStart.SESSION)
    writer.append(0, ((0, 5), (7, 5)), 10, 0)
    assert taken(writer) == [session((0, 0, 5), (7, 5, 5))]
    assert taken(writer) == []
    writer.append(12, None, 1, 10)
    assert taken(writer) == [session((0, 0, 5), (7, 5, 6))]


def test_full_chunk_is_followed_by_one_that_continues() -> None:
    writer = OffsetMapWriter(ChunkStart.SESSION, max_runs=2)
    writer.append(0, ((0, 1), (2, 1), (4, 1)), 3, 0)
    assert taken(writer) == [session((0, 0, 1), (2, 1, 1)), continued((4, 2, 1))]
    writer.append(6, None, 1, 3)
    assert taken(writer) == [continued((4, 2, 1), (6, 3, 1))]


def test_chunk_is_full_by_bytes_as_well() -> None:
    writer = OffsetMapWriter(ChunkStart.SESSION, max_bytes=100)
    for n in range(50):
        writer.append(n << 40, None, 1, n)
    sizes = [len(chunk.value) for chunk in writer.take_changed()]
    assert len(sizes) > 2
    assert max(sizes) < 120


@pytest.mark.parametrize(
    ("upstream", "downstream"), [(5, 10), (10, 5)], ids=["copied again", "target truncated"]
)
def test_going_back_on_either_side_begins_a_chunk(upstream: int, downstream: int) -> None:
    writer = OffsetMapWriter(ChunkStart.SESSION)
    writer.append(0, None, 10, 0)
    writer.append(upstream, None, 3, downstream)
    assert taken(writer) == [session((0, 0, 10)), continued((upstream, downstream, 3))]


def test_chunk_that_begins_where_an_unwritten_one_did_is_written_last() -> None:
    writer = OffsetMapWriter(ChunkStart.SESSION)
    writer.append(5, None, 2, 5)
    writer.append(0, None, 2, 7)
    writer.append(5, None, 1, 5)
    assert taken(writer) == [continued((0, 7, 2)), continued((5, 5, 1))]


def test_start_of_a_task_is_recorded_before_anything_is_copied() -> None:
    writer = OffsetMapWriter(ChunkStart.SESSION)
    writer.append(7, None, 0, 70)
    assert taken(writer) == [session((7, 70, 0))]
    writer.append(7, None, 4, 70)
    assert taken(writer) == [session((7, 70, 4))]


def test_new_log_begins_a_marked_chunk() -> None:
    writer = OffsetMapWriter(ChunkStart.SESSION)
    writer.append(0, None, 5, 0)
    writer.start_new_log()
    writer.append(5, None, 5, 5)
    assert taken(writer) == [session((0, 0, 5)), Chunk(ChunkStart.NEW_LOG, (OffsetRun(5, 5, 5),))]


def test_chunks_of_a_topic_with_many_gaps_stay_small() -> None:
    writer = OffsetMapWriter(ChunkStart.SESSION)
    for n in range(3 * MAX_CHUNK_RUNS):
        writer.append(101 * n, None, 100, 100 * n)
    sizes = [len(chunk.value) for chunk in writer.take_changed()]
    assert len(sizes) == 3
    assert max(sizes) < 3 * MAX_CHUNK_RUNS < MAX_CHUNK_BYTES


steps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 5)), max_size=60)


@given(steps, st.integers(1, 5), st.integers(1, 9))
def test_written_chunks_make_the_same_map_as_the_batches(
    batches: list[tuple[int, int, int]], max_runs: int, flush_every: int
) -> None:
    writer = OffsetMapWriter(ChunkStart.CONTINUES, max_runs=max_runs)
    by_batch, by_chunk = OffsetMap(), OffsetMap()
    upstream = downstream = 0
    for n, (missing, gap, count) in enumerate(batches):
        upstream, downstream = upstream + missing, downstream + gap
        writer.append(upstream, None, count, downstream)
        by_batch.append(upstream, None, count, downstream)
        upstream, downstream = upstream + count, downstream + count
        if n % flush_every == 0:
            for chunk in taken(writer):
                by_chunk.apply(chunk)
    for chunk in taken(writer):
        by_chunk.apply(chunk)
    assert by_chunk.runs == by_batch.runs
