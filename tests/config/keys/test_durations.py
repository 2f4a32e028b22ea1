"""Durations as java.time.Duration reads them."""

from __future__ import annotations

import pytest

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.keys.durations import parse_duration_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT0S", 0),
        ("PT15M", 900_000),
        ("PT6H", 21_600_000),
        ("P2D", 172_800_000),
        ("P1DT12H30M5.25S", 131_405_250),
        ("pt1h", 3_600_000),
        ("PT1,5S", 1_500),
        ("PT1.S", 1_000),
        ("+PT1H", 3_600_000),
        ("PT1H-30M", 1_800_000),
        ("-PT-1H", 3_600_000),
        ("PT0.000999S", 0),
    ],
)
def test_duration_is_read(text: str, expected: int) -> None:
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "1h", "PT1", "P1W", "P1M", "PT1H ", "P1D12H", "PT1M1H", "-PT1S"]
)
def test_what_java_rejects_is_rejected(text: str) -> None:
    with pytest.raises(BadValue):
        parse_duration_ms(text)
