"""A whole topic in one pass; one that is not there must not look like an empty one."""

from __future__ import annotations

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.storage.log_reader import read_topic
from sparkmirror.errors import TransportError
from sparkmirror.types import TopicPartition
from tests.wire.fake_broker import FakeCluster


def test_all_records_of_all_partitions() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("t", partitions=2)
        cluster.write(TopicPartition("t", 0), [b"a", b"b"])
        cluster.write(TopicPartition("t", 1), [b"x"])
        found = read_topic(ClientConfig("b", cluster.bootstrap_servers), "t", 2, 10.0)
        assert sorted(record.value or b"" for record in found) == [b"a", b"b", b"x"]


def test_a_missing_topic_is_not_an_empty_one() -> None:
    with FakeCluster() as cluster:
        client = ClientConfig("b", cluster.bootstrap_servers)
        with pytest.raises(TransportError, match=r"read topic 't' on 'b': not done in 0\.3 s"):
            read_topic(client, "t", 1, 0.3)
