"""The fetcher when the source loses what was read: an unclean election (KIP-320)."""

from __future__ import annotations

import pytest

from tests.wire.fake_broker import EPOCH_ENDS, FETCH, Do, FakeCluster, once
from tests.wire.rigs import LIMITS, TP, FetcherRig

OLD = [b"0", b"1", b"2", b"3"]
NEW = [b"new 2", b"new 3", b"new 4", b"new 5"]


def begin(rig: FetcherRig) -> None:
    rig.brokers.create_topic("t", partitions=2)
    for value in OLD:
        rig.brokers.write(TP, [value])
    rig.fetcher.add(TP, 0)
    rig.wait_for(OLD)


@pytest.mark.parametrize("node", [1, 2], ids=["the same broker", "another broker"])
@pytest.mark.parametrize(
    ("compares", "knows_ends"),
    [(True, True), (False, True), (True, False)],
    ids=["both ways", "by OffsetForLeaderEpoch", "by the fetch"],
)
def test_a_log_that_grew_past_the_position_again_is_read_from_where_it_differs(
    node: int, compares: bool, knows_ends: bool
) -> None:
    with (
        FakeCluster(nodes=2, compares_epochs=compares, knows_epoch_ends=knows_ends) as brokers,
        FetcherRig(brokers) as rig,
    ):
        begin(rig)
        brokers.elect_unclean(TP, 2, NEW, node)
        rig.wait_for(OLD + NEW)
        assert rig.truncated == [(4, 2)]
        assert rig.out_of_range == []
        brokers.write(TP, [b"on"])
        rig.wait_for([*OLD, *NEW, b"on"])


def test_without_any_help_of_the_broker_nothing_is_worse_than_before() -> None:
    with (
        FakeCluster(compares_epochs=False, knows_epoch_ends=False) as brokers,
        FetcherRig(brokers) as rig,
    ):
        begin(rig)
        brokers.move_leader(TP, 1)
        brokers.write(TP, [b"on"])
        rig.wait_for([*OLD, b"on"])
        assert rig.truncated == []


def test_a_log_that_is_shorter_is_read_on_from_its_end() -> None:
    with FakeCluster() as brokers, FetcherRig(brokers) as rig:
        begin(rig)
        brokers.elect_unclean(TP, 3)
        rig.run_until(lambda: bool(rig.truncated), lambda: rig.errors)
        brokers.write(TP, [b"new 3"])
        rig.wait_for([*OLD, b"new 3"])
        assert rig.truncated == [(4, 3)]
        assert rig.out_of_range == []


def test_a_clean_election_loses_nothing_and_is_asked_about_once() -> None:
    with FakeCluster(nodes=2) as brokers, FetcherRig(brokers) as rig:
        begin(rig)
        brokers.move_leader(TP, 2)
        brokers.write(TP, [b"on"])
        rig.wait_for([*OLD, b"on"])
        assert rig.truncated == []
        (asked,) = brokers.sent(EPOCH_ENDS)
        (row,) = asked.body.topics[0].partitions
        assert (row.current_leader_epoch, row.leader_epoch) == (1, 0)


def test_an_epoch_that_is_not_to_be_had_yet_is_asked_for_again() -> None:
    with FakeCluster(nodes=2) as brokers, FetcherRig(brokers) as rig:
        begin(rig)
        for failure in (Do(code=6), Do(drop=True)):
            brokers.intercept(EPOCH_ENDS, once(failure))
        brokers.elect_unclean(TP, 2, NEW, node=2)
        rig.wait_for(OLD + NEW)
        assert rig.truncated == [(4, 2)]


def test_a_stored_position_is_compared_if_its_epochs_are_known() -> None:
    with FakeCluster() as brokers, FetcherRig(brokers) as rig:
        brokers.create_topic("t")
        for value in OLD:
            brokers.write(TP, [value])
        brokers.elect_unclean(TP, 2, NEW)
        rig.fetcher.add(TP, 4, ((0, 0),))
        rig.wait_for(NEW)
        assert rig.truncated == [(4, 2)]


def test_a_follower_that_lags_behind_has_not_lost_anything() -> None:
    with FakeCluster(nodes=2) as brokers, FetcherRig(brokers, LIMITS._replace(rack="here")) as rig:
        begin(rig)
        brokers.prefer(TP, 2)
        lagging = once(Do(diverging=(0, 1)), lambda request: request.node == 2)
        brokers.intercept(FETCH, lagging)
        brokers.write(TP, [b"4"])
        brokers.write(TP, [b"5"])
        rig.wait_for([*OLD, b"4", b"5"])
        rig.run_until(lambda: lagging.happened, lambda: brokers.requests[-3:])
        brokers.prefer(TP, -1)
        brokers.write(TP, [b"6"])
        rig.wait_for([*OLD, b"4", b"5", b"6"])
        assert rig.truncated == []


def test_a_broker_that_knows_nothing_of_the_epoch_is_read_on_without_comparing() -> None:
    with FakeCluster() as brokers, FetcherRig(brokers) as rig:
        brokers.create_topic("t")
        for value in OLD:
            brokers.write(TP, [value])
        rig.fetcher.add(TP, 2, ((9, 0),))
        rig.wait_for(OLD[2:])
        assert rig.truncated == []
        assert rig.out_of_range == [(2, 0, 4)]


@pytest.mark.parametrize("code", [-1, 29, 35, 42])
def test_a_broker_that_rejects_epoch_requests_is_read_all_the_same(code: int) -> None:
    with FakeCluster(nodes=2) as brokers, FetcherRig(brokers) as rig:
        begin(rig)
        brokers.intercept(EPOCH_ENDS, lambda _: Do(code=code))
        brokers.elect_unclean(TP, 2, NEW, node=2)
        rig.wait_for(OLD + NEW)
        assert rig.truncated == [(4, 2)]
