"""Forwarding by example: what stays in place, what is dropped, counted, and refused."""

from __future__ import annotations

from collections import Counter

import pytest

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules, Plan, Reason, plan, split, stamp
from sparkmirror.batches.records import Record, decode, encode
from sparkmirror.errors import BatchError
from tests.batches.logs import checked_records, mirrored
from tests.batches.sources import SourceBatch, marker, message, wrapper

ALONE = ForwardRules(merge_below_bytes=0, merge_compressed_below_bytes=0)
COMMITTED = ForwardRules(read_committed=True)
PRODUCER = 7


def records_at(offset: int, count: int, value: bytes = b"value") -> tuple[Record, ...]:
    return tuple(Record(offset + n, 1000 + n, b"k", value) for n in range(count))


def batch_at(offset: int, count: int = 3, codec: Codec = Codec.NONE) -> SourceBatch:
    return SourceBatch(records_at(offset, count), base_offset=offset, codec=codec)


def fetched(*batches: SourceBatch | bytes) -> memoryview:
    parts = [b if isinstance(b, bytes) else bytes(b.encode()) for b in batches]
    return memoryview(bytearray(b"".join(parts)))


def plan_all(
    records: memoryview,
    rules: ForwardRules = ALONE,
    next_offset: int = 0,
    aborted: tuple[tuple[int, int], ...] = (),
) -> tuple[Plan, Counter[Reason]]:
    slow: Counter[Reason] = Counter()
    planned = plan(records, next_offset, aborted, rules, slow)
    for batch in planned.batches:
        stamp(batch.view, 1, 0, 0)
    return planned, slow


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_plain_batch_stays_in_the_receive_buffer(codec: Codec) -> None:
    buffer = fetched(batch_at(40, codec=codec), batch_at(43, codec=codec))
    before = bytes(buffer)
    planned, slow = plan_all(buffer, next_offset=40)
    first, second = planned.batches
    assert bytes(first.view) + bytes(second.view) == bytes(buffer)
    assert bytes(first.view[61:]) == before[61 : first.size]
    assert (first.first_offset, first.last_offset, first.count) == (40, 42, 3)
    assert (first.base_timestamp, first.max_timestamp, first.runs) == (1000, 1002, None)
    assert planned.next_offset == 46
    assert not slow


def test_stamp_writes_producer_fields_and_crc_again_and_again() -> None:
    planned, _ = plan_all(fetched(batch_at(0)))
    view = planned.batches[0].view
    for producer_id, epoch, sequence in ((5, 1, 9), (1 << 40, 32767, 2**31 - 1), (-1, -1, -1)):
        stamp(view, producer_id, epoch, sequence)
        assert int.from_bytes(view[43:51], "big", signed=True) == producer_id
        assert int.from_bytes(view[51:53], "big", signed=True) == epoch
        assert int.from_bytes(view[53:57], "big", signed=True) == sequence
        assert len(decode(view)) == 3


@pytest.mark.parametrize(
    "batch",
    [
        SourceBatch(records_at(0, 3), transactional=True, producer_id=PRODUCER),
        SourceBatch(records_at(0, 3), delete_horizon=True, base_timestamp=5000),
    ],
    ids=["transactional", "delete-horizon"],
)
def test_attribute_bits_are_cleared_in_place(batch: SourceBatch) -> None:
    planned, slow = plan_all(fetched(batch))
    assert mirrored(planned) == list(batch.records)
    assert isinstance(planned.batches[0].view, memoryview)
    assert not slow


def test_control_and_empty_batches_are_dropped_but_passed() -> None:
    empty = SourceBatch((), base_offset=4, last_offset=8)
    buffer = fetched(batch_at(0), marker(3, PRODUCER, commit=True), empty)
    planned, slow = plan_all(buffer)
    assert [batch.last_offset for batch in planned.batches] == [2]
    assert planned.next_offset == 9
    assert slow == {Reason.CONTROL: 1, Reason.EMPTY: 1}


def test_only_dropped_batches_still_move_the_position() -> None:
    planned, _ = plan_all(fetched(marker(3, PRODUCER, commit=False)), next_offset=3)
    assert (planned.batches, planned.next_offset) == ([], 4)


def aborted_transaction() -> memoryview:
    return fetched(
        SourceBatch(records_at(0, 2), 0, transactional=True, producer_id=PRODUCER),
        batch_at(2, 2),
        SourceBatch(records_at(4, 2), 4, transactional=True, producer_id=PRODUCER),
        marker(6, PRODUCER, commit=False),
        SourceBatch(records_at(7, 2), 7, transactional=True, producer_id=PRODUCER),
        marker(9, PRODUCER, commit=True),
    )


@pytest.mark.parametrize("rules", [COMMITTED, ForwardRules(True, merge_below_bytes=0)])
def test_aborted_data_is_dropped_when_reading_committed(rules: ForwardRules) -> None:
    planned, slow = plan_all(aborted_transaction(), rules, aborted=((PRODUCER, 0),))
    assert [record.offset for record in mirrored(planned)] == [2, 3, 7, 8]
    assert (slow[Reason.ABORTED], slow[Reason.CONTROL]) == (2, 2)
    assert planned.aborted_records == 4


def test_aborted_data_is_copied_when_reading_uncommitted() -> None:
    planned, _ = plan_all(aborted_transaction(), aborted=((PRODUCER, 0),))
    assert [record.offset for record in mirrored(planned)] == [0, 1, 2, 3, 4, 5, 7, 8]


def test_offset_gaps_are_closed_and_offsets_kept_as_runs() -> None:
    kept = tuple(record for record in records_at(10, 300) if record.offset % 100 not in {3, 4, 99})
    batch = SourceBatch(kept, base_offset=10, last_offset=309)
    planned, slow = plan_all(fetched(batch), next_offset=10)
    assert mirrored(planned) == list(kept)
    assert planned.batches[0].runs == (
        (10, 89), (100, 3), (105, 94), (200, 3), (205, 94), (300, 3), (305, 5),
    )  # fmt: skip
    assert planned.next_offset == 310
    assert slow == {Reason.OFFSET_GAPS: 1}


@pytest.mark.parametrize("next_offset", [10, 11, 12, 13, 20])
@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_records_before_the_position_are_cut(next_offset: int, codec: Codec) -> None:
    planned, _ = plan_all(fetched(batch_at(10, codec=codec)), next_offset=next_offset)
    assert [r.offset for r in mirrored(planned)] == list(range(next_offset, 13))
    assert planned.next_offset == max(13, next_offset)


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_append_time_becomes_the_record_timestamp(codec: Codec) -> None:
    batch = SourceBatch(records_at(0, 3), codec=codec, append_time=7777)
    planned, slow = plan_all(fetched(batch))
    assert [record.timestamp for record in mirrored(planned)] == [7777] * 3
    assert slow == {Reason.LOG_APPEND_TIME: 1}


def test_append_time_of_equal_timestamps_needs_no_new_body() -> None:
    records = tuple(record._replace(timestamp=5) for record in records_at(0, 3))
    batch = SourceBatch(records, codec=Codec.ZSTD, append_time=7777)
    planned, _ = plan_all(fetched(batch))
    assert [record.timestamp for record in mirrored(planned)] == [7777] * 3
    assert isinstance(planned.batches[0].view, memoryview)


def test_append_time_is_left_to_a_target_that_stamps_itself() -> None:
    batch = SourceBatch(records_at(0, 3), append_time=7777)
    planned, slow = plan_all(fetched(batch), ForwardRules(keep_append_time=False))
    assert [record.timestamp for record in decode(planned.batches[0].view)] == [1000, 1001, 1002]
    assert not slow


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_set_codec_recompresses_all_but_its_own(codec: Codec) -> None:
    batches = [batch_at(3 * n, codec=each) for n, each in enumerate(Codec)]
    rules = ForwardRules(codec=codec, merge_below_bytes=0, merge_compressed_below_bytes=0)
    planned, slow = plan_all(fetched(*batches), rules)
    assert [batch.view[22] for batch in planned.batches] == [codec] * 5
    assert [record.offset for record in mirrored(planned)] == list(range(15))
    assert slow == {Reason.RECODED: 4}


@pytest.mark.parametrize("count", [2, 15, 16, 500])
def test_tiny_neighbours_are_merged(count: int) -> None:
    batches = [batch_at(n, 1) for n in range(count)]
    planned, slow = plan_all(fetched(*batches), ForwardRules())
    assert [(batch.count, batch.runs) for batch in planned.batches] == [(count, None)]
    assert mirrored(planned) == [record for batch in batches for record in batch.records]
    assert slow == {Reason.MERGED: count}


@pytest.mark.parametrize("next_offset", [1, 2, 4, 5])
@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_merging_leaves_out_what_lies_before_the_position(next_offset: int, codec: Codec) -> None:
    batches = [batch_at(3 * n, codec=codec) for n in range(3)]
    planned, _ = plan_all(fetched(*batches), ForwardRules(), next_offset)
    assert [batch.count for batch in planned.batches] == [9 - next_offset]
    assert [record.offset for record in mirrored(planned)] == list(range(next_offset, 9))


def test_merging_refuses_a_record_that_does_not_fill_its_batch() -> None:
    batches = [batch_at(n, 1).encode() for n in range(40)]
    batches[30][61] -= 2  # the record's length, zigzagged
    rules = ForwardRules(check_crcs=False)
    with pytest.raises(BatchError, match="merge batch at offset 30: its record does not fill it"):
        plan_all(fetched(*(bytes(batch) for batch in batches)), rules)


def test_merged_bytes_are_those_a_producer_would_write() -> None:
    records = [Record(n, 5000 + 997 * n, b"k", b"v" * n) for n in range(200)]
    singles = [SourceBatch((record,), record.offset) for record in records]
    pairs = [SourceBatch(tuple(records[n : n + 2]), n) for n in range(0, 200, 2)]
    for batches in (singles, pairs):
        planned, _ = plan_all(fetched(*batches), ForwardRules())
        (merged,) = planned.batches
        stamp(merged.view, -1, -1, -1)
        assert merged.view == encode(records)


def test_merged_batches_stay_below_their_bound() -> None:
    batches = [SourceBatch(records_at(n, 1, bytes(900)), n) for n in range(100)]
    rules = ForwardRules(merge_into_bytes=10_000)
    planned, _ = plan_all(fetched(*batches), rules)
    assert [batch.count for batch in planned.batches] == [10] * 10
    assert all(batch.size <= 10_000 for batch in planned.batches)


@pytest.mark.parametrize("count", [3, 40])
def test_markers_between_tiny_batches_do_not_keep_them_apart(count: int) -> None:
    parts: list[SourceBatch] = []
    for n in range(count):
        data = SourceBatch(records_at(2 * n, 1), 2 * n, transactional=True, producer_id=PRODUCER)
        parts += (data, marker(2 * n + 1, PRODUCER, commit=True))
    planned, slow = plan_all(fetched(*parts), COMMITTED)
    (merged,) = planned.batches
    assert merged.runs == tuple((2 * n, 1) for n in range(count))
    assert planned.next_offset == 2 * count
    assert slow == {Reason.CONTROL: count, Reason.MERGED: count}
    assert len(checked_records(merged)) == count


def test_tiny_batches_of_another_codec_start_a_new_one() -> None:
    codecs = [Codec.LZ4, Codec.LZ4, Codec.ZSTD, Codec.ZSTD, Codec.NONE]
    batches = [batch_at(3 * n, codec=codec) for n, codec in enumerate(codecs)]
    planned, _ = plan_all(fetched(*batches), ForwardRules())
    assert [(batch.count, batch.view[22]) for batch in planned.batches] == [(6, 3), (6, 4), (3, 0)]


def test_small_batches_of_much_content_go_as_they_are() -> None:
    large = [
        SourceBatch(records_at(at, 1, bytes(4 << 20)), base_offset=at, codec=Codec.ZSTD)
        for at in range(2, 5)
    ]
    small = [batch_at(at, 1, Codec.ZSTD) for at in (0, 1, 5, 6)]
    buffer = fetched(*small[:2], *large, *small[2:])
    planned, slow = plan_all(buffer, ForwardRules(limit_bytes=1 << 20))
    assert [batch.count for batch in planned.batches] == [2, 1, 1, 1, 2]
    assert slow == {Reason.MERGED: 4}


def test_order_is_kept_around_what_waits_for_neighbours() -> None:
    big = SourceBatch(records_at(2, 1, bytes(20_000)), 2)
    old = message(Record(5, 123, None, b"old"), 1)
    buffer = fetched(batch_at(0, 1), batch_at(1, 1), big, batch_at(3, 2), old, batch_at(6, 1))
    planned, _ = plan_all(buffer, ForwardRules())
    assert [batch.first_offset for batch in planned.batches] == [0, 2, 3, 5, 6]


def test_old_messages_become_batches() -> None:
    records = [Record(n, 100 - n, b"k", b"v" * n) for n in range(6)]
    parts = [message(record, 1) for record in records[:3]]
    parts.append(wrapper(records[3:], 1, Codec.GZIP))
    planned, slow = plan_all(fetched(*parts), next_offset=1)
    assert [(batch.count, batch.view[22]) for batch in planned.batches] == [(2, 0), (3, 1)]
    assert mirrored(planned) == records[1:]
    assert slow == {Reason.OLD_MAGIC: 4}


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_too_large_batches_are_split(codec: Codec) -> None:
    batch = SourceBatch(records_at(5, 100), 5, codec=codec)
    rules = ForwardRules(max_batch_bytes=len(batch.encode()) // 3)
    planned, slow = plan_all(fetched(batch), rules, next_offset=5)
    assert mirrored(planned) == list(batch.records)
    assert len(planned.batches) > 1
    assert slow == {Reason.TOO_LARGE: 1}


def test_single_record_that_cannot_be_split_comes_back_alone() -> None:
    planned, _ = plan_all(fetched(batch_at(0, 1)))
    (batch,) = planned.batches
    assert split(batch, 10) == [batch]


def test_cut_last_batch_is_left_for_the_next_fetch() -> None:
    whole = fetched(batch_at(0), batch_at(3))
    for size in range(len(whole) // 2, len(whole)):
        planned, _ = plan_all(memoryview(bytearray(whole[:size])))
        assert (len(planned.batches), planned.next_offset, planned.cut_bytes) == (1, 3, 0)


def test_cut_only_batch_reports_its_size() -> None:
    whole = fetched(batch_at(8))
    planned, _ = plan_all(memoryview(bytearray(whole[:-1])), next_offset=8)
    assert (planned.batches, planned.next_offset) == ([], 8)
    assert planned.cut_bytes == len(whole)


def test_nothing_fetched_plans_nothing() -> None:
    planned, _ = plan_all(memoryview(bytearray()), next_offset=8)
    assert (planned.batches, planned.next_offset, planned.cut_bytes) == ([], 8, 0)


@pytest.mark.parametrize("count", [1, 3, 40], ids=["alone", "few", "many"])
def test_damaged_batch_is_refused_by_its_offset(count: int) -> None:
    batches = [batch_at(500 + n, 1).encode() for n in range(count)]
    batches[-1][-1] ^= 1
    with pytest.raises(BatchError, match=f"batch at offset {499 + count}: CRC"):
        plan_all(fetched(*(bytes(batch) for batch in batches)), ForwardRules())


def test_damage_passes_when_crcs_are_not_checked() -> None:
    batch = batch_at(0).encode()
    batch[-2] ^= 1  # the last byte of a value
    planned, _ = plan_all(fetched(bytes(batch)), ForwardRules(check_crcs=False))
    assert mirrored(planned)[-1].value == b"valud"


@pytest.mark.parametrize(
    ("at", "data", "message"),
    [
        (8, b"\xff\xff\xff\xff", "offset 9: magic 2 with length -1"),
        (8, b"\x00\x00\x00\x30", "offset 9: magic 2 with length 48"),
        (8, b"\x00\x00\x00\x00", "offset 9: magic 2 with length 0"),
        (16, b"\x03", "offset 9: unknown magic 3"),
        (57, b"\x00\x00\x00\x09", "offset 9: 9 records cannot have"),
        (57, b"\xff\xff\xff\xff", "offset 9: -1 records cannot have"),
        (23, b"\xff\xff\xff\xff", "offset 9: negative offset, last offset delta -1"),
    ],
    ids=["length", "short", "zero", "magic", "count", "negative-count", "last-delta"],
)
def test_nonsense_is_refused_by_its_offset(at: int, data: bytes, message: str) -> None:
    buffer = fetched(batch_at(9))
    buffer[at : at + len(data)] = data
    with pytest.raises(BatchError, match=message):
        plan_all(buffer)
