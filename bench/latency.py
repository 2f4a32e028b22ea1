"""The latency case: 1,000 records a second, each timed from `produce` to its arrival.

    producer process --> source --> mirror --> target --> consumer process

Two processes, so that neither waits for the other's turn in the interpreter; both read the
same clock of the same machine. The first eight bytes of a value are the time it was produced,
the next four the phase: 0 warm-up, then the number of the round. The same without a mirror, from
producer to consumer through the source alone, tells what the machine and a broker take of it.
"""

from __future__ import annotations

import math
import multiprocessing
import multiprocessing.connection
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.context import SpawnProcess

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.cases import LATENCY_PARTITIONS, NO_MIRROR, SPARKMIRROR, LatencyCase
from bench.filling import produce
from bench.progress import say
from bench.results import Measures, RunSystem
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up
from bench.starting import wait_until_copied
from bench.systems import Flow, Mirror, running_mirror
from sparkmirror.errors import MirrorError
from sparkmirror.types import TopicPartition as Partition

_STAMP = struct.Struct(">qi")
_TICK_SECONDS = 0.001
_CONSUMER_SETTLE_SECONDS = 2.0
# Records still on their way when the producer has ended.
_DRAIN_SECONDS = 60.0
# A look takes some 2 ms of a core, and whatever is on its way then waits: not more than a few.
_LOOK_SECONDS = 10.0
_SPAWN = multiprocessing.get_context("spawn")

Latencies = dict[int, list[float]]


@contextmanager
def prepared_latency(stage: Stage, case: LatencyCase) -> Iterator[RunSystem]:
    """Warm the brokers up for many small requests; every system gets a topic of its own.

    Their code for these is compiled over the first minutes, at the cost of whoever runs then.
    """
    say(f"{case.name}: warming up the brokers")
    run_latency(stage, replace(case, warm_up_seconds=case.brokers_warm_up_seconds), SPARKMIRROR)
    yield lambda system: run_latency(stage, case, system)


def run_latency(stage: Stage, case: LatencyCase, system: str) -> list[Measures]:
    """Run one system: a warm-up, then the rounds without a pause between them."""
    topic = f"{DATA_PREFIX}{case.name}"
    try:
        _create_topic(stage, case, topic)
        latencies, others = _send_through(stage, case, topic, system)
    finally:
        Topics(stage.source).delete({topic})
        clean_up(stage)
    return [
        {**latency_measures(latencies[phase]), **others} for phase in range(1, stage.rounds + 1)
    ]


def _send_through(
    stage: Stage, case: LatencyCase, topic: str, system: str
) -> tuple[Latencies, Measures]:
    """Start the system, if it is one, and time the records at its other end."""
    if system == NO_MIRROR:
        return _probe(stage, case, (stage.source.bootstrap_servers, topic), None)
    flow = Flow(
        alias=f"{system}-{case.name}",
        source_bootstrap=stage.source.bootstrap_servers,
        target_bootstrap=stage.target.bootstrap_servers,
        topics=topic,
    )
    with running_mirror(system, flow, stage.log_folder(case.name, system)) as mirror:
        start_seconds = _wait_for_start(stage, mirror, flow.remote_topic(topic))
        place = (stage.target.bootstrap_servers, flow.remote_topic(topic))
        latencies, others = _probe(stage, case, place, mirror)
    return latencies, {**others, "start_s": start_seconds}


def _create_topic(stage: Stage, case: LatencyCase, topic: str) -> None:
    """A topic with one record in every partition, by which a start is seen."""
    Topics(stage.source).create([topic], LATENCY_PARTITIONS)
    first = [(number, bytes(case.value_bytes)) for number in range(LATENCY_PARTITIONS)]
    produce(stage, topic, first, {})


def _wait_for_start(stage: Stage, mirror: Mirror, remote: str) -> float:
    partitions = [Partition(remote, number) for number in range(LATENCY_PARTITIONS)]
    with stage.target_offsets() as target:
        return wait_until_copied(mirror, target, partitions, 1)


def _probe(
    stage: Stage, case: LatencyCase, place: tuple[str, str], mirror: Mirror | None
) -> tuple[Latencies, Measures]:
    """Produce to the source, consume at `place`: bootstrap servers and topic."""
    topic = f"{DATA_PREFIX}{case.name}"
    warm_up_seconds, round_seconds = case.seconds(stage.scale)
    phases = [warm_up_seconds, *([round_seconds] * stage.rounds)]
    expected = sum(int(seconds * case.records_per_second) for seconds in phases)
    receiver, sender = _SPAWN.Pipe(duplex=False)
    deadline = sum(phases) + _CONSUMER_SETTLE_SECONDS + _DRAIN_SECONDS
    consumer = _SPAWN.Process(
        target=run_consumer,
        args=(*place, expected, deadline, sender),
    )
    producer = _SPAWN.Process(
        target=run_producer, args=(stage.source.bootstrap_servers, topic, case, phases)
    )
    with receiver, _ended(consumer), _ended(producer):
        consumer.start()
        sender.close()
        receiver.recv()  # the consumer stands at the end of every partition
        producer.start()
        others = _watch(producer, mirror)
        latencies: Latencies = receiver.recv()
    _require_all(latencies, expected, place[1], producer)
    return latencies, others


@contextmanager
def _ended(process: SpawnProcess) -> Iterator[None]:
    """See to it that a process is gone at the end, also when the mirror has failed."""
    try:
        yield
    finally:
        if process.pid is not None:
            process.terminate()
            process.join()


def _watch(producer: SpawnProcess, mirror: Mirror | None) -> Measures:
    """While records are produced: the mirror's highest memory, and what the host took away."""
    peak_rss_bytes = peak_task_rss_bytes = 0
    stolen_seconds, started_at = psutil.cpu_times().steal, time.monotonic()
    while producer.exitcode is None:
        producer.join(_LOOK_SECONDS)
        if mirror is not None:
            mirror.require_running()
            usage = mirror.tree.sample()
            peak_rss_bytes = max(peak_rss_bytes, usage.rss_bytes)
            peak_task_rss_bytes = max(peak_task_rss_bytes, usage.largest_task_rss_bytes)
    stolen_seconds = psutil.cpu_times().steal - stolen_seconds
    others = {"steal_percent": 100 * stolen_seconds / (time.monotonic() - started_at)}
    if peak_rss_bytes:
        others["rss_mb"] = peak_rss_bytes / 1e6
    if peak_task_rss_bytes:
        others["task_rss_mb"] = peak_task_rss_bytes / 1e6
    return others


def _require_all(latencies: Latencies, expected: int, remote: str, producer: SpawnProcess) -> None:
    got = sum(len(values) for values in latencies.values())
    if producer.exitcode != 0 or got < expected:
        raise MirrorError(
            f"measure latency of {remote}: {got} of {expected} records arrived, "
            f"the producer ended with {producer.exitcode}"
        )


def run_producer(bootstrap: str, topic: str, case: LatencyCase, phases: Sequence[float]) -> None:
    """Runs in a process of its own: produce at a steady rate, phase after phase."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    padding = bytes(case.value_bytes - _STAMP.size)
    for phase, seconds in enumerate(phases):
        total = int(seconds * case.records_per_second)
        started_at = time.monotonic()
        sent = 0
        while sent < total:
            due = min(total, int((time.monotonic() - started_at) * case.records_per_second))
            for number in range(sent, due):
                stamp = _STAMP.pack(time.time_ns(), phase)
                producer.produce(topic, stamp + padding, partition=number % LATENCY_PARTITIONS)
            sent = due
            producer.poll(0)
            time.sleep(_TICK_SECONDS)
    producer.flush()


def run_consumer(
    bootstrap: str,
    topic: str,
    expected: int,
    deadline_seconds: float,
    report: multiprocessing.connection.Connection,
) -> None:
    """Runs in a process of its own: collect latencies in ms by phase until all have arrived."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "fetch.queue.backoff.ms": 1,
        }
    )
    partitions = [TopicPartition(topic, number) for number in range(LATENCY_PARTITIONS)]
    for partition in partitions:
        partition.offset = consumer.get_watermark_offsets(partition)[1]
    consumer.assign(partitions)
    consumer.poll(_CONSUMER_SETTLE_SECONDS)
    report.send("ready")
    report.send(_collect(consumer, expected, time.monotonic() + deadline_seconds))
    consumer.close()


def _collect(consumer: Consumer, expected: int, deadline: float) -> Latencies:
    latencies: Latencies = {}
    got = 0
    while got < expected and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            produced_ns, phase = _STAMP.unpack_from(message.value())
            latencies.setdefault(phase, []).append((time.time_ns() - produced_ns) / 1e6)
            got += 1
    return latencies


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile: the smallest value that `percent` % do not exceed."""
    if not ordered:
        raise ValueError("no values to take a percentile of")
    rank = max(1, math.ceil(len(ordered) * percent / 100))
    return ordered[rank - 1]


def latency_measures(latencies_ms: Sequence[float]) -> Measures:
    """The figures of one round."""
    ordered = sorted(latencies_ms)
    return {
        "p50_ms": percentile(ordered, 50),
        "p99_ms": percentile(ordered, 99),
        "max_ms": ordered[-1],
    }
