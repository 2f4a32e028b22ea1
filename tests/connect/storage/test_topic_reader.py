"""A whole topic in one pass; one that is not there must not look like an empty one."""

from __future__ import annotations

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.connect.storage.topic_reader import TopicReader
from sparkmirror.errors import TransportError
from sparkmirror.types import TopicPartition
from tests.wire.fake_broker import FakeCluster


def test_all_records_of_all_partitions() -> None:
    with FakeCluster() as cluster:
        cluster.create_topic("t", partitions=2)
        cluster.write(TopicPartition("t", 0), [b"a", b"b"])
        cluster.write(TopicPartition("t", 1), [b"x"])
        reader = TopicReader(ClientConfig("b", cluster.bootstrap_servers), "t", 2)
        assert sorted(record.value or b"" for record in reader.read(10.0)) == [b"a", b"b", b"x"]


def test_a_missing_topic_is_not_an_empty_one() -> None:
    with FakeCluster() as cluster:
        reader = TopicReader(ClientConfig("b", cluster.bootstrap_servers), "t", 1)
        with pytest.raises(TransportError, match=r"read topic 't' on 'b': not done in 0\.3 s"):
            reader.read(0.3)
