"""A target whose topics are not as they should be: named, put right, and no record is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.clusters import Record, create_topic, produce
from tests.kafka.mirror_process import STOP_SECONDS, Mirror
from tests.kafka.records import assert_identical, end_of, fill, number, wait_until_copied
from tests.kafka.topics import topic_shape

pytestmark = pytest.mark.kafka

COMPACT = {"cleanup.policy": "compact"}


def test_remote_topics_of_another_shape_and_a_refused_syncs_topic(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    narrow = create_topic(source_cluster, partitions=3)
    compacted = create_topic(source_cluster, config=COMPACT)
    # Its remote topic is compacted, and would refuse records without a key.
    plain = create_topic(source_cluster)
    for partition in range(3):
        fill(source_cluster, narrow, 50, partition=partition)
    rows = [Record(number(at), b"%d" % at) for at in range(50)]
    produce(source_cluster, compacted, rows)
    fill(source_cluster, plain, 50)
    settings = {
        "sync.topic.configs.enabled": "true",
        "offset-syncs.topic.location": "target",
        "offset-syncs.topic.replication.factor": "5",
    }
    topics = f"{narrow},{compacted},{plain}"
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topics, settings)
    shapes = {narrow: {}, compacted: {"cleanup.policy": "delete"}, plain: COMPACT}
    for topic, config in shapes.items():
        create_topic(target_cluster, mirror.remote(topic), config=config)
    with mirror:
        for topic, partitions in ((narrow, 3), (compacted, 1), (plain, 1)):
            wait_until_copied(mirror, topic, partitions)
            assert_identical(mirror, topic, partitions)
        flow, syncs = f"{mirror.alias}->target:", f"mm2-offset-syncs.{mirror.alias}.internal"
        refused = f"create topic '{syncs}' on 'target': INVALID_REPLICATION_FACTOR"
        for text in (
            f"{flow} '{mirror.remote(narrow)}' has 3 partitions now",
            f"{flow} '{mirror.remote(compacted)}': cleanup.policy=compact",
            f"{flow} '{mirror.remote(plain)}': cleanup.policy is the target's default",
            f"{flow} creating internal topics failed: {refused}",
        ):
            assert mirror.log().count(text) == 1, text
        assert topic_shape(target_cluster, mirror.remote(narrow)) == (3, "delete")
        assert topic_shape(target_cluster, mirror.remote(compacted)) == (1, "compact")
        assert topic_shape(target_cluster, mirror.remote(plain)) == (1, "delete")
        assert end_of(target_cluster, syncs) < 0
        assert mirror.stop() < STOP_SECONDS
