"""Translation of group offsets, with the cases of Kafka's OffsetSyncStoreTest."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import accumulate, combinations, groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.records import OffsetSync
from sparkmirror.mirror.translation.offset_sync_store import (
    SLOTS,
    TOO_OLD,
    UNKNOWN,
    OffsetSyncStore,
    Translation,
    TranslationKind,
)
from sparkmirror.types import TopicPartition

TP = TopicPartition("topic1", 2)
LONG_MAX = 2**63 - 1


def sync(upstream: int, downstream: int) -> OffsetSync:
    return OffsetSync(TP.topic, TP.partition, upstream, downstream)


def loaded(
    before: Iterable[int], after: Iterable[int] = (), must_read_to_end: bool = False
) -> OffsetSyncStore:
    """A store that read syncs of equal offsets before and after the end of its start."""
    store = OffsetSyncStore(must_read_to_end)
    for offset in before:
        store.add(sync(offset, offset))
    store.finish_load()
    for offset in after:
        store.add(sync(offset, offset))
    return store


def distinct(store: OffsetSyncStore) -> list[int]:
    return list(dict.fromkeys(slot.upstream_offset for slot in store.slots(TP)))


def translate(store: OffsetSyncStore, offset: int) -> int | None:
    return store.translate_downstream(TP, offset).downstream_offset


VECTOR_A = [10000, 9990, 9970, 9940, 9880, 9640, 9160, 8680, 6760, 4840, 1000]
VECTOR_B_LOADED = [1000, 990, 960, 900, 840, 720, 480, 0]
VECTOR_B_LIVE = [10000, 9990, 9960, 9900, 9840, 9600, 9120, 8640, 7680, 3840, 0]


def store_of_vector_a() -> OffsetSyncStore:
    return loaded(range(0, 1001, 10), range(1010, 10001, 10), must_read_to_end=True)


def test_vector_a_only_the_last_sync_of_the_load_is_kept() -> None:
    store = store_of_vector_a()
    assert distinct(store) == VECTOR_A
    assert store.translate_downstream(TP, 999) == TOO_OLD
    assert translate(store, 4839) == 1001
    assert translate(store, 4840) == 4840
    assert translate(store, 4842) == 4841


def test_vector_a_going_back_throws_all_away() -> None:
    store = store_of_vector_a()
    store.add(sync(1500, 11000))
    assert store.translate_downstream(TP, 1499) == TOO_OLD
    assert translate(store, 1500) == 11000
    assert translate(store, 2000) == 11001


def test_vector_b_all_syncs_of_the_load_count() -> None:
    assert distinct(loaded(range(0, 1001, 10))) == VECTOR_B_LOADED
    assert distinct(loaded(range(0, 1001, 10), range(1000, 10001, 10))) == VECTOR_B_LIVE


def test_vector_c_slots_are_ever_farther_apart() -> None:
    slots = loaded([], range(20)).slots(TP)
    assert [slot.upstream_offset for slot in slots] == [19, 18, 16, 12, 8] + [0] * 59


def test_vector_d_rewinds_on_either_side() -> None:
    store = loaded([])
    store.add(sync(100, 200))
    assert translate(store, 150) == 201
    store.add(sync(150, 251))
    assert translate(store, 150) == 251
    assert store.translate_downstream(TP, 5) == TOO_OLD
    store.add(sync(200, 10))
    assert translate(store, 200) == 10
    store.add(sync(20, 20))
    assert translate(store, 20) == 20


@pytest.mark.parametrize("must_read_to_end", [True, False])
def test_nothing_is_translated_before_the_topic_was_read(must_read_to_end: bool) -> None:
    store = OffsetSyncStore(must_read_to_end)
    store.add(sync(100, 200))
    assert store.translate_downstream(TP, 100) == UNKNOWN
    store.finish_load()
    assert store.translate_downstream(TP, 100) == Translation.to(200)


def test_partition_without_syncs_is_unknown() -> None:
    assert loaded([]).translate_downstream(TP, 0) == UNKNOWN
    other = TopicPartition(TP.topic, TP.partition + 1)
    assert loaded([0]).translate_downstream(other, 0) == UNKNOWN
    assert loaded([0]).slots(other) == ()


@pytest.mark.parametrize(
    ("translation", "kind", "offset"),
    [
        (UNKNOWN, TranslationKind.UNKNOWN, None),
        (TOO_OLD, TranslationKind.TOO_OLD, None),
        (Translation.to(0), TranslationKind.OFFSET, 0),
    ],
)
def test_translations_say_their_kind(
    translation: Translation, kind: TranslationKind, offset: int | None
) -> None:
    assert (translation.kind, translation.downstream_offset) == (kind, offset)


def test_equal_upstream_offset_is_no_rewind() -> None:
    store = loaded([0, 100])
    store.add(sync(100, 500))
    assert translate(store, 100) == 500
    assert translate(store, 50) == 1


def assert_invariants(slots: tuple[OffsetSync, ...], newest: OffsetSync, oldest: int) -> None:
    assert len(slots) == SLOTS
    assert slots[0] is newest, "invariant A"
    assert slots[-1].upstream_offset == oldest, "invariant D"
    assert_spacing(slots)


def assert_spacing(slots: tuple[OffsetSync, ...]) -> None:
    """Invariants B and C of all pairs: of equal syncs, the two slots nearest each other decide."""
    held = [list(group) for _, group in groupby(enumerate(slots), key=lambda slot: id(slot[1]))]
    for left, right in combinations(held, 2):
        (i, newer), (j, older) = left[-1], right[0]
        u, v = newer.upstream_offset, older.upstream_offset
        assert u <= v + 2**j - 2**i, f"invariant B for {i}, {j}"
        assert u >= v + 2 ** max(i - 2, 0), f"invariant C for {i}, {j}"


def most_expired(offsets: Iterable[int]) -> int:
    """Feed syncs, check the invariants after each; how many one of them threw away at most."""
    store = loaded([])
    most, first = 0, None
    before: set[int] = set()
    for offset in offsets:
        first = offset if first is None else first
        newest = sync(offset, offset)
        store.add(newest)
        assert_invariants(store.slots(TP), newest, first)
        after = set(distinct(store))
        most = max(most, len(before - after))
        before = after
    return most


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_evenly_spaced_syncs_expire_at_most_one(bits: int) -> None:
    step = 2**bits - 1
    assert most_expired(range(0, 100 * step, step)) <= 1


def test_spacing_holds_up_to_the_last_offset_there_is() -> None:
    store = loaded([], range(0, LONG_MAX, LONG_MAX // 500))
    assert_spacing(store.slots(TP))
    assert len(distinct(store)) > 5


@pytest.mark.parametrize("bits", range(1, 12))
def test_random_steps_expire_at_most_their_spread(bits: int) -> None:
    random_steps = random.Random(bits)
    steps = (random_steps.randrange(2**bits) + 1 for _ in range(200))
    assert most_expired(accumulate(steps)) <= bits + 2


def test_half_dropped_syncs_expire_at_most_two() -> None:
    chance = random.Random(7)
    steps = (100 if chance.random() < 0.5 else 200 for _ in range(300))
    assert most_expired(accumulate(steps)) <= 2


@st.composite
def histories(draw: st.DrawFn) -> list[OffsetSync]:
    """Syncs of a partition whose records may have gaps upstream, in rising order."""
    steps = st.tuples(st.integers(1, 60), st.integers(0, 40))
    upstream = downstream = 0
    syncs = []
    for copied, missing in draw(st.lists(steps, min_size=1, max_size=60)):
        syncs.append(sync(upstream, downstream))
        upstream += copied + missing
        downstream += copied
    return syncs


def translations(store: OffsetSyncStore, offsets: Iterable[int]) -> Iterator[int]:
    for offset in offsets:
        if (translated := translate(store, offset)) is not None:
            yield translated


@given(histories(), st.integers(0, 60))
def test_translation_is_never_ahead_and_never_falls_with_the_group(
    syncs: list[OffsetSync], read_in_load: int
) -> None:
    store = OffsetSyncStore(must_read_to_end=False)
    for index, each in enumerate(syncs):
        if index == read_in_load:
            store.finish_load()
        store.add(each)
    store.finish_load()
    assert_invariants(store.slots(TP), syncs[-1], syncs[0].upstream_offset)
    for known in syncs:
        translated = translate(store, known.upstream_offset)
        assert translated is not None
        assert translated <= known.downstream_offset
    last = syncs[-1].upstream_offset
    assert all(a <= b for a, b in pairwise(translations(store, range(last + 100))))
