"""Creation of internal topics, and which refusals are survived."""

from __future__ import annotations

from typing import cast

import pytest

from sparkmirror.connect.internal_topics import ensure_internal_topic
from sparkmirror.errors import KafkaError
from sparkmirror.wire.admin import Admin, NewTopic
from sparkmirror.wire.error_codes import broker_error
from tests.connect.fakes import FakeAdmin

KEY = "heartbeats.topic.replication.factor"


def ensure(admin: FakeAdmin) -> None:
    ensure_internal_topic(cast(Admin, admin), "heartbeats", 3, KEY)


def test_one_partition_compacted() -> None:
    admin = FakeAdmin()
    ensure(admin)
    assert admin.created == [NewTopic("heartbeats", 1, 3, {"cleanup.policy": "compact"})]


@pytest.mark.parametrize(
    "code",
    [pytest.param(35, id="version"), pytest.param(29, id="topic"), pytest.param(31, id="cluster")],
)
def test_whoever_may_not_create_goes_on(code: int, caplog: pytest.LogCaptureFixture) -> None:
    admin = FakeAdmin()
    admin.refuses["heartbeats"] = broker_error("create topic 'heartbeats' on 'b'", code)
    with caplog.at_level("INFO"):
        ensure(admin)
    assert "create topic 'heartbeats' on 'b'" in caplog.text


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param(38, f"set {KEY} to at most the number of brokers", id="replication-factor"),
        pytest.param(44, f"POLICY_VIOLATION.*3 replicas were asked for, see {KEY}", id="policy"),
    ],
)
def test_other_refusals_name_the_key(code: int, text: str) -> None:
    admin = FakeAdmin()
    admin.refuses["heartbeats"] = broker_error("create topic 'heartbeats' on 'b'", code)
    with pytest.raises(KafkaError, match=text):
        ensure(admin)
