"""Whatever a partition holds, what comes out is what a consumer of the source would see."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkmirror.batches.codecs import Codec
from sparkmirror.batches.forward import ForwardRules, Reason, plan, split, stamp
from tests.batches.logs import Step, build, checked_records, mirrored, shapes

PROPERTY = settings(
    derandomize=True,
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

rules_of_all_kinds = st.builds(
    ForwardRules,
    read_committed=st.booleans(),
    codec=st.sampled_from((None, None, None, *Codec)),
    max_batch_bytes=st.sampled_from((None, None, 300, 5000)),
    merge_below_bytes=st.sampled_from((0, 200, 16 << 10)),
    merge_compressed_below_bytes=st.sampled_from((0, 2 << 10, 16 << 10)),
    merge_below_records=st.sampled_from((1, 64, 500)),
    merge_into_bytes=st.sampled_from((100, 3000, 512 << 10)),
    check_crcs=st.booleans(),
)


@PROPERTY
@given(
    shape=shapes(),
    seed=st.integers(0, 1 << 16),
    rules=rules_of_all_kinds,
    resume=st.none() | st.integers(0, 1 << 16),
    cut=st.sampled_from((0, 0, 0, 1, 13, 40)),
)
def test_target_gets_what_a_consumer_of_the_source_sees(
    shape: list[Step], seed: int, rules: ForwardRules, resume: int | None, cut: int
) -> None:
    log = build(shape, seed)
    if cut and len(log.entries) > 1:
        last = log.entries[-1].data
        tail = last[: max(0, len(last) - cut)]
        del log.entries[-1]
    else:
        tail = b""
    end_offset = log.entries[-1].end_offset
    next_offset = log.some_offset(resume)
    slow: Counter[Reason] = Counter()
    planned = plan(
        memoryview(bytearray(log.data + tail)), next_offset, log.aborted[::-1], rules, slow
    )
    for number, batch in enumerate(planned.batches):
        stamp(batch.view, 1000 + number, number % 7, number)
    assert mirrored(planned) == log.expected(next_offset, rules)
    assert planned.next_offset == max(next_offset, end_offset)
    if rules.codec is not None:
        assert all(batch.view[22] == rules.codec for batch in planned.batches)
    if rules.max_batch_bytes:
        assert all(b.size <= rules.max_batch_bytes or b.count == 1 for b in planned.batches)


@settings(PROPERTY, max_examples=100)
@given(
    count=st.integers(1, 50) | st.integers(190, 210),
    codec=st.sampled_from(Codec),
    compacted=st.booleans(),
    seed=st.integers(0, 1 << 16),
    max_bytes=st.sampled_from((1, 100, 300, 2000, 1 << 20)),
)
def test_split_keeps_every_record_and_its_offset(
    count: int, codec: Codec, compacted: bool, seed: int, max_bytes: int
) -> None:
    log = build([Step("data", count=count, codec=codec, compacted=compacted, gap=77)], seed)
    rules = ForwardRules()
    planned = plan(memoryview(log.data), 0, (), rules, {})
    parts = [part for batch in planned.batches for part in split(batch, max_bytes)]
    for part in parts:
        stamp(part.view, 1, 2, 3)
        assert part.size <= max_bytes or part.count == 1
    assert [r for part in parts for r in checked_records(part)] == log.expected(0, rules)
