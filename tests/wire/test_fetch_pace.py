"""How often the fetcher asks: a few records at a time of a trickle, at once in a backlog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.fake_broker import FETCH, FakeCluster
from tests.wire.rigs import TP, FetcherRig


@pytest.fixture
def rig() -> Iterator[FetcherRig]:
    with FakeCluster() as brokers:
        brokers.create_topic("t", partitions=1)
        with FetcherRig(brokers) as rig:
            rig.fetcher.add(TP, 0)
            yield rig


def test_a_trickle_is_fetched_a_few_records_at_a_time(
    rig: FetcherRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkmirror.wire.fetcher.PACE_SECONDS", 0.3)
    rig.brokers.write(TP, [b"0"])
    rig.wait_for([b"0"])
    before = len(rig.brokers.sent(FETCH))
    for value in (b"1", b"2", b"3"):
        rig.brokers.write(TP, [value])
    rig.wait_for([b"0", b"1", b"2", b"3"])
    assert len(rig.brokers.sent(FETCH)) == before + 1


def test_a_backlog_is_not_slowed_down(rig: FetcherRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkmirror.wire.fetcher.PACE_SECONDS", 600.0)
    large = [bytes(100_000)]
    rig.brokers.write(TP, large)
    rig.wait_for(large)
    rig.brokers.write(TP, large)
    rig.wait_for(large * 2)
