"""Producers and consumers move to the target while records flow: nothing lost, nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.clusters import start_cluster
from tests.failover.runbook import CASES, SOME, Clusters, Runbook, Story, make_mirror

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Story]]:
    """Both moves side by side; one mirror serves both."""
    folder = tmp_path_factory.mktemp("runbook")
    source, target = start_cluster("source"), start_cluster("target")
    with ExitStack() as stack, ThreadPoolExecutor(len(CASES)) as pool:
        for cluster in (source, target):
            stack.callback(cluster.stop)
            cluster.launch()
        for cluster in (source, target):
            cluster.wait_ready()
        mirror = make_mirror(folder, source, target)
        clusters = Clusters(source, target, mirror, folder)
        runs = {name: Runbook(case, clusters) for name, case in CASES.items()}
        for run in runs.values():
            stack.callback(run.close)
            run.start()
        stack.callback(mirror.kill)
        mirror.start()
        list(pool.map(Runbook.move, runs.values()))
        mirror.stop()
        list(pool.map(Runbook.end, runs.values()))
        yield {name: run.story for name, run in runs.items()}


@pytest.mark.parametrize("policy", CASES)
def test_nothing_is_lost_and_nothing_is_read_again(stories: dict[str, Story], policy: str) -> None:
    story = stories[policy]
    read = Counter(story.read_on_source + story.read_on_target)
    sent = Counter(story.sent)
    assert sent - read == Counter(), "lost"
    assert read - sent == Counter(), "read again"
    # It was a move, not an end and a beginning: each cluster had its share.
    assert len(story.read_on_source) >= SOME
    assert len(story.read_on_target) >= 3 * SOME


@pytest.mark.parametrize("policy", CASES)
def test_offset_sync_application_says_what_it_wrote(stories: dict[str, Story], policy: str) -> None:
    # Not once: it has followed the group while that was reading.
    assert len(set(stories[policy].written)) > 1
