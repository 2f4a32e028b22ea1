"""Percentiles of the live records."""

from __future__ import annotations

from sparkmirror.demo.live import Latency, summarize


def test_percentiles_are_by_nearest_rank() -> None:
    latencies = [float(number) for number in range(200, 0, -1)]
    assert summarize(latencies) == Latency(200, 100.0, 198.0, 200.0)


def test_one_record_is_every_percentile() -> None:
    assert summarize([3.0]) == Latency(1, 3.0, 3.0, 3.0)


def test_no_record_has_no_percentile() -> None:
    assert summarize([]) is None
