"""Why partitions wait: kept, replaced, logged once and only when it lasts."""

from __future__ import annotations

import pytest

from sparkmirror.errors import KafkaError, TransportError
from sparkmirror.spark.copy.partition_problems import (
    MORE_SECONDS,
    MOST_LINES,
    PASSING_SECONDS,
    PartitionProblems,
)
from sparkmirror.types import TopicPartition
from sparkmirror.wire.net.outages import SilentError
from sparkmirror.wire.protocol.error_codes import (
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    broker_error,
)

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class Rig:
    """Problems by a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.problems = PartitionProblems(lambda: self.now)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_the_newest_reason_of_the_oldest_wait(rig: Rig) -> None:
    rig.problems.note(TP, KafkaError("first"))
    rig.now += 1
    rig.problems.note(TP, KafkaError("second"))
    assert (rig.problems[TP].text, rig.problems[TP].since) == ("second", 100.0)


def test_only_lasting_problems_are_logged_and_once(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.problems.note(TP, KafkaError("no leader"))
    rig.problems.log_lasting()
    assert caplog.text == ""
    rig.now += PASSING_SECONDS + 0.1
    rig.problems.note(OTHER, KafkaError("just now"))
    rig.problems.log_lasting()
    rig.problems.log_lasting()
    assert [record.getMessage() for record in caplog.records] == ["t-0 waits: no leader"]


def test_of_many_a_few_are_logged_and_the_others_counted(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for at in range(MOST_LINES + 3):
        rig.problems.note(TopicPartition("t", at), KafkaError("no leader"))
    rig.now += PASSING_SECONDS + 0.1
    rig.problems.log_lasting()
    rig.problems.log_lasting()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "3 more partitions wait: t-5, t-6, t-7: no leader"


def test_an_outage_that_reaches_partitions_one_by_one_is_not_logged_one_by_one(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for at in range(100):
        rig.problems.note(TopicPartition("t", at), KafkaError("no leader"))
        rig.now += 0.2
        rig.problems.log_lasting()
    rig.now += MORE_SECONDS + PASSING_SECONDS
    rig.problems.log_lasting()
    lines = caplog.messages
    assert sum("waits: " in line for line in lines) == MOST_LINES
    more = [int(line.split()[0]) for line in lines if "more partitions wait" in line]
    assert len(more) <= 20 / MORE_SECONDS + 2
    assert sum(more) == 100 - MOST_LINES


def test_the_end_of_waits_is_logged_once_for_all(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for at in range(3):
        rig.problems.note(TopicPartition("t", at), KafkaError("no leader"))
    rig.now += PASSING_SECONDS + 0.1
    rig.problems.log_lasting()
    caplog.clear()
    for tp in (TP, OTHER):
        del rig.problems[tp]
        rig.problems.log_lasting()
        rig.now += 1.0
    assert caplog.messages == []  # it may not be over yet
    rig.now += PASSING_SECONDS
    rig.problems.log_lasting()
    rig.problems.clear()
    for _ in range(3):
        rig.problems.log_lasting()
        rig.now += PASSING_SECONDS
    assert caplog.messages == [
        "2 partitions no longer wait, after up to 4 s: t-0, t-1; 1 still wait",
        "1 partitions no longer wait, after up to 8 s: t-2; none waits",
    ]


def test_what_comes_back_at_once_was_not_over(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.problems.note(TP, KafkaError("no leader"))
    for _ in range(10):
        rig.now += PASSING_SECONDS + 0.1
        rig.problems.log_lasting()
        del rig.problems[TP]
        rig.problems.log_lasting()
        rig.now += PASSING_SECONDS / 2
        rig.problems.note(TP, KafkaError("no leader"))
        rig.problems.log_lasting()
    assert caplog.messages == ["t-0 waits: no leader"]


def test_what_is_over_and_returns_is_logged_again(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        rig.problems.note(TP, KafkaError("no leader"))
        rig.now += PASSING_SECONDS + 0.1
        rig.problems.log_lasting()
        del rig.problems[TP]
        rig.problems.log_lasting()
        rig.now += PASSING_SECONDS
        rig.problems.log_lasting()
    assert (
        caplog.messages
        == [
            "t-0 waits: no leader",
            "1 partitions no longer wait, after up to 3 s: t-0; none waits",
        ]
        * 2
    )


def silent(
    broker: str, seconds: float = 6.0, cluster: str = "cluster 'b' (h:1,h:2)"
) -> SilentError:
    return SilentError("no byte", seconds, broker, cluster)


def test_silent_brokers_are_one_line_however_many_partitions_wait(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for at in range(2 * MOST_LINES):
        rig.problems.note(TopicPartition("t", at), silent(f"h:{1 + at % 2}"))
    rig.now += PASSING_SECONDS + 0.1
    rig.problems.log_lasting()
    # Others come to wait for the same brokers, and connections end at last.
    rig.problems.note(TopicPartition("u", 0), silent("h:1", 20.0))
    rig.problems.note(TopicPartition("u", 1), TransportError("no response from h:1 for 30 s"))
    rig.problems.note(TP, TransportError("no response from h:1 for 30 s"))
    rig.now += PASSING_SECONDS + 0.1
    rig.problems.log_lasting()
    (line,) = caplog.messages
    assert line == (
        "cluster 'b' (h:1,h:2) does not respond: no byte from h:1, h:2 for 6 s; 10 partitions "
        "wait, and nothing of them is copied until it does; look at its brokers and at the network"
    )
    rig.problems.clear()
    rig.problems.log_lasting()
    rig.now += PASSING_SECONDS
    rig.problems.log_lasting()
    (end,) = caplog.messages[1:]
    assert end.startswith("12 partitions no longer wait, after up to 6 s: ")


def test_both_clusters_can_be_silent_and_other_reasons_are_logged_as_usual(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.problems.note(TP, silent("h:1"))
    rig.problems.note(OTHER, silent("g:1", cluster="cluster 'a' (g:1)"), is_of_source=True)
    rig.problems.note(TopicPartition("u", 0), KafkaError("refused"))
    rig.now += PASSING_SECONDS + 0.1
    rig.problems.log_lasting()
    assert sorted(line.partition(":")[0] for line in caplog.messages) == [
        "cluster 'a' (g",
        "cluster 'b' (h",
        "u-0 waits",
    ]


def test_the_next_silence_is_logged_although_another_partition_keeps_waiting(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    refused = TopicPartition("u", 0)
    for silent_again in range(2):
        rig.problems.note(refused, KafkaError("refused"))
        rig.problems.note(TP, silent("h:1"))
        rig.now += PASSING_SECONDS + 0.1
        rig.problems.log_lasting()
        assert sum("does not respond" in line for line in caplog.messages) == 1 + silent_again
        del rig.problems[TP]
        rig.problems.log_lasting()
        rig.now += PASSING_SECONDS
        rig.problems.log_lasting()


def test_a_topic_that_is_there_again_has_a_moment_to_get_its_leader(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.problems.note(TP, broker_error("produce to a.t-0 on 'b'", UNKNOWN_TOPIC_OR_PARTITION))
    rig.now += PASSING_SECONDS - 0.1
    rig.problems.note(TP, broker_error("produce to a.t-0 on 'b'", LEADER_NOT_AVAILABLE))
    rig.now += PASSING_SECONDS - 0.1
    rig.problems.log_lasting()
    assert caplog.messages == []
    rig.now += 0.2
    rig.problems.log_lasting()
    assert "LEADER_NOT_AVAILABLE" in caplog.text


def test_problems_of_the_source_are_those_of_now(rig: Rig) -> None:
    rig.problems.note(OTHER, KafkaError("the target's"))
    rig.problems.note_source({TP}, None)
    assert "t-0 has no leader" in rig.problems[TP].text
    rig.problems.note_source({TP}, KafkaError("cluster is down"))
    assert "t-0 has no leader" in rig.problems[TP].text
    rig.problems.note_source(set(), None)
    assert set(rig.problems) == {OTHER}


def test_a_topic_in_an_old_message_format_is_reported_with_the_remedy(rig: Rig) -> None:
    error = broker_error("produce to a.t-0 on 'b'", UNSUPPORTED_FOR_MESSAGE_FORMAT)
    rig.problems.note(TP, error)
    assert rig.problems[TP].text.startswith(str(error))
    assert "until its setting message.format.version is deleted" in rig.problems[TP].text
