"""How waits grow, and that every one of the settings is obeyed."""

from __future__ import annotations

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.wire.client import backoff
from sparkmirror.wire.client.backoff import (
    reconnect_seconds,
    retry_seconds,
    setup_seconds,
    shared_retry_seconds,
)

CONFIG = ClientConfig(
    "a",
    ("h:1",),
    retry_backoff_ms=100,
    retry_backoff_max_ms=700,
    reconnect_backoff_ms=50,
    reconnect_backoff_max_ms=300,
    socket_connection_setup_timeout_ms=1000,
    socket_connection_setup_timeout_max_ms=3000,
)


@pytest.fixture(autouse=True)
def no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "CHANCE", 0.0)


def test_waits_double_up_to_their_maximum() -> None:
    assert [retry_seconds(CONFIG, n) for n in range(6)] == [0.0, 0.1, 0.2, 0.4, 0.7, 0.7]
    assert [reconnect_seconds(CONFIG, n) for n in range(6)] == [0.0, 0.05, 0.1, 0.2, 0.3, 0.3]


def test_the_first_attempt_to_connect_has_the_first_time() -> None:
    assert [setup_seconds(CONFIG, n) for n in range(4)] == [1.0, 2.0, 3.0, 3.0]


def test_many_failures_are_no_large_numbers() -> None:
    assert retry_seconds(CONFIG, 10**9) == 0.7


def test_waits_differ_by_a_fifth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "CHANCE", 0.2)
    waits = [retry_seconds(CONFIG, 1) for _ in range(200)]
    assert 0.08 <= min(waits) < max(waits) <= 0.12


def test_waits_of_thousands_end_at_a_few_moments() -> None:
    config = ClientConfig("a", ("h:1",), retry_backoff_ms=400, retry_backoff_max_ms=400)
    ends = {100.0 + shared_retry_seconds(config, 1, 100.0) for _ in range(1000)}
    assert all(100.32 <= end <= 100.59 for end in ends)
    assert len({round(end, 6) for end in ends}) <= 3


def test_a_wait_of_nothing_stays_one() -> None:
    assert shared_retry_seconds(ClientConfig("a", ("h:1",)), 0, 5.0) == 0.0
