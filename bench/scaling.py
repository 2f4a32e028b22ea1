"""The scale cases: time to start on many partitions, then CPU and memory with nothing to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.cases import ScaleCase
from bench.filling import produce
from bench.process_tree import PeakMemory, ProcessTree, Usage
from bench.results import Measures, RunSystem
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up
from bench.starting import wait_until_copied
from bench.systems import Flow, running_mirror
from sparkmirror.types import TopicPartition

_PARTITIONS_PER_TOPIC = 10
# Often enough not to lose the CPU of a process that ends.
_SAMPLE_SECONDS = 1.0


def scale_topics(case: ScaleCase) -> list[str]:
    """Topics of ten partitions each."""
    count = case.partitions // _PARTITIONS_PER_TOPIC
    return [f"{DATA_PREFIX}{case.name}-{number}" for number in range(count)]


@contextmanager
def prepared_scale(stage: Stage, case: ScaleCase) -> Iterator[RunSystem]:
    """Create the topics with one record in every partition; delete them at the end."""
    names = scale_topics(case)
    topics = Topics(stage.source)
    topics.create(names, _PARTITIONS_PER_TOPIC)
    for name in names:
        produce(
            stage.source.bootstrap_servers,
            name,
            [(number, b"one") for number in range(_PARTITIONS_PER_TOPIC)],
            {},
        )
    yield lambda system: run_scale(stage, case, names, system)
    topics.delete(set(names))


def run_scale(stage: Stage, case: ScaleCase, names: list[str], system: str) -> list[Measures]:
    """Run one system once: it has started when every partition's record is on the target."""
    flow = Flow(
        alias=f"{system}-{case.name}",
        source_bootstrap=stage.source.bootstrap_servers,
        target_bootstrap=stage.target.bootstrap_servers,
        topics=f"{DATA_PREFIX}{case.name}-.*",
    )
    partitions = [
        TopicPartition(flow.remote_topic(name), number)
        for name in names
        for number in range(_PARTITIONS_PER_TOPIC)
    ]
    settle_seconds, idle_seconds = case.seconds(stage.scale)
    try:
        with (
            running_mirror(system, flow, stage.log_folder(case.name, system)) as mirror,
            stage.target_offsets() as target,
        ):
            start_seconds = wait_until_copied(mirror, target, partitions, 1)
            time.sleep(settle_seconds)
            before = mirror.tree.sample()
            after = _idle(mirror.tree, idle_seconds)
            mirror.require_running()
    finally:
        clean_up(stage)
    return [scale_measures(start_seconds, before, after, idle_seconds)]


def _idle(tree: ProcessTree, seconds: float) -> Usage:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(_SAMPLE_SECONDS, left))
        usage = tree.sample()
    return usage


def scale_measures(
    start_seconds: float, before: Usage, after: Usage, idle_seconds: float
) -> Measures:
    """The figures of one run; 100 % is one core."""
    cpu_seconds = after.cpu_seconds - before.cpu_seconds
    memory = PeakMemory()
    memory.note(after)
    return {
        "start_s": start_seconds,
        "idle_cpu_percent": 100.0 * cpu_seconds / idle_seconds,
        **memory.measures(),
    }
