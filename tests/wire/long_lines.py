"""Loopback taken for a long line, so that a test sees what is done on one."""

from __future__ import annotations

import pytest


def take_all_lines_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every connection that has had a response is a long one."""
    monkeypatch.setattr("sparkmirror.wire.net.connection.LONG_SECONDS", 0.0)
    monkeypatch.setattr("sparkmirror.wire.net.connection.TRUSTED_RESPONSES", 1)
    monkeypatch.setattr("sparkmirror.wire.fetch.poll_pace.LONG_SECONDS", 0.0)


def make_asks_small(monkeypatch: pytest.MonkeyPatch, most_bytes: int = 2048) -> None:
    """Read ahead where a few bytes are left: many small requests, about eight at a time."""
    place = "sparkmirror.wire.fetch.ahead_reader."
    monkeypatch.setattr(place + "LEAST_BACKLOG_BYTES", 1)
    monkeypatch.setattr(place + "HEAD_BYTES", 0)
    monkeypatch.setattr(place + "SMALLEST_ASK_BYTES", most_bytes)
    monkeypatch.setattr(place + "LARGEST_ASK_BYTES", most_bytes)
    monkeypatch.setattr(place + "LEAST_WINDOW_BYTES", 8 * most_bytes)
