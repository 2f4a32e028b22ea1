"""From samples to figures."""

from __future__ import annotations

import pytest

from bench.copying import Window, is_flat, window_measures
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


def test_window_measures_count_only_what_was_used_in_the_window() -> None:
    peak = PeakMemory(900_000_000, 120_000_000)
    window = Window(4.0, 1_000_000, usage(10.0, 2.0), usage(13.0, 3.0), peak)
    assert window_measures(window, value_bytes=2_000) == {
        "mb_per_s": 500.0,
        "window_s": 4.0,
        "records_per_s": 250_000.0,
        "cpu_s_per_gb": 1.5,
        "task_cpu_s_per_gb": 0.5,
        "rss_mb": 900.0,
        "task_rss_mb": 120.0,
    }


def test_window_measures_of_a_system_without_spark_have_no_task_figures() -> None:
    window = Window(4.0, 10, usage(10.0, 0.0), usage(13.0, 0.0), PeakMemory(900_000_000, 0))
    measures = window_measures(window, value_bytes=100)
    assert set(measures) == {"mb_per_s", "records_per_s", "cpu_s_per_gb", "window_s", "rss_mb"}


@pytest.mark.parametrize(
    ("seen", "flat"),
    [
        pytest.param([], False, id="nothing seen"),
        pytest.param([10.0, 10.0], False, id="too few to tell"),
        pytest.param([10.0, 10.0, 10.0], True, id="three alike"),
        pytest.param([10.0, 8.0, 7.0], False, id="still falling"),
        pytest.param([10.0, 8.0, 7.0, 6.8, 6.7], True, id="falls by less than a twentieth"),
        pytest.param([10.0, 6.0, 7.0, 9.0], True, id="rises again"),
    ],
)
def test_cpu_is_flat_when_two_more_windows_do_not_lower_it(seen: list[float], flat: bool) -> None:
    assert is_flat(seen) is flat


def test_scale_measures_are_a_share_of_one_core() -> None:
    measures = scale_measures(
        6.5, usage(20.0, 1.0), usage(20.5, 1.1, 800_000_000, 90_000_000), idle_seconds=20.0
    )
    assert measures == {
        "start_s": 6.5,
        "start_cpu_s": 20.0,
        "idle_cpu_percent": 2.5,
        "rss_mb": 800.0,
        "task_rss_mb": 90.0,
    }
