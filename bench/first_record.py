"""The start case: how long `run` takes until the records of a small topic are on the target.

This case has its own clusters. Their brokers let a new group wait for further members as long as
brokers do by default (`group.initial.rebalance.delay.ms`); those of the other cases and of the
tests do not wait, which would hide three seconds of every start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from confluent_kafka import Producer

from bench.cases import StartCase
from bench.process_tree import PeakMemory
from bench.progress import report
from bench.results import Measures, RunSystem
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up
from bench.starting import wait_until_copied
from bench.systems import Flow, running_mirror
from sparkmirror.embedded import KafkaCluster
from sparkmirror.errors import KafkaError
from sparkmirror.types import TopicPartition

DEFAULT_DELAY = {"group.initial.rebalance.delay.ms": "3000"}
_FLUSH_SECONDS = 60.0


@contextmanager
def prepared_start(stage: Stage, case: StartCase) -> Iterator[RunSystem]:
    """Start two clusters with the brokers' default delay, and write the topic."""
    source, target = (
        KafkaCluster(f"bench-start-{side}", properties=DEFAULT_DELAY)
        for side in ("source", "target")
    )
    with source, target:
        own = replace(stage, source=source, target=target)
        topic = f"{DATA_PREFIX}{case.name}"
        Topics(source).create([topic], case.partitions)
        _fill(source, topic, case.partitions)
        report(f"{case.name}: clusters and topic are ready")
        yield lambda system: run_start(own, case, topic, system)


def run_start(stage: Stage, case: StartCase, topic: str, system: str) -> list[Measures]:
    """Start one system repeatedly, each time without its topics on the clusters."""
    return [_start_once(stage, case, topic, system, at) for at in range(case.rounds)]


def _start_once(stage: Stage, case: StartCase, topic: str, system: str, at: int) -> Measures:
    flow = Flow(
        alias=f"{system}-{case.name}-{at}",
        source_bootstrap=stage.source.bootstrap_servers,
        target_bootstrap=stage.target.bootstrap_servers,
        topics=topic,
    )
    remotes = [TopicPartition(flow.remote_topic(topic), n) for n in range(case.partitions)]
    try:
        with (
            running_mirror(system, flow, stage.log_folder(f"{case.name}-{at}", system)) as mirror,
            stage.target_offsets() as target,
        ):
            seconds = wait_until_copied(mirror, target, remotes, 1)
            usage = mirror.tree.sample()
            memory = PeakMemory()
            memory.note(usage)
            cpu_seconds = usage.cpu_seconds
            return {"start_s": seconds, "start_cpu_s": cpu_seconds, **memory.measures()}
    finally:
        clean_up(stage)


def _fill(cluster: KafkaCluster, topic: str, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for number in range(partitions):
        producer.produce(topic, b"one", partition=number)
    left = producer.flush(_FLUSH_SECONDS)
    if left:
        raise KafkaError(f"fill the source: {left} records not acknowledged")
