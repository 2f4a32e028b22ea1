"""Which partitions resume, which start afresh, and how that is reported."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.positions.starts import (
    Beginning,
    list_starts,
    plan_starts,
    refused_starts,
    report_starts,
)
from sparkmirror.types import TopicPartition

T0, T1, T2, U0 = (TopicPartition(*each) for each in (("t", 0), ("t", 1), ("t", 2), ("u", 0)))


@pytest.mark.parametrize(
    ("next_offset", "log", "expected", "is_refused"),
    [
        pytest.param(5, (0, 9), Beginning.RESUMES, False, id="in the log"),
        pytest.param(9, (0, 9), Beginning.RESUMES, False, id="at its end"),
        pytest.param(3, (3, 9), Beginning.RESUMES, False, id="at its start"),
        pytest.param(0, (0, 0), Beginning.RESUMES, False, id="0 of an empty log"),
        pytest.param(10, (0, 9), Beginning.BEYOND_END, True, id="beyond the end"),
        pytest.param(2, (3, 9), Beginning.DELETED, True, id="before the start"),
        pytest.param(None, (0, 9), Beginning.NO_POSITION, True, id="none"),
        pytest.param(None, (0, 0), Beginning.EMPTY, False, id="none, never written"),
        pytest.param(None, (7, 7), Beginning.EMPTY, False, id="none, all deleted"),
        pytest.param(5, OSError("no"), Beginning.UNKNOWN, True, id="log not known"),
        pytest.param(None, OSError("no"), Beginning.UNKNOWN, True, id="nothing known"),
    ],
)
def test_beginning_of_a_partition(
    next_offset: int | None,
    log: tuple[int, int] | Exception,
    expected: Beginning,
    is_refused: bool,
) -> None:
    starts = plan_starts({T0: next_offset}, {T0: log})
    assert [start.beginning for start in starts] == [expected]
    assert bool(refused_starts(starts)) == is_refused


def test_report_counts_each_kind_once_and_names_those_that_start_afresh() -> None:
    positions = {T0: 5, T1: None, T2: 50, U0: None}
    ranges = {T0: (0, 9), T1: (0, 9), T2: (0, 9), U0: (0, 0)}
    assert report_starts(plan_starts(positions, ranges), "latest") == (
        "4 partitions: 1 resume at their stored positions, "
        "1 are empty and have no stored position, "
        "2 start afresh (auto.offset.reset=latest): 1 have no stored position: t-1; "
        "1 have a stored position beyond the end of the log (truncated or recreated): t-2"
    )


def test_report_says_that_none_starts_afresh() -> None:
    text = report_starts(plan_starts({T0: 5, T1: 6}, {T0: (0, 9), T1: (0, 9)}), "earliest")
    assert text == "2 partitions: 2 resume at their stored positions, 0 start afresh"


def test_report_names_a_few_of_many() -> None:
    many = [TopicPartition("t", at) for at in range(8)]
    text = report_starts(plan_starts(dict.fromkeys(many), dict.fromkeys(many, (0, 1))), "earliest")
    assert text.endswith("8 have no stored position: t-0, t-1, t-2, t-3, t-4 and 3 more")


def test_list_has_a_line_for_each_topic_and_reason() -> None:
    many = {TopicPartition("t", at): None for at in (0, 1, 2, 4, 7, 8)}
    positions = {**many, T2: 50, U0: 1}
    ranges: dict[TopicPartition, tuple[int, int]] = dict.fromkeys(positions, (3, 9))
    assert list_starts(plan_starts(positions, ranges)) == [
        "t, partition 0-1, 4, 7-8: no stored position",
        "t, partition 2: stored position 50, the log ends at 9",
        "u, partition 0: stored position 1, the log starts at 3",
    ]
