"""How often the fetcher asks: a few records at a time of a trickle, at once in a backlog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.fake_broker import FETCH, FakeCluster
from tests.wire.rigs import LIMITS, TP, FetcherRig


@pytest.fixture
def rig() -> Iterator[FetcherRig]:
    with FakeCluster() as brokers:
        brokers.create_topic("t", partitions=1)
        # Nothing comes back empty while a test is held up.
        with FetcherRig(brokers, LIMITS._replace(max_wait_ms=10_000)) as rig:
            rig.fetcher.add(TP, 0)
            yield rig


def test_a_trickle_is_fetched_a_few_records_at_a_time(
    rig: FetcherRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkmirror.wire.fetch.fetcher.PACE_SECONDS", 2.0)
    rig.brokers.write(TP, [b"0"])
    rig.wait_for([b"0"])
    before = len(rig.brokers.sent(FETCH))
    for value in (b"1", b"2", b"3"):
        rig.brokers.write(TP, [value])
    rig.wait_for([b"0", b"1", b"2", b"3"])
    assert len(rig.brokers.sent(FETCH)) == before + 1


def test_a_backlog_is_not_slowed_down(rig: FetcherRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkmirror.wire.fetch.fetcher.PACE_SECONDS", 600.0)
    large = [bytes(100_000)]
    rig.brokers.write(TP, large)
    rig.wait_for(large)
    rig.brokers.write(TP, large)
    rig.wait_for(large * 2)


@pytest.mark.parametrize(
    ("value", "next_step"),
    [
        pytest.param(b"small", "round", id="under light load batches received are sent first"),
        pytest.param(bytes(100_000), "ask", id="in a backlog the next request leaves first"),
    ],
)
def test_what_comes_first_after_a_response(
    rig: FetcherRig, monkeypatch: pytest.MonkeyPatch, value: bytes, next_step: str
) -> None:
    monkeypatch.setattr("sparkmirror.wire.fetch.fetcher.PACE_SECONDS", 0.0)
    steps: list[str] = []
    note(monkeypatch, rig, "on_records", steps, "records")
    note(monkeypatch, rig, "on_round", steps, "round")
    note(monkeypatch, rig.fetcher, "_send", steps, "ask")
    rig.brokers.write(TP, [value])
    rig.wait_for([value])
    assert steps[steps.index("records") + 1] == next_step


def note(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str, steps: list[str], step: str
) -> None:
    """Note a step whenever the method is called."""
    method = getattr(place, name)

    def noting(*words: object) -> object:
        steps.append(step)
        return method(*words)

    monkeypatch.setattr(place, name, noting)
