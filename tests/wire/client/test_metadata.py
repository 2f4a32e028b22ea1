"""What we know of a cluster, and when it is asked again."""

from __future__ import annotations

from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.leaders import Leader
from tests.wire.client.listening import Listener, learn
from tests.wire.fake_broker import METADATA, Do, FakeCluster, once
from tests.wire.rigs import TP, Rig


def test_tracked_topics_get_leaders_and_ids(rig: Rig, listener: Listener) -> None:
    learn(rig, "t", "u")
    assert rig.metadata.leaders == {
        TopicPartition("t", 0): Leader(1, 0),
        TopicPartition("t", 1): Leader(1, 0),
        TopicPartition("u", 0): Leader(2, 0),
    }
    assert {name: len(value) for name, value in rig.metadata.topic_ids.items()} == {
        "t": 16,
        "u": 16,
    }
    assert listener.metadata >= 1


def test_nothing_is_asked_while_no_topic_is_tracked(rig: Rig) -> None:
    rig.run_for(0.1)
    assert rig.brokers.requests == []


def test_topics_that_are_no_longer_tracked_are_forgotten(rig: Rig) -> None:
    learn(rig, "t", "u")
    rig.metadata.untrack(["t"])
    assert set(rig.metadata.leaders) == {TopicPartition("u", 0)}
    before = len(rig.brokers.sent(METADATA))
    rig.metadata.refresh()
    rig.run_until(lambda: len(rig.brokers.sent(METADATA)) > before, lambda: "metadata")
    asked = rig.brokers.sent(METADATA)[-1].body
    assert [topic.name for topic in asked.topics] == ["u"]


def test_a_topic_that_is_not_there_is_asked_for_until_it_is(rig: Rig) -> None:
    rig.metadata.track(["later"])
    rig.run_until(
        lambda: "later" in rig.metadata.topic_errors,
        lambda: rig.metadata.topic_errors,
    )
    assert rig.metadata.topic_errors == {"later": 3}
    rig.brokers.create_topic("later")
    learn(rig, "later")
    assert rig.metadata.topic_errors == {}


def asked_topics(rig: Rig) -> list[list[str]]:
    return [[row.name for row in each.body.topics] for each in rig.brokers.sent(METADATA)]


def test_only_what_is_missing_is_asked_for_again(rig: Rig) -> None:
    """With thousands of topics the others would cost a tenth of a core as long as it lasts."""
    learn(rig, "t", "u")
    rig.metadata.track(["later"])
    before = len(asked_topics(rig))
    rig.run_until(lambda: len(asked_topics(rig)) >= before + 3, lambda: asked_topics(rig))
    assert asked_topics(rig)[before:] == [["later"]] * (len(asked_topics(rig)) - before)
    rig.brokers.create_topic("later")
    learn(rig, "later")
    assert len(rig.metadata.leaders) == 4
    assert rig.metadata.topic_errors == {}


def test_all_topics_are_requested_when_leaders_may_have_moved(rig: Rig) -> None:
    learn(rig, "t", "u")
    rig.metadata.track(["later"])
    rig.run_until(
        lambda: "later" in rig.metadata.topic_errors,
        lambda: rig.metadata.topic_errors,
    )
    rig.brokers.move_leader(TP, 2)
    rig.metadata.refresh()
    moved = Leader(2, 1)
    rig.run_until(lambda: rig.metadata.leaders[TP] == moved, lambda: rig.metadata.leaders)
    assert ["later", "t", "u"] in asked_topics(rig)
    assert rig.metadata.topic_errors == {"later": 3}


def test_thousands_who_miss_a_topic_make_one_request(brokers: FakeCluster) -> None:
    # All of them within the wait after the last request, however slow the machine is.
    with Rig(brokers, retry_backoff_ms=1000) as rig:
        learn(rig, "t", "u")
        before = len(asked_topics(rig))
        for _ in range(1000):
            rig.metadata.mark_missed("u")
        rig.run_until(lambda: len(asked_topics(rig)) > before, lambda: asked_topics(rig))
        rig.run_for(0.3)
        assert asked_topics(rig)[before:] == [["u"]]


def test_metadata_responses_without_brokers_are_not_believed(rig: Rig) -> None:
    empty = bytes.fromhex("00000000 01 00 ffffffff 01 00")
    rig.brokers.intercept(METADATA, once(Do(garbage=b"\0" + empty)))
    learn(rig, "t")
    assert len(rig.brokers.sent(METADATA)) >= 2


def test_a_connection_that_is_dropped_during_metadata(rig: Rig) -> None:
    rig.brokers.intercept(METADATA, once(Do(drop=True)))
    learn(rig, "t")


def test_asking_often_does_not_send_often(rig: Rig) -> None:
    learn(rig, "t")
    before = len(rig.brokers.sent(METADATA))
    for _ in range(100):
        rig.metadata.refresh()
    rig.run_until(lambda: len(rig.brokers.sent(METADATA)) > before, lambda: rig.brokers.requests)
    rig.run_for(0.1)
    assert 1 <= len(rig.brokers.sent(METADATA)) - before <= 30
