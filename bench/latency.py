"""The latency case: 1,000 records a second, each timed from `produce` to its arrival.

    producer --> source --+--> sparkmirror -+--> target --> consumer
                          +--> MM2 ---------+
                          +--> consumer

All systems are up, and the records go to one after the other in turns of a few seconds: the host of
a virtual machine is busy now and quiet then, and what it does to one system it so does to all.
Those that have no records to copy wait. The same without a mirror, from producer to consumer
through the source alone, tells what the machine and a broker take of it.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import psutil

from bench.cases import LATENCY_PARTITIONS, NO_MIRROR, LatencyCase
from bench.filling import produce
from bench.process_tree import PeakMemory
from bench.progress import say
from bench.results import FAILURES, Measures, RunSystem
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up
from bench.starting import wait_until_copied
from bench.systems import Flow, Mirror, running_mirror
from bench.trickle import Latencies, Turns, run_consumer, run_producer
from sparkmirror.errors import MirrorError
from sparkmirror.types import TopicPartition

# A p99 depends on the host more than any other figure does: more chances to meet it quiet.
_ROUNDS_FACTOR = 2
# Records still on their way when the producer has ended.
_DRAIN_SECONDS = 60.0
# A look takes some 2 ms of a core, and whatever is on its way then waits: not more than a few.
_LOOK_SECONDS = 10.0
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(slots=True)
class Runner:
    """One system, ready for its turns: where its records come out, and its memory so far."""

    system: str
    topic: str
    bootstrap: str
    arrival_topic: str
    mirror: Mirror | None = None
    start_seconds: float = 0.0
    peak: PeakMemory = field(default_factory=PeakMemory)

    def look(self) -> None:
        """Sample the memory; one that ended is found out by its missing records."""
        if self.mirror is not None:
            self.peak.note(self.mirror.tree.sample())

    def measures(self) -> Measures:
        """What is not latency; a system has what it has."""
        started = {"start_s": self.start_seconds} if self.mirror is not None else {}
        return {**started, **self.peak.measures()}


@contextmanager
def prepared_latency(
    stage: Stage, case: LatencyCase, systems: Sequence[str]
) -> Iterator[RunSystem]:
    """Run all systems in turns; what is given then tells the figures of each."""
    topics = {system: f"{DATA_PREFIX}{case.name}-{system}" for system in systems}
    try:
        for topic in topics.values():
            _create_topic(stage, case, topic)
        outcomes = run_in_turns(stage, case, topics)
    finally:
        Topics(stage.source).delete(set(topics.values()))
        clean_up(stage)

    def tell(system: str) -> list[Measures]:
        outcome = outcomes[system]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    yield tell


def run_in_turns(
    stage: Stage, case: LatencyCase, topics: dict[str, str]
) -> dict[str, list[Measures] | Exception]:
    """The rounds of every system, or why it has none."""
    outcomes: dict[str, list[Measures] | Exception] = {}
    runners = []
    with ExitStack() as mirrors:
        for system, topic in topics.items():
            try:
                runners.append(_start(stage, case, mirrors, system, topic))
            except FAILURES as error:
                outcomes[system] = error
        turns = _turns(stage, case, [runner.topic for runner in runners])
        say(f"{case.name}: {turns.total_seconds:,.0f} s of records, the warm-up first")
        try:
            latencies, steal_percent = _send_and_time(stage, runners, turns)
        except FAILURES as error:
            return {**dict.fromkeys(topics, error), **outcomes}
        for runner in runners:
            outcomes[runner.system] = _outcome(runner, latencies, turns, steal_percent)
    return outcomes


def _outcome(
    runner: Runner, latencies: Latencies, turns: Turns, steal_percent: float
) -> list[Measures] | Exception:
    try:
        rounds = rounds_of(runner, latencies, turns)
    except MirrorError as error:
        return error
    others = {**runner.measures(), "steal_percent": steal_percent}
    return [{**each, **others} for each in rounds]


def _turns(stage: Stage, case: LatencyCase, topics: Sequence[str]) -> Turns:
    warm_up_seconds, round_seconds = case.seconds(stage.scale)
    return Turns(
        topics=tuple(topics),
        phase_seconds=(warm_up_seconds, *([round_seconds] * stage.rounds * _ROUNDS_FACTOR)),
        turn_seconds=case.turn_seconds,
        rest_seconds=case.rest_seconds,
        records_per_second=case.records_per_second,
        value_bytes=case.value_bytes,
    )


def _create_topic(stage: Stage, case: LatencyCase, topic: str) -> None:
    """A topic with one record in every partition, by which a start is seen."""
    Topics(stage.source).create([topic], LATENCY_PARTITIONS)
    first = [(number, bytes(case.value_bytes)) for number in range(LATENCY_PARTITIONS)]
    produce(stage, topic, first, {})


def _start(stage: Stage, case: LatencyCase, mirrors: ExitStack, system: str, topic: str) -> Runner:
    """Start a system, if it is one, and wait until it copies."""
    if system == NO_MIRROR:
        return Runner(system, topic, stage.source.bootstrap_servers, topic)
    flow = Flow(
        alias=f"{system}-{case.name}",
        source_bootstrap=stage.source.bootstrap_servers,
        target_bootstrap=stage.target.bootstrap_servers,
        topics=topic,
    )
    with ExitStack() as starting:
        folder = stage.log_folder(case.name, system)
        mirror = starting.enter_context(running_mirror(system, flow, folder))
        seconds = _wait_for_start(stage, mirror, flow.remote_topic(topic))
        mirrors.push(starting.pop_all())
    target = stage.target.bootstrap_servers
    return Runner(system, topic, target, flow.remote_topic(topic), mirror, seconds)


def _wait_for_start(stage: Stage, mirror: Mirror, remote: str) -> float:
    partitions = [TopicPartition(remote, number) for number in range(LATENCY_PARTITIONS)]
    with stage.target_offsets() as target:
        return wait_until_copied(mirror, target, partitions, 1)


def _send_and_time(
    stage: Stage, runners: Sequence[Runner], turns: Turns
) -> tuple[Latencies, float]:
    """The latencies of all topics, and how much of a core the host took away meanwhile."""
    producer = _SPAWN.Process(target=run_producer, args=(stage.source.bootstrap_servers, turns))
    with ExitStack() as processes:
        reports = [
            _start_consumer(processes, bootstrap, arrivals, turns)
            for bootstrap, arrivals in _arrivals(runners).items()
        ]
        for report in reports:
            report.recv()  # the consumer stands at the end of every partition
        processes.enter_context(_ended(producer))
        producer.start()
        steal_percent = _watch(producer, runners)
        latencies: Latencies = {}
        for report in reports:
            latencies.update(report.recv())
    if producer.exitcode != 0:
        raise MirrorError(f"measure latency: the producer ended with {producer.exitcode}")
    return latencies, steal_percent


def _arrivals(runners: Sequence[Runner]) -> dict[str, list[str]]:
    """Topics to consume, by bootstrap servers."""
    found: dict[str, list[str]] = {}
    for runner in runners:
        found.setdefault(runner.bootstrap, []).append(runner.arrival_topic)
    return found


def _start_consumer(
    processes: ExitStack, bootstrap: str, topics: Sequence[str], turns: Turns
) -> Connection:
    receiver, sender = _SPAWN.Pipe(duplex=False)
    expected = len(topics) * turns.records_per_topic
    consumer = _SPAWN.Process(
        target=run_consumer,
        args=(bootstrap, topics, expected, turns.total_seconds + _DRAIN_SECONDS, sender),
    )
    processes.enter_context(receiver)
    processes.enter_context(_ended(consumer))
    consumer.start()
    sender.close()
    return receiver


@contextmanager
def _ended(process: SpawnProcess) -> Iterator[None]:
    """See to it that a process is gone at the end, also when another one has failed."""
    try:
        yield
    finally:
        if process.pid is not None:
            process.terminate()
            process.join()


def _watch(producer: SpawnProcess, runners: Sequence[Runner]) -> float:
    """While records are produced: the mirrors' memory, and what the host took away."""
    stolen_seconds, started_at = psutil.cpu_times().steal, time.monotonic()
    while producer.exitcode is None:
        producer.join(_LOOK_SECONDS)
        for runner in runners:
            runner.look()
    stolen_seconds = psutil.cpu_times().steal - stolen_seconds
    return 100 * stolen_seconds / (time.monotonic() - started_at)


def rounds_of(runner: Runner, latencies: Latencies, turns: Turns) -> list[Measures]:
    """The figures of all rounds; MirrorError if records are missing."""
    phases = range(len(turns.phase_seconds))
    found = [latencies.get((runner.arrival_topic, phase), []) for phase in phases]
    got, expected = sum(map(len, found)), turns.records_per_topic
    if got < expected:
        if runner.mirror is not None:
            runner.mirror.require_running()
        name = runner.arrival_topic
        raise MirrorError(f"measure latency of {name}: {got} of {expected} records arrived")
    return [latency_measures(values) for values in found[1:]]


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
