"""Brokers' words about settings, recorded from 2.8, 3.9 and 4.3, and what becomes of each."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.refused_settings import Substitute, find_substitute

SETTINGS = {
    "message.downconversion.enable": "false",
    "segment.bytes": "1000",
    "cleanup.policy": "compact",
    "retention.ms": "5",
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            "INVALID_CONFIG (Unknown topic config name: message.downconversion.enable)",
            Substitute("message.downconversion.enable", "false", None, is_unknown=True),
            id="unknown",
        ),
        pytest.param(
            "INVALID_CONFIG (Invalid value 1000 for configuration segment.bytes: "
            "Value must be at least 1048576)",
            Substitute("segment.bytes", "1000", "1048576"),
            id="too small",
        ),
        pytest.param(
            "INVALID_CONFIG (Invalid value 1000 for configuration segment.bytes: "
            "Value must be no more than 10)",
            Substitute("segment.bytes", "1000", "10"),
            id="too large",
        ),
        pytest.param(
            "Invalid value compact for configuration cleanup.policy: String must be one of: delete",
            None,
            id="a setting that protects records is never left out",
        ),
        pytest.param(
            "Invalid value 5 for configuration retention.ms: Value must be at least 10",
            Substitute("retention.ms", "5", "10"),
            id="but it may be clamped",
        ),
        pytest.param("Unknown topic config name: other", None, id="a setting that we did not send"),
        pytest.param("Topic 'segment.bytes' is illegal", None, id="about something else"),
        pytest.param(
            "Invalid value 1000 for configuration segment.bytes: Value must be at least 1000",
            None,
            id="nothing new to try",
        ),
    ],
)
def test_substitute(words: str, expected: Substitute | None) -> None:
    assert find_substitute(SETTINGS, words) == expected
