"""A cluster of which no broker responds is logged once, and once when that is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import TransportError
from sparkmirror.wire.client import network_client as cluster_module
from sparkmirror.wire.net.outages import RECENT_SECONDS, Outages, SilentError
from tests.wire.fake_broker import API_VERSIONS, METADATA, FakeCluster, Request
from tests.wire.rigs import WAIT_SECONDS, Rig

CONFIG = ClientConfig("b", ("h:1", "h:2"))
ONE, TWO = ("h", 1), ("h", 2)
BOTH = (ONE, TWO)


class Now:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.outages = Outages(lambda: self.at)

    def report(self, broker: tuple[str, int], seconds: float = 3.0) -> bool:
        error = SilentError("no response", seconds, "h:1")
        return self.outages.report(CONFIG, error, broker, BOTH)


def test_all_brokers_that_are_silent_are_one_line_and_so_is_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = Now()
    assert not now.report(ONE)
    assert caplog.messages == []  # the caller may log this broker
    now.at += 2
    assert now.report(TWO)
    assert now.report(ONE)
    assert now.outages.is_lasting(CONFIG)
    (line,) = caplog.messages
    assert line.startswith("cluster 'b' (h:1,h:2) has not responded since ")
    assert "nothing is copied from it or to it until it does" in line
    now.at += 60
    for _ in range(2):
        now.outages.responded(CONFIG)
    assert caplog.messages[1:] == ["cluster 'b' (h:1,h:2) responds again, after 65 s"]
    assert not now.outages.is_lasting(CONFIG)


def test_one_broker_that_responds_makes_it_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    now = Now()
    now.report(ONE)
    now.outages.responded(CONFIG)
    assert not now.report(TWO)
    assert caplog.messages == []


def test_a_refused_connection_is_no_silence() -> None:
    outages = Outages()
    for broker in BOTH:
        assert not outages.report(CONFIG, TransportError("refused"), broker, BOTH)
    assert not outages.is_lasting(CONFIG)


def test_a_quiet_process_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    now = Now()
    now.outages.is_quiet = True
    assert now.report(ONE)
    assert now.report(TWO)
    now.outages.responded(CONFIG)
    assert caplog.messages == []


def test_what_was_silent_long_ago_may_respond_to_others_now(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = Now()
    now.report(ONE)
    now.at += RECENT_SECONDS + 1
    assert not now.report(TWO)
    assert caplog.messages == []


@pytest.fixture
def outages(monkeypatch: pytest.MonkeyPatch) -> Outages:
    outages = Outages()
    monkeypatch.setattr(cluster_module, "OUTAGES", outages)
    return outages


@pytest.fixture
def brokers() -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2) as cluster:
        cluster.create_topic("t", partitions=2)
        yield cluster


def test_a_frozen_cluster_and_its_return(
    brokers: FakeCluster, outages: Outages, caplog: pytest.LogCaptureFixture
) -> None:
    released = threading.Event()

    def freeze(_: Request) -> None:
        released.wait(WAIT_SECONDS)

    with Rig(brokers, request_timeout_ms=200) as rig:
        cluster = rig.cluster
        cluster.metadata.track(["t"])
        rig.run_until(lambda: bool(cluster.metadata.leaders), lambda: "no leaders")
        for api in (API_VERSIONS, METADATA):
            brokers.intercept(api, freeze)

        def is_silent() -> bool:
            for node in (-2, -1, 1, 2):
                cluster.connection(node)
            cluster.metadata.refresh()
            return outages.is_lasting(cluster.config)

        rig.run_until(is_silent, lambda: caplog.messages)
        released.set()
        rig.run_until(lambda: not is_silent(), lambda: "still silent")
    lines = [line for line in caplog.messages if "has not responded since" in line]
    assert len(lines) == 1
    assert "responds again" in caplog.messages[-1]
