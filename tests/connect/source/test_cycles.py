"""Topics that look like copies are left out, and named once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect.fakes import Connector

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def left_out(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [
        (record.levelname, record.getMessage().partition(" already: ")[2].partition(";")[0])
        for record in caplog.records
        if "not copied, because their names begin with an alias" in record.getMessage()
    ]


def test_a_topic_that_begins_with_the_targets_alias_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="sparkmirror")
    connector = Connector(tmp_path, {"a->b.topics": ".*"})
    for topic in ("t", "b.orders", "a.old", "c.b.x", "c.y", "b.heartbeats", "mm2-x.internal"):
        connector.source.add(topic)
    for _ in range(2):
        connector.refresh()
    assert left_out(caplog) == [("INFO", "a.old, b.orders, c.b.x")]
    connector.source.add("b.late")
    connector.refresh()
    assert left_out(caplog)[1:] == [("INFO", "b.late")]


def test_it_is_a_warning_when_the_file_asks_for_it_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connector = Connector(tmp_path, {"a->b.topics": "b.orders, t"})
    for topic in ("t", "b.orders", "b.other"):
        connector.source.add(topic)
    connector.refresh()
    assert left_out(caplog) == [("WARNING", "b.orders")]


def test_names_of_the_identity_policy_say_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="sparkmirror")
    connector = Connector(tmp_path, {"a->b.topics": ".*", "replication.policy.class": IDENTITY})
    connector.source.add("b.orders")
    connector.refresh()
    assert left_out(caplog) == []
