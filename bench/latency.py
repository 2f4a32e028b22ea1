"""The latency cases: records at a steady rate, each timed from `produce` to its arrival.

    producer --> source --> mirror --> target --> consumer

All systems run one after the other, and then all of them once more, so that a busy minute of a
virtual machine's host does not decide. The same without a mirror, from producer to consumer
through the source alone, shows the share of the machine and one broker.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess

import psutil

from bench.cases import LATENCY_PARTITIONS, NO_MIRROR, LatencyCase
from bench.filling import produce
from bench.process_tree import PeakMemory
from bench.progress import report
from bench.results import FAILURES, Measures, RunSystem
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up
from bench.starting import wait_until_copied
from bench.systems import Flow, Mirror, running_mirror
from bench.trickle import Latencies, Trickle, run_consumer, run_producer
from sparkmirror.errors import MirrorError
from sparkmirror.types import TopicPartition

# A p99 depends on the host more than any other figure, so each system runs at two times.
_VISITS = 2
# Records still on their way when the producer has ended.
_DRAIN_SECONDS = 60.0
# A sample takes some 2 ms of a core, and delays records in flight: take only a few.
_LOOK_SECONDS = 10.0
_SPAWN = multiprocessing.get_context("spawn")


@contextmanager
def prepared_latency(
    stage: Stage, case: LatencyCase, systems: Sequence[str]
) -> Iterator[RunSystem]:
    """Run all systems; the yielded function returns the rounds of each."""
    rounds: dict[str, list[Measures]] = {system: [] for system in systems}
    failures: dict[str, Exception] = {}
    for visit in range(_VISITS):
        for system in systems:
            if system not in failures:
                report(f"{case.name}: {system}, {visit + 1} of {_VISITS}")
                try:
                    rounds[system] += run_latency(stage, case, system, visit)
                except FAILURES as error:
                    failures[system] = error

    def rounds_of(system: str) -> list[Measures]:
        if system in failures:
            raise failures[system]
        return rounds[system]

    yield rounds_of


def run_latency(
    stage: Stage, case: LatencyCase, system: str, visit: int, source: str | None = None
) -> list[Measures]:
    """Run one system: a warm-up, then the rounds without a pause between them.

    `source` is the source cluster's address for the mirror, if it differs from the producer's.
    """
    topic = f"{DATA_PREFIX}{case.name}"
    warm_up_seconds, round_seconds = case.seconds(stage.scale)
    phases = (warm_up_seconds, *([round_seconds] * case.rounds_per_visit))
    trickle = Trickle(topic, phases, case.records_per_second, case.value_bytes)
    try:
        _create_topic(stage, case, topic)
        name = f"{case.name}-{visit + 1}"
        source = source or stage.source.bootstrap_servers
        latencies, others = _send_through(stage, name, system, trickle, source)
    finally:
        Topics(stage.source).delete({topic})
        clean_up(stage)
    return [{**latency_measures(latencies[phase]), **others} for phase in range(1, len(phases))]


def _send_through(
    stage: Stage, name: str, system: str, trickle: Trickle, source: str
) -> tuple[Latencies, Measures]:
    """Start the system, unless there is no mirror, and time the records at the other end."""
    if system == NO_MIRROR:
        return _probe(stage, trickle, (stage.source.bootstrap_servers, trickle.topic), None)
    flow = Flow(
        alias=f"{system}-{name}",
        source_bootstrap=source,
        target_bootstrap=stage.target.bootstrap_servers,
        topics=trickle.topic,
    )
    remote = flow.remote_topic(trickle.topic)
    with running_mirror(system, flow, stage.log_folder(name, system)) as mirror:
        start_seconds = _wait_for_start(stage, mirror, remote)
        place = (stage.target.bootstrap_servers, remote)
        latencies, others = _probe(stage, trickle, place, mirror)
    return latencies, {**others, "start_s": start_seconds}


def _create_topic(stage: Stage, case: LatencyCase, topic: str) -> None:
    """Create a topic with one record in every partition, which shows that a mirror has started."""
    Topics(stage.source).create([topic], LATENCY_PARTITIONS)
    first = [(number, bytes(case.value_bytes)) for number in range(LATENCY_PARTITIONS)]
    produce(stage.source.bootstrap_servers, topic, first, {})


def _wait_for_start(stage: Stage, mirror: Mirror, remote: str) -> float:
    partitions = [TopicPartition(remote, number) for number in range(LATENCY_PARTITIONS)]
    with stage.target_offsets() as target:
        return wait_until_copied(mirror, target, partitions, 1)


def _probe(
    stage: Stage, trickle: Trickle, place: tuple[str, str], mirror: Mirror | None
) -> tuple[Latencies, Measures]:
    """Produce to the source, consume at `place`: bootstrap servers and topic."""
    receiver, sender = _SPAWN.Pipe(duplex=False)
    deadline_seconds = sum(trickle.phase_seconds) + _DRAIN_SECONDS
    consumer = _SPAWN.Process(
        target=run_consumer, args=(*place, trickle.all_records, deadline_seconds, sender)
    )
    producer = _SPAWN.Process(target=run_producer, args=(stage.source.bootstrap_servers, trickle))
    with receiver, _ended(consumer), _ended(producer):
        consumer.start()
        sender.close()
        receiver.recv()  # the consumer is at the end of every partition
        producer.start()
        others = _watch(producer, mirror)
        latencies: Latencies = receiver.recv()
    require_all(latencies, trickle, place[1], producer.exitcode)
    return latencies, others


@contextmanager
def _ended(process: SpawnProcess) -> Iterator[None]:
    """End a process with the block, even if another one has failed."""
    try:
        yield
    finally:
        if process.pid is not None:
            process.terminate()
            process.join()


def _watch(producer: SpawnProcess, mirror: Mirror | None) -> Measures:
    """Sample the mirror's memory and the CPU that the host took, until the producer ends."""
    peak = PeakMemory()
    stolen_seconds, started_at = psutil.cpu_times().steal, time.monotonic()
    while producer.exitcode is None:
        producer.join(_LOOK_SECONDS)
        if mirror is not None:
            mirror.require_running()
            peak.note(mirror.tree.sample())
    stolen_seconds = psutil.cpu_times().steal - stolen_seconds
    seconds = time.monotonic() - started_at
    return {"steal_percent": 100 * stolen_seconds / seconds, **peak.measures()}


def require_all(latencies: Latencies, trickle: Trickle, topic: str, exit_code: int | None) -> None:
    """Raise MirrorError if records are missing."""
    got, expected = sum(map(len, latencies.values())), trickle.all_records
    if exit_code != 0 or got < expected:
        raise MirrorError(
            f"measure latency of {topic}: {got} of {expected} records arrived, "
            f"the producer ended with {exit_code}"
        )


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
