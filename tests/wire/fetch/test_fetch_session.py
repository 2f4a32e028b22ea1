"""What the fetcher has to tell a broker: the same as if it compared everything each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.fetch_session import (
    ANSWERS_BYTES,
    FetchPartition,
    FetchSession,
    SentOffset,
    shared_limits,
)
from sparkmirror.wire.protocol import fetch_messages as fetch

PLACES = [TopicPartition(topic, number) for topic in "ab" for number in range(2)]
LIMITS = fetch.Limits(500, 1, 50 << 20, 1 << 20, False, "")

steps = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "send", "reset"]), st.sampled_from(PLACES)),
    max_size=60,
)


@given(steps)
def test_the_broker_is_to_forget_what_it_was_told_and_is_not_wanted(
    path: list[tuple[str, TopicPartition]],
) -> None:
    lane = FetchSession(1)
    partitions = {tp: FetchPartition(tp, 0, topic_id=tp.topic.encode() * 16) for tp in PLACES}
    for step, tp in path:
        partition = partitions[tp]
        if step == "join" and partition.lane is None:
            lane.join(partition)
        elif step == "leave" and partition.lane is lane:
            lane.leave(partition)
        elif step == "reset":
            lane.reset()
        elif step == "send":
            expected = set(lane.told) - set(lane.wanted)
            assert set(lane.take_left()) == expected
            lane.told |= dict.fromkeys(lane.changed, SentOffset(0, 1))
            lane.changed.clear()
            assert set(lane.told) == set(lane.wanted)
        assert lane.topic_names() == {tp.topic: tp.topic for tp in lane.wanted}


def test_what_was_told_before_a_partition_was_added_again_further_back_is_out_of_date() -> None:
    lane, partition = FetchSession(1), FetchPartition(PLACES[0], 7)
    lane.join(partition)
    told = SentOffset(7, partition.stay)
    assert told.is_of(partition)
    partition.next_offset = 9
    assert told.is_of(partition)
    lane.leave(partition)
    again = FetchPartition(PLACES[0], 3)
    lane.join(again)
    assert again.stay == told.stay
    assert not told.is_of(again)


def test_topics_are_called_by_id_once_they_are_asked_for_by_id() -> None:
    lane = FetchSession(1, version=fetch.BY_ID)
    lane.join(FetchPartition(PLACES[0], 0, topic_id=b"x" * 16))
    assert lane.topic_names() == {b"x" * 16: "a"}


def test_brokers_share_what_may_come_at_once() -> None:
    lanes = [FetchSession(1), FetchSession(2), FetchSession(3)]
    for lane, tp in zip(lanes, PLACES[:2], strict=False):
        lane.join(FetchPartition(tp, 0))
    assert shared_limits(LIMITS, lanes[:1]) is LIMITS
    assert shared_limits(LIMITS, lanes) == LIMITS._replace(max_bytes=ANSWERS_BYTES // 2)
