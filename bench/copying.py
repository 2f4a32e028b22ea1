"""The copy cases: how fast a warm mirror copies a backlog, and what CPU it takes.

    warm    visible from the start: copied before anything is measured
    1, 2    hidden from the mirror until their round begins

A round is measured from the last moment at which the target had none of its records to the
moment at which it has all of them, so neither the discovery of the topic nor the polling
interval is credited to anybody.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bench import tls
from bench.cases import DATA_PARTITIONS, SPARKMIRROR, CopyCase
from bench.end_offsets import EndOffsets
from bench.filling import fill_topic, write_back
from bench.process_tree import PeakMemory, Usage
from bench.progress import say
from bench.results import Measures, RunSystem
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up
from bench.starting import wait_until_copied
from bench.systems import Flow, Mirror, running_mirror
from sparkmirror.errors import MirrorError
from sparkmirror.types import TopicPartition

_POLL_SECONDS = 0.05
_SAMPLE_SECONDS = 0.5
_SETTLE_SECONDS = 3.0
# Longest time without a new record before a run is given up.
_STALL_SECONDS = 120.0
# A broker's compiled code is as fast as it gets after some 6 GB.
_BROKER_WARM_UPS = 2


@dataclass(frozen=True, slots=True)
class CopyTopics:
    """Names of a case's topics on the source."""

    warm: str
    rounds: tuple[str, ...]

    @property
    def pattern(self) -> str:
        return f"{self.warm.removesuffix('warm')}.*"


def copy_topics(case: CopyCase, rounds: int) -> CopyTopics:
    """The topics that a case needs."""
    prefix = f"{DATA_PREFIX}{case.name}-"
    return CopyTopics(f"{prefix}warm", tuple(f"{prefix}{n}" for n in range(1, rounds + 1)))


@contextmanager
def prepared_copy(stage: Stage, case: CopyCase) -> Iterator[RunSystem]:
    """Write the case's data to the source, hide what is to be measured; delete it at the end."""
    names = copy_topics(case, stage.rounds)
    everything = (names.warm, *names.rounds)
    topics = Topics(stage.source)
    topics.create(everything, DATA_PARTITIONS)
    for name in everything:
        shape = fill_topic(stage, name, case)
    say(
        f"{case.name}: {len(everything)} topics of {shape.records:,} records, "
        f"{shape.records_per_batch:.1f} records and {shape.bytes_per_batch:,.0f} B per batch"
    )
    for number in range(1, _BROKER_WARM_UPS + 1):
        warm_up_brokers(stage, case, everything, number)
    topics.hide(names.rounds)
    yield lambda system: run_copy(stage, case, names, system)
    topics.show(names.rounds)
    topics.delete(set(everything))


def warm_up_brokers(stage: Stage, case: CopyCase, names: Sequence[str], number: int) -> None:
    """Mirror everything once, unmeasured: a cold broker would cost the first system its figures."""
    say(f"{case.name}: warming up the brokers, {number} of {_BROKER_WARM_UPS}")
    flow = _flow(stage, case, f"brokers{number}-{case.name}")
    folder = stage.log_folder(case.name, f"brokers{number}")
    try:
        with running_mirror(SPARKMIRROR, flow, folder) as mirror, stage.target_offsets() as target:
            run = _Run(stage, case, flow, mirror, target)
            for name in names:
                run.warm_up(name)
    finally:
        clean_up(stage)


def _flow(stage: Stage, case: CopyCase, alias: str) -> Flow:
    plain = Flow(
        alias=alias,
        source_bootstrap=stage.source.bootstrap_servers,
        target_bootstrap=stage.target.bootstrap_servers,
        topics=copy_topics(case, stage.rounds).pattern,
        refresh_seconds=1,
    )
    return _with_tls(stage, plain) if case.tls else plain


def _with_tls(stage: Stage, flow: Flow) -> Flow:
    source = tls.client_settings(flow.alias, stage.tls_store)
    target = tls.client_settings("target", stage.tls_store)
    return replace(
        flow,
        source_bootstrap=stage.source.servers_of(tls.LISTENER),
        target_bootstrap=stage.target.servers_of(tls.LISTENER),
        settings={**flow.settings, **source, **target},
    )


def run_copy(stage: Stage, case: CopyCase, names: CopyTopics, system: str) -> list[Measures]:
    """Run one system: warm it up, then measure every round."""
    flow = _flow(stage, case, f"{system}-{case.name}")
    folder = stage.log_folder(case.name, system)
    source = Topics(stage.source)
    try:
        with running_mirror(system, flow, folder) as mirror, stage.target_offsets() as target:
            run = _Run(stage, case, flow, mirror, target)
            start_seconds = run.warm_up(names.warm)
            measured = [run.measure(name, source) for name in names.rounds]
    finally:
        source.show(names.rounds)
        source.hide(names.rounds)
        clean_up(stage)
    return [{**measures, "start_s": start_seconds} for measures in measured]


@dataclass(frozen=True, slots=True)
class _Run:
    """A mirror that runs, and the connection that watches it."""

    stage: Stage
    case: CopyCase
    flow: Flow
    mirror: Mirror
    target: EndOffsets

    def warm_up(self, topic: str) -> float:
        """Wait until the warm-up topic is copied; seconds from the start to its first record."""
        partitions = self._remote(topic)
        each = self._records_each()
        start_seconds = wait_until_copied(
            self.mirror, self.target, partitions, each, all_of_them=False
        )
        wait_until_copied(self.mirror, self.target, partitions, each)
        return start_seconds

    def measure(self, topic: str, source: Topics) -> Measures:
        """Show `topic` to the mirror and measure the copy of it."""
        time.sleep(_SETTLE_SECONDS)
        write_back()
        source.show([topic])
        copy = watch_copy(self.mirror, self.target, self._remote(topic), self._records_each())
        records = self.case.record_count(self.stage.scale)
        return copy_measures(copy, records, records * self.case.value_bytes)

    def _records_each(self) -> int:
        return self.case.record_count(self.stage.scale) // DATA_PARTITIONS

    def _remote(self, topic: str) -> list[TopicPartition]:
        remote = self.flow.remote_topic(topic)
        return [TopicPartition(remote, number) for number in range(DATA_PARTITIONS)]


@dataclass(frozen=True, slots=True)
class Copy:
    """One copied backlog: how long it took, the tree before and after, the highest memory."""

    seconds: float
    before: Usage
    after: Usage
    peak: PeakMemory


def watch_copy(
    mirror: Mirror, target: EndOffsets, partitions: list[TopicPartition], each: int
) -> Copy:
    """Follow the copy of a topic, `each` records in a partition, that is not on the target yet."""
    watch = _Watch(mirror, target, partitions, each)
    while watch.count == 0:
        watch.start()
        watch.poll()
    while watch.count < each * len(partitions):
        watch.poll()
    return watch.finish()


class _Watch:
    """Polls the target; samples the process tree now and then, to catch its memory's peak."""

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

    def start(self) -> None:
        """Nothing has arrived yet: what is measured begins here at the earliest."""
        self._started_at = time.monotonic()
        self._before = self._mirror.tree.sample()
        self._sampled_at = self._started_at
        self._peak = PeakMemory()

    def poll(self) -> None:
        """Wait for the next look and count what has arrived."""
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

    def finish(self) -> Copy:
        """All has arrived."""
        after = self._mirror.tree.sample()
        self._peak.note(after)
        seconds = self._polled_at - self._started_at
        return Copy(seconds, self._before, after, self._peak)

    def _require_progress(self, now: float) -> None:
        self._mirror.require_running()
        if now - self._moved_at > _STALL_SECONDS:
            raise MirrorError(
                f"copy {self._partitions[0].topic}: stuck at {self.count} records for "
                f"{_STALL_SECONDS:g} s; see {self._mirror.log_path}"
            )


def copy_measures(copy: Copy, records: int, payload_bytes: int) -> Measures:
    """The figures of one round. MB and GB are 10^6 and 10^9 bytes of values, uncompressed."""
    cpu_seconds = copy.after.cpu_seconds - copy.before.cpu_seconds
    task_cpu_seconds = copy.after.task_cpu_seconds - copy.before.task_cpu_seconds
    gigabytes = payload_bytes / 1e9
    measures = {
        "mb_per_s": payload_bytes / 1e6 / copy.seconds,
        "records_per_s": records / copy.seconds,
        "cpu_s_per_gb": cpu_seconds / gigabytes,
        **copy.peak.measures(),
    }
    if copy.peak.task_rss_bytes:
        measures["task_cpu_s_per_gb"] = task_cpu_seconds / gigabytes
    return measures
