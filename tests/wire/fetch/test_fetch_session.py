"""What the fetcher has to send to a broker: the same as if it compared everything each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.fetch_session import (
    RESPONSES_BYTES,
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
def test_the_broker_forgets_what_was_sent_and_is_not_wanted(
    path: list[tuple[str, TopicPartition]],
) -> None:
    session = FetchSession(1)
    partitions = {tp: FetchPartition(tp, 0, topic_id=tp.topic.encode() * 16) for tp in PLACES}
    for step, tp in path:
        partition = partitions[tp]
        if step == "join" and partition.session is None:
            session.join(partition)
        elif step == "leave" and partition.session is session:
            session.leave(partition)
        elif step == "reset":
            session.reset()
        elif step == "send":
            expected = set(session.sent_offsets) - set(session.wanted)
            assert set(session.take_to_forget()) == expected
            session.sent_offsets |= dict.fromkeys(session.changed, SentOffset(0, 1))
            session.changed.clear()
            assert set(session.sent_offsets) == set(session.wanted)
        assert session.topic_names() == {tp.topic: tp.topic for tp in session.wanted}


def test_what_was_sent_before_a_partition_was_added_further_back_is_out_of_date() -> None:
    session, partition = FetchSession(1), FetchPartition(PLACES[0], 7)
    session.join(partition)
    sent = SentOffset(7, partition.stay)
    assert sent.is_of(partition)
    partition.next_offset = 9
    assert sent.is_of(partition)
    session.leave(partition)
    again = FetchPartition(PLACES[0], 3)
    session.join(again)
    assert again.stay == sent.stay
    assert not sent.is_of(again)


def test_topics_are_called_by_id_once_they_are_asked_for_by_id() -> None:
    session = FetchSession(1, version=fetch.BY_ID)
    session.join(FetchPartition(PLACES[0], 0, topic_id=b"x" * 16))
    assert session.topic_names() == {b"x" * 16: "a"}


def test_brokers_share_what_may_come_at_once() -> None:
    sessions = [FetchSession(1), FetchSession(2), FetchSession(3)]
    for session, tp in zip(sessions, PLACES[:2], strict=False):
        session.join(FetchPartition(tp, 0))
    assert shared_limits(LIMITS, sessions[:1]) is LIMITS
    assert shared_limits(LIMITS, sessions) == LIMITS._replace(max_bytes=RESPONSES_BYTES // 2)
