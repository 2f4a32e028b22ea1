"""From samples to figures."""

from __future__ import annotations

import pytest

from bench.cases import CASES, CopyCase
from bench.copying import Copy, copy_measures, copy_topics
from bench.latency import latency_measures, percentile
from bench.process_tree import PeakMemory, Usage
from bench.scaling import scale_measures


@pytest.mark.parametrize(
    ("percent", "value"),
    [
        pytest.param(0, 1, id="lowest"),
        pytest.param(50, 50, id="middle"),
        pytest.param(99, 99, id="99"),
        pytest.param(99.1, 100, id="above a rank is the next one"),
        pytest.param(100, 100, id="highest"),
    ],
)
def test_percentile_is_the_nearest_rank(percent: float, value: float) -> None:
    assert percentile(range(1, 101), percent) == value


def test_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.5], 1) == percentile([7.5], 99) == 7.5


def test_percentile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_latency_measures_do_not_need_sorted_values() -> None:
    values = [float(value) for value in range(1000, 0, -1)]
    assert latency_measures(values) == {"p50_ms": 500.0, "p99_ms": 990.0, "max_ms": 1000.0}


def usage(cpu: float, task_cpu: float, rss: int = 0, task_rss: int = 0) -> Usage:
    return Usage(cpu, task_cpu, rss, task_rss)


def test_copy_measures_count_only_what_was_used_meanwhile() -> None:
    copy = Copy(4.0, usage(10.0, 2.0), usage(13.0, 3.0), PeakMemory(900_000_000, 120_000_000))
    assert copy_measures(copy, records=1_000_000, payload_bytes=2_000_000_000) == {
        "mb_per_s": 500.0,
        "records_per_s": 250_000.0,
        "cpu_s_per_gb": 1.5,
        "task_cpu_s_per_gb": 0.5,
        "rss_mb": 900.0,
        "task_rss_mb": 120.0,
    }


def test_copy_measures_of_a_system_without_spark_have_no_task_figures() -> None:
    copy = Copy(4.0, usage(10.0, 0.0), usage(13.0, 0.0), PeakMemory(900_000_000, 0))
    measures = copy_measures(copy, records=10, payload_bytes=1_000)
    assert set(measures) == {"mb_per_s", "records_per_s", "cpu_s_per_gb", "rss_mb"}


def test_scale_measures_are_a_share_of_one_core() -> None:
    measures = scale_measures(
        6.5, usage(20.0, 1.0), usage(20.5, 1.1, 800_000_000, 90_000_000), idle_seconds=20.0
    )
    assert measures == {
        "start_s": 6.5,
        "idle_cpu_percent": 2.5,
        "rss_mb": 800.0,
        "task_rss_mb": 90.0,
    }


def test_pattern_matches_all_topics_of_the_case() -> None:
    case = CASES["1k-none"]
    assert isinstance(case, CopyCase)
    names = copy_topics(case, rounds=2)
    assert names.rounds == ("bench-1k-none-1", "bench-1k-none-2")
    assert names.pattern == "bench-1k-none-.*"
