"""The copy cases: how fast a warm mirror copies a backlog, and how much CPU it takes.

A case has one topic. Each copy of it is a new connector of the same worker:

    brokers   two unmeasured copies: cold brokers would spoil the figures of the first system
    warm-up   copies until two more do not lower the CPU per GB
    rounds    a fixed number of measured copies; the median counts

A copy is measured in a window: from the last poll that found none of its records on the target to
the first poll after the window's seconds, or the one that found all of them. So the start of the
connector is excluded. After the last round the target is compared with the source.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench import tls
from bench.cases import SPARKMIRROR, CopyCase
from bench.comparing import compare_copy
from bench.end_offsets import EndOffsets
from bench.filling import fill_topic, write_back
from bench.process_tree import PeakMemory, Usage
from bench.progress import report
from bench.results import Measures, RunSystem
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up
from bench.systems import Mirror
from bench.workers import CopyName, Route, Worker, running_worker
from sparkmirror.errors import MirrorError
from sparkmirror.retry import wait_for
from sparkmirror.types import TopicPartition

_POLL_SECONDS = 0.05
_SAMPLE_SECONDS = 0.5
_SETTLE_SECONDS = 3.0
# The longest time without a new record before a run is aborted.
_STALL_SECONDS = 120.0
# A stopping task may have records in flight.
_QUIET_SECONDS = 1.0
_BROKER_WARM_UPS = 2
_FEWEST_WARM_UPS = 3
_MOST_WARM_UPS = 8
# CPU per GB is flat when two more windows lower it by less than this share.
_FLAT_SHARE = 0.05


@contextmanager
def prepared_copy(stage: Stage, case: CopyCase) -> Iterator[RunSystem]:
    """Write the case's topic to the source and warm up the brokers; delete it at the end."""
    topic = f"{DATA_PREFIX}{case.name}"
    topics = Topics(stage.source)
    topics.create([topic], case.partitions)
    shape = fill_topic(stage, topic, case)
    report(
        f"{case.name}: {shape.records:,} records, {shape.stored_bytes / 1e9:.1f} GB, "
        f"{shape.records_per_batch:.1f} records and {shape.bytes_per_batch:,.0f} B per batch"
    )
    _warm_up_brokers(stage, case, topic)
    yield lambda system: run_copy(stage, case, topic, system)
    topics.delete({topic})


def _warm_up_brokers(stage: Stage, case: CopyCase, topic: str) -> None:
    report(f"{case.name}: warming up the brokers")
    with _running(stage, case, topic, SPARKMIRROR, "brokers") as run:
        for number in range(1, _BROKER_WARM_UPS + 1):
            run.measure(f"brokers{number}")


def run_copy(stage: Stage, case: CopyCase, topic: str, system: str) -> list[Measures]:
    """Run one system: warm it up, measure every round, compare the last copy with the source."""
    with _running(stage, case, topic, system, system) as run:
        warm_ups = run.warm_up()
        rounds = [run.measure(f"{system}-r{number}") for number in range(1, stage.rounds)]
        rounds.append(run.measure(f"{system}-r{stage.rounds}", compare=True))
    return [{**measures, "warm_ups": float(warm_ups)} for measures in rounds]


@contextmanager
def _running(stage: Stage, case: CopyCase, topic: str, system: str, name: str) -> Iterator[Copier]:
    group, folder = f"{case.name}-{name}", stage.log_folder(case.name, name)
    bootstrap = stage.target.bootstrap_servers
    try:
        with (
            running_worker(system, group, bootstrap, folder) as worker,
            stage.target_offsets() as target,
        ):
            yield Copier(stage, case, topic, worker, target, _route(stage, case))
    finally:
        clean_up(stage)


def _route(stage: Stage, case: CopyCase) -> Route:
    if not case.tls:
        return Route(stage.source.bootstrap_servers, stage.target.bootstrap_servers)
    return Route(
        stage.source.servers_of(tls.LISTENER),
        stage.target.servers_of(tls.LISTENER),
        tls.client_settings(stage.tls_store),
    )


def is_flat(cpu_s_per_gb: Sequence[float]) -> bool:
    """Whether the last two windows took about as much CPU per GB as the best before them."""
    if len(cpu_s_per_gb) < _FEWEST_WARM_UPS:
        return False
    return min(cpu_s_per_gb[-2:]) >= (1 - _FLAT_SHARE) * min(cpu_s_per_gb[:-2])


@dataclass(frozen=True, slots=True)
class Copier:
    """A worker that copies a topic repeatedly, and the connection that watches the target."""

    stage: Stage
    case: CopyCase
    topic: str
    worker: Worker
    target: EndOffsets
    route: Route

    def warm_up(self) -> int:
        """Copy until the CPU per GB is flat; returns the number of windows."""
        seen: list[float] = []
        while not is_flat(seen) and len(seen) < _MOST_WARM_UPS:
            name = f"{self.worker.system}-w{len(seen) + 1}"
            seen.append(self.measure(name)["cpu_s_per_gb"])
        shown = ", ".join(f"{value:.2f}" for value in seen)
        report(f"{self.case.name} {self.worker.system}: warm-up windows {shown} CPU s/GB")
        return len(seen)

    def measure(self, alias: str, *, compare: bool = False) -> Measures:
        """Copy the topic once under a new source alias, and measure a window of the copy."""
        name = CopyName(alias, self.topic)
        partitions = [TopicPartition(name.remote_topic, n) for n in range(self.case.partitions)]
        self.worker.start_copy(name, self.route)
        window_seconds = self.case.window_seconds(self.stage.scale)
        window = watch_window(
            self.worker.mirror, self.target, partitions, self._records_each(), window_seconds
        )
        self.worker.end_copy(name)
        self._wait_until_quiet(partitions)
        if compare:
            compare_copy(self.stage, self.topic, name.remote_topic, self._ends(partitions))
        Topics(self.stage.target).delete({name.remote_topic})
        time.sleep(_SETTLE_SECONDS)
        write_back()
        return window_measures(window, self.case.value_bytes)

    def _records_each(self) -> int:
        return self.case.record_count(self.stage.scale) // self.case.partitions

    def _ends(self, partitions: list[TopicPartition]) -> list[int]:
        found = self.target.end_offsets(partitions)
        return [found[partition] or 0 for partition in partitions]

    def _wait_until_quiet(self, partitions: list[TopicPartition]) -> None:
        def is_quiet() -> bool:
            before = self._ends(partitions)
            time.sleep(_QUIET_SECONDS)
            return self._ends(partitions) == before

        wait_for(is_quiet, within=_STALL_SECONDS, describe=f"{partitions[0].topic} stops growing")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a copy: seconds, records, the process tree before and after, highest memory."""

    seconds: float
    records: int
    before: Usage
    after: Usage
    peak: PeakMemory


def watch_window(
    mirror: Mirror,
    target: EndOffsets,
    partitions: list[TopicPartition],
    each: int,
    seconds: float,
) -> Window:
    """Follow the copy of a topic with `each` records per partition, from its first record on."""
    watch = _Watch(mirror, target, partitions, each)
    while watch.count == 0:
        watch.start()
        watch.poll()
    while watch.count < each * len(partitions) and watch.seconds < seconds:
        watch.poll()
    return watch.finish()


class _Watch:
    """Polls the target, and samples the process tree regularly, for its peak memory."""

    def __init__(
        self, mirror: Mirror, target: EndOffsets, partitions: list[TopicPartition], each: int
    ) -> None:
        self._mirror = mirror
        self._target = target
        self._partitions = partitions
        self._each = each
        self._moved_at = time.monotonic()
        self.count = 0
        self.start()

    @property
    def seconds(self) -> float:
        return self._polled_at - self._started_at

    def start(self) -> None:
        """Start the window here, because nothing has arrived yet."""
        self._started_at = self._polled_at = time.monotonic()
        self._before = self._mirror.tree.sample()
        self._sampled_at = self._started_at
        self._peak = PeakMemory()

    def poll(self) -> None:
        """Wait, then count the records that have arrived."""
        time.sleep(_POLL_SECONDS)
        count = self._target.record_count(self._partitions, self._each)
        now = time.monotonic()
        if count > self.count:
            self._moved_at = now
        self.count = count
        self._polled_at = now
        self._require_progress(now)
        if now - self._sampled_at > _SAMPLE_SECONDS:
            self._sampled_at = now
            self._peak.note(self._mirror.tree.sample())

    def finish(self) -> Window:
        """Close the window."""
        after = self._mirror.tree.sample()
        self._peak.note(after)
        return Window(self.seconds, self.count, self._before, after, self._peak)

    def _require_progress(self, now: float) -> None:
        self._mirror.require_running()
        if now - self._moved_at > _STALL_SECONDS:
            raise MirrorError(
                f"copy {self._partitions[0].topic}: stuck at {self.count} records for "
                f"{_STALL_SECONDS:g} s; see {self._mirror.log_path}"
            )


def window_measures(window: Window, value_bytes: int) -> Measures:
    """The figures of one window. MB and GB are 10^6 and 10^9 bytes of values, uncompressed."""
    cpu_seconds = window.after.cpu_seconds - window.before.cpu_seconds
    task_cpu_seconds = window.after.task_cpu_seconds - window.before.task_cpu_seconds
    gigabytes = window.records * value_bytes / 1e9
    measures = {
        "mb_per_s": gigabytes * 1e3 / window.seconds,
        "records_per_s": window.records / window.seconds,
        "cpu_s_per_gb": cpu_seconds / gigabytes,
        "window_s": window.seconds,
        **window.peak.measures(),
    }
    if window.peak.task_rss_bytes:
        measures["task_cpu_s_per_gb"] = task_cpu_seconds / gigabytes
    return measures
