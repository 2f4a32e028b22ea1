"""When a topic is believed to be another one under the same name."""

from __future__ import annotations

import random

import pytest

from sparkmirror.wire.client.topic_ids import CONFIRM_RESPONSES, CONFIRM_SECONDS, TopicIds
from tests.wire.fake_broker import FakeCluster
from tests.wire.rigs import TP, FetcherRig

OLD, NEW = b"old", b"new"


def learn(ids: TopicIds, now: float, topic_id: bytes) -> bool:
    """Whether the response was believed."""
    return ids.learn({"t": topic_id}, now) == set()


def test_the_first_id_is_believed() -> None:
    ids = TopicIds()
    assert learn(ids, 0.0, OLD)
    assert ids == {"t": OLD}
    assert not ids.are_in_doubt


def test_another_id_is_believed_after_several_responses_and_some_time() -> None:
    ids = TopicIds()
    learn(ids, 0.0, OLD)
    step = CONFIRM_SECONDS / (CONFIRM_RESPONSES - 1)
    for at in range(CONFIRM_RESPONSES - 1):
        assert not learn(ids, at * step, NEW)
        assert ids.are_in_doubt
    assert ids == {"t": OLD}
    assert learn(ids, CONFIRM_SECONDS, NEW)
    assert ids == {"t": NEW}
    assert not ids.are_in_doubt


def test_many_responses_at_once_are_not_enough() -> None:
    ids = TopicIds()
    learn(ids, 0.0, OLD)
    assert not any(learn(ids, 0.0, NEW) for _ in range(100))


@pytest.mark.parametrize("truth", [OLD, NEW])
def test_nothing_changes_while_responses_alternate(truth: bytes) -> None:
    """And in the end what all brokers report counts, whichever reported it first."""
    ids, rng = TopicIds(), random.Random(7)
    learn(ids, 0.0, OLD)
    changes = 0
    for at in range(1, 1000):
        before = dict(ids)
        learn(ids, at * 0.4, rng.choice((OLD, NEW)) if at % 2 else OLD)
        changes += ids != before
    assert changes == 0
    for at in range(10):
        learn(ids, 1000.0 + at, truth)
    assert ids == {"t": truth}


def test_a_topic_recreated_is_copied_once_while_one_broker_lags_behind() -> None:
    with FakeCluster(nodes=2) as brokers, FetcherRig(brokers) as rig:
        brokers.create_topic("t")
        brokers.write(TP, [b"0", b"1"])
        rig.fetcher.add(TP, 0)
        rig.wait_for([b"0", b"1"])
        rig.cluster.connection(2)  # both brokers may be asked
        brokers.freeze_metadata(2)
        brokers.create_topic("t")
        brokers.write(TP, [b"new"])
        for _ in range(40):
            rig.metadata.refresh()
            rig.run_for(0.05)
        brokers.thaw_metadata(2)
        rig.wait_for([b"0", b"1", b"new"])
        for _ in range(40):
            rig.metadata.refresh()
            rig.run_for(0.05)
        assert rig.recreated == [2]
        assert rig.fetched() == [b"0", b"1", b"new"]
