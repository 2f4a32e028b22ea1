"""Exact translation of offsets: tables, and a copied partition that crashes at random."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.translation.offset_map import OffsetMap
from sparkmirror.mirror.translation.offset_map_chunks import Chunk, ChunkStart, OffsetRun
from tests.mirror.mirrored_partition import MirroredPartition


def map_of(*batches: tuple[int, int, int]) -> OffsetMap:
    """A map of batches without gaps: upstream, downstream, count."""
    offset_map = OffsetMap()
    for upstream, downstream, count in batches:
        offset_map.append(upstream, None, count, downstream)
    return offset_map


def test_batches_that_follow_each_other_become_one_run() -> None:
    assert map_of((5, 100, 10), (15, 110, 1), (16, 111, 4)).runs == (OffsetRun(5, 100, 15),)


def test_gaps_on_either_side_begin_a_run() -> None:
    offset_map = OffsetMap()
    offset_map.append(0, ((0, 5), (7, 2)), 7, 0)
    offset_map.append(9, None, 4, 8)
    assert offset_map.runs == (OffsetRun(0, 0, 5), OffsetRun(7, 5, 2), OffsetRun(9, 8, 4))


@pytest.mark.parametrize(
    ("upstream", "downstream"),
    [
        pytest.param(9, None, id="before everything"),
        pytest.param(10, 100, id="first record"),
        pytest.param(14, 104, id="inside a run"),
        pytest.param(15, 105, id="in a gap"),
        pytest.param(19, 105, id="end of a gap"),
        pytest.param(20, 105, id="after a gap"),
        pytest.param(24, 109, id="last before the target's gap"),
        pytest.param(25, 113, id="after the target's gap"),
        pytest.param(29, 117, id="last record"),
        pytest.param(30, 118, id="the end"),
        pytest.param(99, 118, id="past the end"),
    ],
)
def test_offset_is_translated(upstream: int, downstream: int | None) -> None:
    offset_map = map_of((10, 100, 5), (20, 105, 5), (25, 113, 5))
    assert offset_map.translate(upstream) == downstream


def test_gap_on_both_sides_is_translated_to_before_the_target_gap() -> None:
    """The gap may contain records of a lost chunk."""
    assert map_of((0, 0, 5), (10, 20, 5)).translate(7) == 5


def test_equal_offsets_on_both_sides_are_nothing_special() -> None:
    assert map_of((0, 0, 5), (10, 10, 5)).translate(12) == 12


def test_empty_map_translates_nothing() -> None:
    assert OffsetMap().translate(0) is None
    assert OffsetMap().runs == ()


def test_start_of_a_task_covers_offsets_before_its_first_record() -> None:
    offset_map = map_of((10, 50, 0), (13, 50, 5))
    assert [offset_map.translate(upstream) for upstream in (9, 10, 12, 13, 14)] == [
        None, 50, 50, 50, 51,
    ]  # fmt: skip


def test_offsets_before_the_targets_first_record_lead_to_it() -> None:
    """Compaction removed what the source began with: there is nothing that they could miss."""
    offset_map = map_of((10, 0, 5))
    assert [offset_map.translate(upstream) for upstream in (0, 9, 10, 11)] == [0, 0, 0, 1]


def test_later_copy_is_used_when_it_has_caught_up() -> None:
    offset_map = map_of((0, 0, 101), (90, 101, 10))
    assert offset_map.is_catching_up
    assert [offset_map.translate(n) for n in (89, 95, 100, 101)] == [89, 95, 100, 101]
    offset_map.append(100, None, 1, 111)
    assert not offset_map.is_catching_up
    assert [offset_map.translate(n) for n in (89, 95, 100, 101)] == [89, 106, 111, 112]
    offset_map.append(101, None, 50, 112)
    assert offset_map.runs == (OffsetRun(0, 0, 90), OffsetRun(90, 101, 61))


def test_later_copy_that_is_broken_off_is_not_used() -> None:
    offset_map = map_of((0, 0, 101), (90, 101, 10), (80, 111, 30))
    assert offset_map.translate(85) == 85
    offset_map.append(110, None, 1, 141)
    assert offset_map.runs == (OffsetRun(0, 0, 80), OffsetRun(80, 111, 31))


def test_new_session_waits_for_as_many_records_as_were_unreported() -> None:
    offset_map = map_of((0, 0, 90))
    offset_map.begin_session()
    offset_map.append(90, None, 10, 101)
    assert offset_map.translate(95) == 90
    offset_map.append(100, None, 1, 111)
    assert offset_map.translate(95) == 106


def test_new_session_that_continues_is_used_at_once() -> None:
    offset_map = map_of((0, 0, 90))
    offset_map.begin_session()
    offset_map.append(90, None, 1, 90)
    assert offset_map.runs == (OffsetRun(0, 0, 91),)


def test_gap_on_the_target_within_a_session_is_no_reason_to_wait() -> None:
    assert map_of((0, 0, 90), (90, 190, 1)).translate(90) == 190


def test_truncated_target_forgets_what_it_lost() -> None:
    offset_map = map_of((0, 0, 1001), (1001, 501, 100))
    assert offset_map.runs == (OffsetRun(0, 0, 501), OffsetRun(1001, 501, 100))
    assert offset_map.translate(700) == 501


def test_target_truncated_while_catching_up_starts_over() -> None:
    offset_map = map_of((0, 0, 101), (90, 101, 5), (95, 103, 5))
    assert offset_map.is_catching_up
    assert offset_map.translate(96) == 96
    offset_map.append(100, None, 3, 108)
    assert offset_map.runs == (OffsetRun(0, 0, 95), OffsetRun(95, 103, 8))


def test_recreated_source_replaces_all() -> None:
    offset_map = map_of((0, 0, 1000))
    offset_map.apply(Chunk(ChunkStart.NEW_LOG, (OffsetRun(0, 1000, 10),)))
    assert offset_map.runs == (OffsetRun(0, 1000, 10),)


@pytest.mark.parametrize(
    ("log_start", "runs"),
    [
        (0, 3),
        (10, 3),
        (14, 3),
        (19, 3),
        (20, 2),
        (30, 1),
        (1000, 1),
    ],
)
def test_pruned_map_translates_all_that_the_source_still_has(log_start: int, runs: int) -> None:
    batches = (10, 100, 5), (20, 105, 5), (30, 110, 5)
    offset_map, whole = map_of(*batches), map_of(*batches)
    assert offset_map.prune(log_start) == ()
    assert len(offset_map.runs) == runs
    for upstream in range(log_start, 50):
        assert offset_map.translate(upstream) == whole.translate(upstream)


def chunk(*runs: tuple[int, int, int], start: ChunkStart = ChunkStart.CONTINUES) -> Chunk:
    return Chunk(start, tuple(OffsetRun(*run) for run in runs))


def test_chunk_that_has_grown_is_no_second_copy() -> None:
    offset_map = OffsetMap()
    offset_map.apply(chunk((0, 0, 5), (10, 5, 5)))
    offset_map.apply(chunk((0, 0, 5), (10, 5, 8), (20, 13, 1)))
    assert not offset_map.is_catching_up
    assert offset_map.runs == (OffsetRun(0, 0, 5), OffsetRun(10, 5, 8), OffsetRun(20, 13, 1))


def test_chunk_that_has_grown_while_catching_up_is_no_third_copy() -> None:
    offset_map = OffsetMap()
    offset_map.apply(chunk((0, 0, 101)))
    offset_map.apply(chunk((90, 101, 2), start=ChunkStart.SESSION))
    offset_map.apply(chunk((90, 101, 5), start=ChunkStart.SESSION))
    assert offset_map.is_catching_up
    offset_map.apply(chunk((90, 101, 11), start=ChunkStart.SESSION))
    assert offset_map.runs == (OffsetRun(0, 0, 90), OffsetRun(90, 101, 11))


def test_chunk_that_is_shorter_than_before_means_a_truncated_target() -> None:
    offset_map = OffsetMap()
    offset_map.apply(chunk((0, 0, 50)))
    offset_map.apply(chunk((0, 0, 10)))
    assert offset_map.runs == (OffsetRun(0, 0, 10),)


def test_prune_names_the_chunks_that_are_not_needed() -> None:
    offset_map = OffsetMap()
    for first in (0, 100, 200, 300):
        offset_map.apply(chunk((first, first, 100)))
    assert offset_map.prune(99) == ()
    assert offset_map.prune(250) == ((0, 0), (100, 100))
    assert offset_map.prune(250) == ()
    assert offset_map.prune(10_000) == ((200, 200),)


def test_prune_names_chunks_that_a_later_copy_replaced() -> None:
    offset_map = OffsetMap()
    offset_map.apply(chunk((0, 0, 100)))
    offset_map.apply(chunk((100, 100, 100)))
    offset_map.apply(chunk((50, 200, 100), start=ChunkStart.SESSION))
    assert offset_map.prune(0) == (), "still needed: the later copy is behind"
    offset_map.apply(chunk((150, 300, 100)))
    assert offset_map.prune(0) == ((100, 100),)


def test_full_map_forgets_old_runs_and_stays_safe() -> None:
    offset_map, whole = OffsetMap(max_runs=16), OffsetMap()
    for n in range(500):
        for each in (offset_map, whole):
            each.append(10 * n, None, 5, 5 * n)
    assert len(offset_map.runs) <= 16
    assert offset_map.translate(0) == 0
    for upstream in range(5000):
        exact, thinned = whole.translate(upstream), offset_map.translate(upstream)
        assert exact is not None
        assert thinned is not None
        assert thinned <= exact
        if upstream > 4950:
            assert thinned == exact


sizes = st.integers(1, 12)
usual_steps = st.one_of(
    st.tuples(st.just("produce"), sizes),
    st.tuples(st.just("produce after a gap"), sizes),
    st.tuples(st.just("copy"), sizes),
    st.tuples(st.just("copy"), sizes),
    st.tuples(st.just("compact"), sizes),
    st.tuples(st.just("marker"), st.just(1)),
    st.tuples(st.just("flush"), st.just(0)),
    st.tuples(st.just("reload"), st.just(0)),
    st.tuples(st.just("compact map topic"), st.just(0)),
)
crashing_steps = st.one_of(
    usual_steps,
    st.tuples(st.just("commit"), st.just(0)),
    st.tuples(st.just("crash"), st.just(0)),
    st.tuples(st.just("prune"), sizes),
)
Step = tuple[str, int]


def take(partition: MirroredPartition, step: Step) -> None:
    name, size = step
    match name:
        case "produce":
            partition.produce(size)
        case "produce after a gap":
            partition.produce(size, missing=2)
        case "copy":
            partition.copy(size)
        case "compact":
            partition.compact(size)
        case "marker":
            partition.put_marker()
        case "flush":
            partition.flush()
        case "reload":
            partition.reload()
        case "compact map topic":
            partition.compact_map_topic()
        case "commit":
            partition.commit()
        case "crash":
            partition.crash()
            partition.mark_start()
        case "prune":
            partition.prune(min(partition.committed, 3 * size))


@settings(max_examples=300)
@given(st.lists(crashing_steps, max_size=60), st.sampled_from([4, 1 << 16]))
def test_no_record_is_ever_missed(steps: list[Step], max_runs: int) -> None:
    partition = MirroredPartition(max_runs)
    partition.mark_start()
    for step in steps:
        take(partition, step)
        partition.check_nothing_is_missed()
    for upstream in range(0, partition.next_upstream + 1, 5):
        partition.check_order(upstream)


@given(st.lists(usual_steps, max_size=60))
def test_no_record_is_read_twice_without_a_crash(steps: list[Step]) -> None:
    partition = MirroredPartition()
    partition.mark_start()
    # Compaction of what is copied already would remove it from the source only.
    for step in steps:
        if step[0] != "compact" or not partition.target:
            take(partition, step)
    partition.flush()
    partition.check_exact(0)
    partition.reload()
    partition.check_exact(0)


@given(st.lists(crashing_steps, max_size=40), sizes)
def test_no_record_is_read_twice_after_the_later_copy_has_caught_up(
    steps: list[Step], batch: int
) -> None:
    partition = MirroredPartition()
    partition.mark_start()
    for step in steps:
        take(partition, step)
    partition.crash()
    resumed_at = partition.position
    partition.produce(len(partition.target) + 1)
    while partition.position < partition.next_upstream:
        partition.copy(batch)
    partition.flush()
    assert not partition.map.is_catching_up
    first = next(offset for offset in partition.source if offset >= resumed_at)
    partition.check_exact(first)
    partition.check_nothing_is_missed()


def test_source_lost_while_catching_up_leaves_the_whole_earlier_copy_to_read() -> None:
    """The disaster that a mirror is for, at the worst moment."""
    partition = MirroredPartition()
    partition.mark_start()
    partition.produce(100)
    partition.copy(50)
    partition.flush()
    partition.commit()
    partition.copy(50)
    partition.crash()
    partition.mark_start()
    partition.copy(10)
    partition.flush()
    position = partition.map.translate(55)
    assert position == 50
    assert set(partition.read_from(position)) == set(range(50, 100))


def test_where_a_task_begins_is_not_a_record() -> None:
    found = OffsetMap()
    found.apply(Chunk(ChunkStart.SESSION, (OffsetRun(0, 0, 0),)))
    assert not found.has_records
    found.apply(Chunk(ChunkStart.SESSION, (OffsetRun(0, 0, 3),)))
    assert found.has_records
    assert [found.translate(offset) for offset in (0, 2, 5)] == [0, 2, 3]


def test_where_a_task_began_counts_until_a_second_copy_has_the_unreported_records() -> None:
    found = OffsetMap()
    found.apply(Chunk(ChunkStart.SESSION, (OffsetRun(0, 0, 0),)))  # copied 10 records, and crashed
    found.apply(Chunk(ChunkStart.SESSION, (OffsetRun(0, 10, 0),)))
    assert found.has_records
    for copied in range(1, 10):
        found.apply(Chunk(ChunkStart.SESSION, (OffsetRun(0, 10, copied),)))
        assert [found.translate(offset) for offset in (0, 5, 9)] == [0, 0, 0]
    found.apply(Chunk(ChunkStart.SESSION, (OffsetRun(0, 10, 10),)))
    assert [found.translate(offset) for offset in (0, 5, 10)] == [10, 15, 20]
