"""Small records on their way to internal topics, and what becomes of them when brokers fail."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sparkmirror.config.clients import ClientConfig, ProducerConfig
from sparkmirror.connect.storage import record_producer
from sparkmirror.connect.storage.record_producer import RecordProducer
from sparkmirror.connect.storage.source_offsets import SourceOffsets
from sparkmirror.errors import BatchError, KafkaError, LeaseError
from sparkmirror.mirror.positions.partitioner import partition_for_key
from sparkmirror.retry import RetryPolicy
from sparkmirror.wire.produce import transaction_manager
from tests.clusters import wait_for
from tests.wire.fake_broker import (
    INIT_PRODUCER_ID,
    PRODUCE,
    Do,
    FakeCluster,
    Request,
    is_number,
    once,
)
from tests.wire.rigs import client_config

NAME = "a->b|MirrorHeartbeatConnector"
WAIT_SECONDS = 20.0
TOPIC_AUTHORIZATION, CLUSTER_AUTHORIZATION, UNSUPPORTED_VERSION = 29, 31, 35


class Outcomes:
    """What the writer reported, in order."""

    def __init__(self) -> None:
        self.errors: list[KafkaError | None] = []

    def __call__(self, error: KafkaError | None) -> None:
        self.errors.append(error)


@pytest.fixture
def target() -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2) as cluster:
        cluster.create_topic("heartbeats")
        yield cluster


@pytest.fixture
def writer(target: FakeCluster) -> Iterator[RecordProducer]:
    writer = RecordProducer(ProducerConfig(client_config(target)), NAME)
    writer.start()
    yield writer
    writer.close()


def send(
    writer: RecordProducer,
    value: bytes,
    outcomes: Outcomes | None = None,
    topic: str = "heartbeats",
) -> None:
    writer.send(topic, 0, [(b"k", value, 1_700_000_000_000)], outcomes)


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % at for at in range(first, first + count)]


# -- what is written ------------------------------------------------------------------------------


def test_records_arrive_as_they_were_given(writer: RecordProducer, target: FakeCluster) -> None:
    outcomes = Outcomes()
    rows = [(b"k", b"v", 1_700_000_000_000), (None, b"", 5), (b"gone", None, 1_700_000_000_001)]
    writer.send("heartbeats", 0, rows, outcomes)
    assert writer.flush(WAIT_SECONDS)
    assert outcomes.errors == [None]
    log = target.log("heartbeats")
    assert [(r.key, r.value, r.timestamp) for r in log.records()] == rows
    assert len(log.batches) == 1
    assert log.producers, "not written idempotently"


def test_one_call_is_one_batch_and_order_is_kept(
    writer: RecordProducer, target: FakeCluster
) -> None:
    outcomes = Outcomes()
    for value in numbers(100):
        send(writer, value, outcomes)
    assert writer.flush(WAIT_SECONDS)
    assert target.log("heartbeats").values() == numbers(100)
    assert len(target.log("heartbeats").batches) == 100
    assert outcomes.errors == [None] * 100
    assert writer.waiting == 0


def test_what_was_sent_before_the_start_is_written(target: FakeCluster) -> None:
    writer = RecordProducer(ProducerConfig(client_config(target)), NAME)
    send(writer, b"early")
    writer.start()
    assert writer.flush(WAIT_SECONDS)
    writer.close()
    assert target.log("heartbeats").values() == [b"early"]


def test_many_threads_may_send(writer: RecordProducer, target: FakeCluster) -> None:
    target.create_topic("checkpoints", partitions=4, leader=2)

    def send_all(partition: int) -> None:
        for value in numbers(50):
            writer.send("checkpoints", partition, [(None, value, 0)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send_all, range(4)))
    assert writer.flush(WAIT_SECONDS)
    assert all(target.log("checkpoints", at).values() == numbers(50) for at in range(4))


def test_no_records_are_refused_at_once(writer: RecordProducer) -> None:
    with pytest.raises(BatchError, match="no records"):
        writer.send("heartbeats", 0, [])
    assert writer.flush(0.0)


# -- brokers that fail ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Do(drop=True), id="lost-before-it-was-stored"),
        pytest.param(Do(apply=True, drop=True), id="lost-after-it-was-stored"),
        pytest.param(Do(code=6), id="not-the-leader"),
        pytest.param(Do(apply=True, code=7), id="timed-out-but-stored"),
    ],
)
def test_a_failure_on_the_way_is_survived_without_duplicates(
    writer: RecordProducer, target: FakeCluster, failure: Do
) -> None:
    target.intercept(PRODUCE, once(failure, is_number(3)))
    outcomes = Outcomes()
    for value in numbers(20):
        send(writer, value, outcomes)
    assert writer.flush(WAIT_SECONDS)
    assert target.log("heartbeats").values() == numbers(20)
    assert outcomes.errors == [None] * 20


def test_a_broker_that_goes_away_and_comes_back(
    writer: RecordProducer, target: FakeCluster
) -> None:
    send(writer, b"before")
    assert writer.flush(WAIT_SECONDS)
    target.stop_node(1)
    send(writer, b"meanwhile")
    assert not writer.flush(0.2)
    assert writer.waiting == 1
    target.start_node(1)
    assert writer.flush(WAIT_SECONDS)
    assert target.log("heartbeats").values() == [b"before", b"meanwhile"]


def test_a_topic_that_is_created_later(writer: RecordProducer, target: FakeCluster) -> None:
    send(writer, b"1", topic="late")
    assert not writer.flush(0.2)
    target.create_topic("late")
    assert writer.flush(WAIT_SECONDS)
    assert target.log("late").values() == [b"1"]


def test_waiting_for_long_is_said_once_and_forgotten_when_it_is_over(
    writer: RecordProducer,
    target: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(record_producer, "BLOCKED_SECONDS", 0.05)
    send(writer, b"1", topic="late")
    wait_for(
        lambda: "late-0" in writer.last_error and "UNKNOWN_TOPIC" in writer.last_error,
        within=WAIT_SECONDS,
        describe=lambda: f"the error is told; it is '{writer.last_error}'",
    )
    assert not writer.flush(0.3)
    assert sum("late-0" in line for line in caplog.messages) == 1
    assert writer.missing == {"late"}
    target.create_topic("late")
    assert writer.flush(WAIT_SECONDS)
    assert writer.last_error == ""
    assert writer.missing == frozenset()


# -- what the target will never take --------------------------------------------------------------


def test_a_refused_batch_is_reported_and_the_others_go_on(
    writer: RecordProducer, target: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    target.log("heartbeats").max_message_bytes = 200
    outcomes = Outcomes()
    for value in (b"1", b"x" * 500, b"2"):
        send(writer, value, outcomes)
    assert writer.flush(WAIT_SECONDS)
    assert target.log("heartbeats").values() == [b"1", b"2"]
    first, refused, last = outcomes.errors
    assert first is None
    assert last is None
    assert "MESSAGE_TOO_LARGE" in str(refused)
    assert f"[{NAME}] produce to heartbeats-0 on 'fake': MESSAGE_TOO_LARGE" in caplog.text


def test_the_same_refusal_is_logged_once(
    writer: RecordProducer, target: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    target.intercept(PRODUCE, lambda _: Do(code=TOPIC_AUTHORIZATION))
    outcomes = Outcomes()
    for value in numbers(5):
        send(writer, value, outcomes)
        assert writer.flush(WAIT_SECONDS)
    assert all("TOPIC_AUTHORIZATION_FAILED" in str(error) for error in outcomes.errors)
    assert len(outcomes.errors) == 5
    assert sum("TOPIC_AUTHORIZATION_FAILED" in line for line in caplog.messages) == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in writer.last_error


def test_a_producer_that_may_not_write_at_all_waits(
    writer: RecordProducer,
    target: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(transaction_manager, "DENIED", RetryPolicy.every(0.05))
    target.intercept(INIT_PRODUCER_ID, once(Do(code=CLUSTER_AUTHORIZATION)))
    outcomes = Outcomes()
    send(writer, b"patient", outcomes)
    assert writer.flush(WAIT_SECONDS)
    assert outcomes.errors == [None]
    assert "AUTHORIZATION_FAILED: User:ANONYMOUS lacks" in caplog.text


def test_a_producer_that_is_refused_is_tried_again(
    writer: RecordProducer, target: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_producer, "RESTART_SECONDS", 0.05)
    target.intercept(INIT_PRODUCER_ID, once(Do(code=UNSUPPORTED_VERSION)))
    outcomes = Outcomes()
    send(writer, b"refused", outcomes)
    assert writer.flush(WAIT_SECONDS)
    assert "UNSUPPORTED_VERSION" in str(outcomes.errors[0])
    send(writer, b"allowed", outcomes)
    assert writer.flush(WAIT_SECONDS)
    assert outcomes.errors[1] is None
    assert target.log("heartbeats").values() == [b"allowed"]


# -- the end --------------------------------------------------------------------------------------


def test_nothing_is_written_when_the_lease_is_over(
    target: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker may have written newer heartbeats, checkpoints or offsets by now."""
    monkeypatch.setattr(record_producer, "RESTART_SECONDS", 0.05)
    seconds, outcomes = 5.0, Outcomes()
    writer = RecordProducer(ProducerConfig(client_config(target)), NAME, lease=lambda: seconds)
    writer.start()
    try:
        send(writer, b"1", outcomes)
        wait_for(lambda: outcomes.errors == [None], within=WAIT_SECONDS)
        seconds = 0.0
        send(writer, b"2", outcomes)
        wait_for(lambda: len(outcomes.errors) == 2, within=WAIT_SECONDS)
        assert isinstance(outcomes.errors[1], LeaseError)
        seconds = 5.0
        send(writer, b"3", outcomes)
        wait_for(lambda: len(outcomes.errors) == 3, within=WAIT_SECONDS)
    finally:
        writer.close()
    assert [record.value for record in target.log("heartbeats").records()] == [b"1", b"3"]


def test_close_reports_what_was_not_written(target: FakeCluster) -> None:
    writer = RecordProducer(ProducerConfig(client_config(target)), NAME)
    writer.start()
    outcomes = Outcomes()
    send(writer, b"1", outcomes, topic="missing")
    assert not writer.flush(0.05)
    writer.close()
    (error,) = outcomes.errors
    assert "is closed" in str(error)
    with pytest.raises(KafkaError, match=r"write to heartbeats-0: the writer of .* is closed"):
        send(writer, b"2")
    assert not writer.flush(0.0)
    writer.close()


def test_close_without_start_reports_too() -> None:
    writer = RecordProducer(ProducerConfig(ClientConfig("b", ("127.0.0.1:1",))), NAME)
    outcomes = Outcomes()
    send(writer, b"1", outcomes)
    writer.close()
    assert "is closed" in str(outcomes.errors)


def test_a_thread_that_dies_tells_everyone_and_takes_nothing_more(
    writer: RecordProducer, target: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    hold = threading.Event()

    def answer(_: Request) -> Do:
        hold.wait(WAIT_SECONDS)
        return Do(apply=True)

    def explode(_: KafkaError | None) -> None:
        raise ZeroDivisionError("a mistake of the caller")

    target.intercept(PRODUCE, answer)
    outcomes = Outcomes()
    writer.send("heartbeats", 0, [(None, b"1", 0)], explode)
    send(writer, b"2", outcomes)
    send(writer, b"3", outcomes)
    hold.set()
    assert not writer.flush(WAIT_SECONDS)
    assert ["died: ZeroDivisionError" in str(error) for error in outcomes.errors] == [True, True]
    with pytest.raises(KafkaError, match="died: ZeroDivisionError: a mistake of the caller"):
        send(writer, b"4")
    assert f"[{NAME}] the writer of internal topics died" in caplog.text


# -- offsets of connectors that have none ---------------------------------------------------------


def test_source_offsets_go_where_java_puts_them(
    writer: RecordProducer, target: FakeCluster
) -> None:
    target.create_topic("offsets", partitions=25)
    offsets = SourceOffsets(writer, "offsets")
    keys = [b'["c",{"n":%d}]' % at for at in range(40)]
    for key in (*keys, keys[0]):
        offsets.note(key)
    offsets.store(25)
    offsets.store(25)
    assert writer.flush(WAIT_SECONDS)
    found = {
        (at, record.key): record.value
        for at in range(25)
        for record in target.log("offsets", at).records()
    }
    assert found == {(partition_for_key(key, 25), key): b'{"offset":0}' for key in keys}
    assert sum(target.log("offsets", at).end_offset for at in range(25)) == 40


def test_only_what_was_noted_since_is_stored(writer: RecordProducer, target: FakeCluster) -> None:
    target.create_topic("offsets")
    offsets = SourceOffsets(writer, "offsets")
    for key in (b"1", b"2", b"1"):
        offsets.note(key)
        offsets.store(1)
    assert writer.flush(WAIT_SECONDS)
    assert [record.key for record in target.log("offsets").records()] == [b"1", b"2", b"1"]
