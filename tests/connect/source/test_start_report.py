"""What a source connector says about where it resumes, and what --resume-only refuses."""

from __future__ import annotations

import logging

import pytest

from sparkmirror.connect.source.start_report import refuse_fresh_starts
from sparkmirror.connect.storage.offset_backing_store import StoredPosition
from sparkmirror.errors import MirrorError, TransportError
from sparkmirror.mirror.positions.provenance import Provenance
from sparkmirror.types import TopicPartition
from sparkmirror.wire.fetch.offset_fetcher import Range
from tests.connect.fakes import Connector

T0, T1, TT = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("tt", 0)


@pytest.fixture(autouse=True)
def info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if "stored positions" in line]


def test_start_tells_how_many_resume_and_why_others_do_not(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t", 2)
    connector.source.ranges = {T0: Range(0, 9), T1: Range(0, 9)}
    connector.store.positions = {T0: 4}
    connector.refresh()
    (line,) = reports(caplog)
    assert line == (
        "[a->b] 2 partitions: 1 resume at their stored positions, 1 start afresh "
        "(auto.offset.reset=earliest): 1 have no stored position: t-1"
    )


def test_the_stored_offset_is_the_last_that_was_copied(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t", 2)
    connector.source.ranges = {T0: Range(0, 9), T1: Range(0, 9)}
    connector.store.positions = {T0: 8, T1: 9}
    connector.refresh()
    (line,) = reports(caplog)
    assert "1 resume" in line
    assert line.endswith("beyond the end of the log (truncated or recreated): t-1")


def test_a_position_of_another_topic_id_does_not_resume(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t", 2, topic_id=b"new" + bytes(13))
    connector.source.ranges = {T0: Range(0, 9), T1: Range(0, 9)}
    old, new = (Provenance(topic_id=text + bytes(13)) for text in (b"old", b"new"))
    connector.store.positions = {T0: StoredPosition(5, old), T1: StoredPosition(5, new)}
    assert connector.refused_starts() == [
        "a->b: t, partition 0: stored position of a topic that was recreated"
    ]
    connector.refresh()
    (line,) = reports(caplog)
    assert "2 partitions: 1 resume" in line
    assert line.endswith("1 have a stored position of a topic that was deleted and recreated: t-0")


def test_a_topic_that_comes_back_under_another_id_is_reported_as_recreated(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t", 1)
    connector.source.add("excluded.internal", 1)  # a list without any topic is not believed at once
    connector.source.ranges = {T0: Range(0, 9)}
    connector.store.positions = {T0: 4}
    connector.refresh()
    del connector.source.topics["t"]
    connector.refresh()
    connector.source.add("t", 1, topic_id=b"another")
    connector.refresh()
    assert reports(caplog)[-1].endswith("that was deleted and recreated: t-0")


def test_only_new_partitions_are_told_later(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t", 2)
    connector.refresh()
    connector.refresh()
    connector.source.add("tt")
    connector.source.ranges = {TT: Range(0, 3)}
    connector.refresh()
    first, second = reports(caplog)
    assert first.startswith("[a->b] 2 partitions: 0 resume")
    assert second.startswith("[a->b] 1 partitions: 0 resume")
    assert second.endswith("1 have no stored position: tt-0")


def test_a_report_that_cannot_be_made_does_not_hold_up_the_copy(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    connector.source.add("t", 1)
    connector.store.failures = [TransportError("read topic 'x': no response")]
    connector.refresh()
    assert [task.started for task in connector.fake_tasks] == [1]
    assert "[a->b] the positions to resume at cannot be read" in caplog.messages
    # The tasks give the reason, once.
    assert "no response" not in caplog.text


def test_refused_are_the_wanted_partitions_without_a_place_to_resume(connector: Connector) -> None:
    for topic in ("t", "tt", "other"):
        connector.source.add(topic, 2)
    connector.source.ranges = {T0: Range(0, 9), T1: Range(0, 9), TT: Range(0, 9)}
    connector.store.positions = {T0: 3}
    assert connector.refused_starts() == [
        "a->b: t, partition 1: no stored position",
        "a->b: tt, partition 0: no stored position",
    ]
    assert connector.target.created == []
    assert connector.tasks == []


def test_logs_that_are_not_known_are_refused(connector: Connector) -> None:
    connector.source.add("t", 1)
    connector.source.ranges = {T0: TransportError("no leader is known")}
    connector.store.positions = {T0: 3}
    assert connector.refused_starts() == ["a->b: t, partition 0: no leader is known"]


def test_refusal_lists_everything_and_says_what_to_do() -> None:
    refuse_fresh_starts([])
    with pytest.raises(MirrorError) as raised:
        refuse_fresh_starts(["a->b: t, partition 1: why", "b->a: u, partition 0: why"])
    text = str(raised.value)
    assert "  a->b: t, partition 1: why\n  b->a: u, partition 0: why\n" in text
    assert "nothing was started" in text
    assert "run without --resume-only" in text
