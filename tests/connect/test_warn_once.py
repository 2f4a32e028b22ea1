"""Warnings are said once, until they change."""

from __future__ import annotations

import pytest

from sparkmirror.connect.warn_once import WarnOnce


def test_what_is_said(caplog: pytest.LogCaptureFixture) -> None:
    complaints = WarnOnce("a->b")
    rounds: list[tuple[dict[str, str], list[str]]] = [
        ({"t": "closed", "u": "gone"}, ["closed", "gone"]),
        ({"t": "closed", "u": "gone"}, []),
        ({"t": "open, but empty", "u": "gone"}, ["open, but empty"]),
        ({"u": "gone"}, []),
        ({"t": "open, but empty", "u": "gone"}, ["open, but empty"]),
        ({}, []),
    ]
    for wrong, expected in rounds:
        caplog.clear()
        complaints.report(wrong)
        assert caplog.messages == [f"[a->b] {text}" for text in expected]
