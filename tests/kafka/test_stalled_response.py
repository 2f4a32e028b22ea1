"""Connections that fall silent in the middle of a response, and stay open; new ones work.

As behind a firewall that has forgotten them: no reset ever comes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkmirror.config.files.properties import load_properties
from sparkmirror.embedded import GenuineMirrorMaker, KafkaCluster
from tests.clusters import wait_for
from tests.kafka.broker_failures import SHORT_TIMEOUTS
from tests.kafka.long_lines import Far, far_cluster, over_lines
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import assert_identical, end_of, fill, new_topic, wait_for_end

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 2
SIZE = 1000
COUNT = 6000
# Of a response of some megabytes. What the test writes and reads goes without the line.
PART_BYTES = 200_000
WITHIN_SECONDS = 120.0
DELAY_SECONDS = 0.02
# Tasks look at deadlines, and for progress, once a second, and allow fetch.max.wait.ms on top.
LATER_SECONDS = 2.5
# A task names a broker that has been silent for 5 s if that lasts for another 3 s.
NAMED_BEFORE = {"SOURCE.consumer.request.timeout.ms": "12000"}


def fill_all(cluster: KafkaCluster, topic: str, count: int, first: int) -> None:
    for partition in range(PARTITIONS):
        fill(cluster, topic, count, partition=partition, first=first, size=SIZE)


def wait_for_all(mirror: Mirror, topic: str, wanted: int) -> None:
    for partition in range(PARTITIONS):
        wait_for_end(mirror, topic, wanted, partition, within=WITHIN_SECONDS)


def test_a_response_that_stops_halfway_is_fetched_again(
    target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    with far_cluster("stalling", tmp_path) as far:
        source, line = far
        topic = new_topic(source, partitions=PARTITIONS)
        settings = SHORT_TIMEOUTS | NAMED_BEFORE | over_lines(source=line)
        with (
            Mirror(tmp_path, source, target_cluster, topic, settings) as mirror,
            genuine_beside(mirror, tmp_path) as theirs,
        ):
            fill_all(source, topic, 1, 0)
            wait_for_all(mirror, topic, 1)
            wait_for_all(theirs, topic, 1)
            line.stretch(delay_seconds=DELAY_SECONDS)
            line.freeze(after_bytes=PART_BYTES)
            fill_all(source, topic, COUNT, 1)
            wait_for(lambda: line.stats().frozen > 0, within=60.0, describe="a silent connection")
            ours_at, theirs_at = arrivals([mirror, theirs], topic)
            mirror.wait_for_log("does not respond: no byte from")
            assert line.stats().frozen > 0
            mirror.stop()
            assert_identical(mirror, topic, PARTITIONS)
            assert "FAILED" not in mirror.log()
    assert ours_at <= theirs_at + LATER_SECONDS


@contextmanager
def genuine_beside(mirror: Mirror, folder: Path) -> Iterator[Mirror]:
    """MirrorMaker 2 with the same file but for its alias, seen as a mirror."""
    seen = Mirror(_new(folder / "genuine"), mirror.source, mirror.target, "none")
    text = mirror.file.read_text().replace(mirror.alias, seen.alias)
    seen.file.write_text(text)
    with GenuineMirrorMaker(load_properties(seen.file), seen.file.parent, heap="512m"):
        yield seen


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def arrivals(mirrors: list[Mirror], topic: str) -> list[float]:
    """When everything had arrived, of each."""

    def arrive(mirror: Mirror) -> float:
        wait_for_all(mirror, topic, COUNT + 1)
        return time.monotonic()

    with ThreadPoolExecutor() as pool:
        return list(pool.map(arrive, mirrors))


def test_acknowledgements_that_stop_are_awaited_on_new_connections(
    source_cluster: KafkaCluster, tmp_path: Path
) -> None:
    with far_cluster("silent-target", tmp_path) as far:
        topic = new_topic(source_cluster, partitions=PARTITIONS)
        settings = SHORT_TIMEOUTS | over_lines(target=far.line)
        with Mirror(tmp_path, source_cluster, far.cluster, topic, settings) as mirror:
            fill_all(source_cluster, topic, 1, 0)
            wait_for_all(mirror, topic, 1)
            far.line.stretch(delay_seconds=DELAY_SECONDS)
            freeze_while_it_copies(mirror, far, topic)
            wait_for_all(mirror, topic, COUNT + 1)
            assert far.line.stats().frozen > 0
            mirror.stop()
            assert_identical(mirror, topic, PARTITIONS)
            assert "FAILED" not in mirror.log()


def freeze_while_it_copies(mirror: Mirror, far: Far, topic: str) -> None:
    """Silence all connections at a moment when some of the records are stored."""
    fill_all(mirror.source, topic, COUNT // 2, 1)
    wait_for(
        lambda: end_of(far.cluster, mirror.remote(topic)) > 1,
        within=WITHIN_SECONDS,
        describe="some records are there",
    )
    far.line.freeze()
    fill_all(mirror.source, topic, COUNT - COUNT // 2, 1 + COUNT // 2)
