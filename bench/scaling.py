"""The scale cases: time to start on many partitions, then CPU and memory while idle.

The largest one has clusters of three brokers, groups to follow, and a topic that appears later.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from confluent_kafka import Producer

from bench.cases import ScaleCase
from bench.end_offsets import EndOffsets
from bench.process_tree import PeakMemory, ProcessTree, Usage
from bench.progress import report
from bench.refresh_looks import group_admin
from bench.results import Measures, RunSystem
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up, wider_stage
from bench.starting import wait_until_copied
from bench.systems import Flow, Mirror, running_mirror
from sparkmirror.embedded import KafkaCluster
from sparkmirror.errors import KafkaError
from sparkmirror.types import TopicPartition

_PARTITIONS_PER_TOPIC = 10
# Often enough not to lose the CPU of a process that ends.
_SAMPLE_SECONDS = 1.0
_TOPICS_PER_REQUEST = 100
_FLUSH_SECONDS = 120.0
# How often all systems look for topics and groups, make checkpoints and write group offsets.
_ROUND_SECONDS = "60"


def scale_topics(case: ScaleCase) -> list[str]:
    """Topics of ten partitions each."""
    count = case.partitions // _PARTITIONS_PER_TOPIC
    return [f"{DATA_PREFIX}{case.name}-{number}" for number in range(count)]


# -- data ------------------------------------------------------------------------------------------


@contextmanager
def prepared_scale(stage: Stage, case: ScaleCase) -> Iterator[RunSystem]:
    """Create the topics with one record in every partition; delete them at the end."""
    names = scale_topics(case)
    with wider_stage(stage, case.brokers) as wide:
        topics = Topics(wide.source)
        for at in range(0, len(names), _TOPICS_PER_REQUEST):
            some = names[at : at + _TOPICS_PER_REQUEST]
            topics.create(some, _PARTITIONS_PER_TOPIC)
            _fill(wide.source, some)
        if case.groups:
            _commit_groups(wide.source, case, names)
        report(f"{case.name}: {len(names)} topics and {case.groups} groups are ready")
        yield lambda system: run_scale(wide, case, names, system)
        topics.delete(set(names))


def _fill(cluster: KafkaCluster, names: Sequence[str]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for name in names:
        for number in range(_PARTITIONS_PER_TOPIC):
            producer.produce(name, b"one", partition=number)
    left = producer.flush(_FLUSH_SECONDS)
    if left:
        raise KafkaError(f"fill the source: {left} records not acknowledged")


def group_partitions(case: ScaleCase, names: Sequence[str]) -> dict[str, list[TopicPartition]]:
    """The partitions that each group has read; every topic belongs to one group."""
    return {
        f"{case.name}-group-{number}": [
            TopicPartition(name, at)
            for name in names[number :: case.groups]
            for at in range(_PARTITIONS_PER_TOPIC)
        ]
        for number in range(case.groups)
    }


def _commit_groups(cluster: KafkaCluster, case: ScaleCase, names: Sequence[str]) -> None:
    wanted = {
        group: dict.fromkeys(partitions, (1, ""))
        for group, partitions in group_partitions(case, names).items()
    }
    with closing(group_admin(cluster)) as admin:
        outcomes = admin.alter_many(wanted)
    errors = [error for outcome in outcomes.values() for error in outcome.values() if error]
    if errors:
        raise errors[0]


# -- one run ---------------------------------------------------------------------------------------


def run_scale(stage: Stage, case: ScaleCase, names: list[str], system: str) -> list[Measures]:
    """Run one system once: it has started when every partition's record is on the target."""
    flow = scale_flow(stage, case, system)
    settle_seconds, idle_seconds = case.seconds(stage.scale)
    try:
        with (
            running_mirror(system, flow, stage.log_folder(case.name, system)) as mirror,
            stage.target_offsets() as target,
        ):
            start_seconds = wait_until_copied(mirror, target, _remote_partitions(flow, names), 1)
            time.sleep(settle_seconds)
            before = mirror.tree.sample()
            after = _idle(mirror.tree, idle_seconds)
            mirror.require_running()
            measures = scale_measures(start_seconds, before, after, idle_seconds)
            if case.groups:
                measures["new_topic_s"] = _new_topic(stage, flow, mirror, target, case)
    finally:
        clean_up(stage)
    return [measures]


def scale_flow(stage: Stage, case: ScaleCase, system: str) -> Flow:
    """The flow of one system, with the rounds of its groups if there are any."""
    rounds = {
        "refresh.topics.interval.seconds": _ROUND_SECONDS,
        "refresh.groups.interval.seconds": _ROUND_SECONDS,
        "sync.group.offsets.enabled": "true",
    }
    return Flow(
        alias=f"{system}-{case.name}",
        source_bootstrap=stage.source.bootstrap_servers,
        target_bootstrap=stage.target.bootstrap_servers,
        topics=f"{DATA_PREFIX}{case.name}-.*",
        settings=rounds if case.groups else {},
    )


def _remote_partitions(
    flow: Flow, names: Sequence[str], each: int = _PARTITIONS_PER_TOPIC
) -> list[TopicPartition]:
    return [
        TopicPartition(flow.remote_topic(name), number) for name in names for number in range(each)
    ]


def _new_topic(
    stage: Stage, flow: Flow, mirror: Mirror, target: EndOffsets, case: ScaleCase
) -> float:
    """Seconds from creating one more topic until its records are on the target."""
    name = f"{DATA_PREFIX}{case.name}-new"
    topics = Topics(stage.source)
    began = time.monotonic() - mirror.started_at
    topics.create([name], _PARTITIONS_PER_TOPIC)
    try:
        _fill(stage.source, [name])
        return wait_until_copied(mirror, target, _remote_partitions(flow, [name]), 1) - began
    finally:
        topics.delete({name})


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
        "start_cpu_s": before.cpu_seconds,
        "idle_cpu_percent": 100.0 * cpu_seconds / idle_seconds,
        **memory.measures(),
    }
