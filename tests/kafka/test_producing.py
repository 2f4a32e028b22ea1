"""Settings of the producer that change what is stored on the target: codec and acks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.embedded import KafkaCluster
from tests.kafka.log_files import stored_batches
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import assert_identical, fill, new_topic, wait_until_copied

pytestmark = pytest.mark.kafka


def test_batches_are_compressed_anew_when_a_codec_is_set_and_acks_1_needs_no_producer_id(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    topic = new_topic(source_cluster)
    for at, codec in enumerate(("none", "gzip", "lz4", "snappy", "zstd")):
        config = {"compression.type": codec, "linger.ms": 100}
        fill(source_cluster, topic, 200, first=200 * at, config=config)
    settings = {"target.producer.compression.type": "zstd", "target.producer.acks": "1"}
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        wait_until_copied(mirror, topic)
        assert_identical(mirror, topic)
        assert len({batch.codec for batch in stored_batches(source_cluster, topic)}) == 5
        stored = stored_batches(target_cluster, mirror.remote(topic))
        assert {(batch.codec, batch.producer_id) for batch in stored} == {("zstd", -1)}
