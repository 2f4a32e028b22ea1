"""The steps of the demo: two clusters, a mirror between them, and a comparison at the end.

    start clusters -> fill the source -> start the mirror, wait for the backlog
    -> live records while a topic is created -> stop -> start again, one more record everywhere
    -> stop -> compare

Runs on: the user's machine. At the end, successful or not, everything that it started is stopped
and its folder deleted, unless the user keeps them.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException

from sparkmirror.demo.arrival import Arrivals
from sparkmirror.demo.compare import TopicResult, compare_topics
from sparkmirror.demo.fills import LATE_RECORDS
from sparkmirror.demo.live import LiveResult, LiveTraffic
from sparkmirror.demo.mirror_process import (
    ENGINES,
    SOURCE,
    TARGET,
    MirrorEnded,
    MirrorProcess,
    mm2_properties,
)
from sparkmirror.demo.producing import producing
from sparkmirror.demo.reading import EndOffsets
from sparkmirror.demo.report import (
    Backlog,
    DemoResult,
    DemoStep,
    KeptClusters,
    Narrator,
    RestartStep,
    describe_latency,
    describe_restart,
)
from sparkmirror.demo.seed import LATE, TOPICS, create_topics, seed_topics
from sparkmirror.embedded import KAFKA_VERSION, KafkaCluster
from sparkmirror.embedded.java import QUICK_JVM_ARGS
from sparkmirror.embedded.kafka_jars import kafka_jars
from sparkmirror.errors import MirrorError
from sparkmirror.spark import machine
from sparkmirror.types import TopicPartition

LIVE_TOPIC = "orders"
LIVE_SECONDS = 4.0
# After a restart, records that are copied again would arrive soon after the new ones.
SETTLE_SECONDS = 2.0
_BROKER_PROPERTIES = {
    # Fewer internal partitions: brokers of a small machine start faster.
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    # The log cleaner looks for work five times a second, not every 15 s.
    "log.cleaner.backoff.ms": "200",
}


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """The user's choices; `properties` are changes to the mm2.properties."""

    engine: str = "sparkmirror"
    keep: bool = False
    timeout_seconds: float = 120.0
    properties: Mapping[str, str] = field(default_factory=dict)


class Demo:
    """One run of the demo."""

    def __init__(self, settings: DemoSettings, narrator: Narrator) -> None:
        self.kept: KeptClusters | None = None
        self._settings = settings
        self._narrator = narrator
        self._folder = Path(tempfile.mkdtemp(prefix="sparkmirror-demo-"))
        self._source = self._cluster(SOURCE)
        self._target = self._cluster(TARGET)
        file = self._folder / "mm2.properties"
        self._mirror = MirrorProcess(ENGINES[settings.engine], file, detached=settings.keep)
        self._stop_seconds: list[float] = []

    def run(self) -> DemoResult:
        """Run all steps. Raises MirrorError if one fails."""
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            stack.callback(self._source.stop)
            stack.callback(self._target.stop)
            stack.callback(self._mirror.kill)
            try:
                result = self._run_steps()
            except MirrorError:
                self._keep_if_asked(stack)
                raise
            self._keep_if_asked(stack)
            return result

    def _run_steps(self) -> DemoResult:
        self._start_clusters()
        arrivals = self._arrivals()
        backlog = self._copy_backlog(arrivals, self._seed(arrivals))
        live, late_seconds = self._send_live(arrivals)
        self._stop_mirror()
        restart = self._start_again(arrivals)
        # Kept processes continue to mirror.
        if not self._settings.keep:
            self._stop_mirror()
        topics = self._compare()
        return DemoResult(
            engine=self._settings.engine,
            topics=topics,
            backlog=backlog,
            late_topic_seconds=late_seconds,
            latency=live.latency,
            stop_seconds=self._stop_seconds,
            restart=restart,
            steps=self._narrator.steps,
        )

    def _arrivals(self) -> Arrivals:
        return Arrivals(EndOffsets(self._target.bootstrap_servers).list_end_offsets, remote_name)

    def _start_clusters(self) -> None:
        with self._step(f"Start two Kafka {KAFKA_VERSION} clusters") as step:
            for cluster in (self._source, self._target):
                cluster.launch()
            for cluster in (self._source, self._target):
                cluster.wait_ready()
            step.detail = (
                f"source {self._source.bootstrap_servers}, target {self._target.bootstrap_servers}"
            )

    def _seed(self, arrivals: Arrivals) -> int:
        """Fill the source; returns the number of bytes in it."""
        with self._step(f"Fill {len(TOPICS)} topics of the source") as step:
            topics = seed_topics(self._source.bootstrap_servers)
            for topic in topics:
                arrivals.expect(
                    {TopicPartition(topic.name, n): c for n, c in topic.records.items()}
                )
            size_bytes = sum(topic.size_bytes for topic in topics)
            gaps = sum(topic.gaps for topic in topics)
            step.detail = (
                f"{arrivals.total:,} records, {size_bytes / 1e6:.1f} MB, {gaps:,} offset gaps "
                "from compaction and transactions"
            )
        return size_bytes

    def _copy_backlog(self, arrivals: Arrivals, size_bytes: int) -> Backlog:
        self._write_properties()
        first: list[float] = []

        def on_poll(done: int, total: int) -> None:
            if done > 0 and not first:
                first.append(time.monotonic())
            self._on_poll(step, done, total)

        with self._step(f"Start {self._mirror.engine.title} and copy them") as step:
            began = time.monotonic()
            self._mirror.start()
            arrivals.wait(self._settings.timeout_seconds, on_poll)
            copied_in = time.monotonic() - first[0]
            step.detail = (
                f"first records after {first[0] - began:.1f} s, all {copied_in:.1f} s later"
            )
        return Backlog(arrivals.total, size_bytes, first[0] - began, copied_in)

    def _send_live(self, arrivals: Arrivals) -> tuple[LiveResult, float]:
        """Send live records while a new topic is created."""
        traffic = LiveTraffic(self._source.bootstrap_servers, self._target.bootstrap_servers)
        partitions = next(row.partitions for row in TOPICS if row.name == LIVE_TOPIC)
        with (
            self._step(f"Send to '{LIVE_TOPIC}' while topic '{LATE.name}' is created") as step,
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="late-topic") as pool,
        ):
            late = pool.submit(self._create_late_topic)
            live = traffic.run(LIVE_TOPIC, remote_name(LIVE_TOPIC), partitions, LIVE_SECONDS)
            late_seconds = late.result()
            arrivals.expect(live.delivered)
            arrivals.expect(_late_records())
            arrivals.wait(self._settings.timeout_seconds, lambda d, t: self._on_poll(step, d, t))
            latency = describe_latency(live.latency) if live.latency else "no latency seen"
            step.detail = f"{latency}; '{LATE.name}' arrived after {late_seconds:.1f} s"
        return live, late_seconds

    def _create_late_topic(self) -> float:
        """Create and fill the topic; returns the seconds until its records were on the target."""
        arrivals = self._arrivals()
        time.sleep(LIVE_SECONDS / 4)
        began = time.monotonic()
        create_topics(self._source.bootstrap_servers, [LATE])
        LATE.fill(self._source.bootstrap_servers, LATE.name, LATE.partitions)
        arrivals.expect(_late_records())
        arrivals.wait(self._settings.timeout_seconds, lambda _d, _t: self._mirror.check_running())
        return time.monotonic() - began

    def _stop_mirror(self) -> None:
        with self._step(f"Stop {self._mirror.engine.title} with SIGTERM"):
            self._stop_seconds.append(self._mirror.stop())

    def _start_again(self, arrivals: Arrivals) -> RestartStep:
        """Send a record to every partition, to see that the mirror copies all of them again."""
        with self._step(f"Start {self._mirror.engine.title} again, send one record more") as step:
            self._mirror.start()
            with producing(self._source.bootstrap_servers) as producer:
                for row in (*TOPICS, LATE):
                    for number in range(row.partitions if row.has_records else 0):
                        where = TopicPartition(row.name, number)
                        producer.send(where, b"after-restart", b"one more")
            arrivals.expect(producer.delivered)
            arrivals.wait(self._settings.timeout_seconds, lambda d, t: self._on_poll(step, d, t))
            time.sleep(SETTLE_SECONDS)
            surplus = arrivals.list_surplus()
            restart = RestartStep(producer.delivered.total(), sum(surplus.values()))
            step.detail = describe_restart(restart)
        return restart

    def _compare(self) -> list[TopicResult]:
        with self._step("Read both clusters with confluent-kafka and compare"):
            names = {row.name: remote_name(row.name) for row in (*TOPICS, LATE)}
            return compare_topics(
                self._source.bootstrap_servers, self._target.bootstrap_servers, names
            )

    def _write_properties(self) -> None:
        text = mm2_properties(
            self._source.bootstrap_servers,
            self._target.bootstrap_servers,
            topic_patterns(),
            self._settings.properties,
        )
        (self._folder / "mm2.properties").write_text(text)

    def _on_poll(self, step: DemoStep, done: int, total: int) -> None:
        self._mirror.check_running()
        if done < total:
            step.progress(f"{done:,} of {total:,} records on the target")

    @contextmanager
    def _step(self, title: str) -> Iterator[DemoStep]:
        """Run a step; an error contains its title and the end of the mirror's log, if any."""
        with self._narrator.step(title) as step:
            try:
                yield step
            except (MirrorError, KafkaException, TimeoutError) as error:
                raise MirrorError(f"{title}: {error}{self._log_end(error)}") from error

    def _log_end(self, error: Exception) -> str:
        is_shown_already = isinstance(error, MirrorEnded) or not self._mirror.log_path.exists()
        return "" if is_shown_already else f"\n{self._mirror.log_end()}"

    def _cluster(self, name: str) -> KafkaCluster:
        return KafkaCluster(
            name,
            folder=self._folder / name,
            properties=_BROKER_PROPERTIES,
            jvm_args=QUICK_JVM_ARGS,
            detached=self._settings.keep,
        )

    def _keep_if_asked(self, stack: ExitStack) -> None:
        if not self._settings.keep:
            return
        stack.pop_all()
        clusters = (self._source, self._target)
        for cluster in clusters:
            cluster.release_ports()
        self.kept = KeptClusters(
            folder=self._folder,
            bootstrap_servers={cluster.name: cluster.bootstrap_servers for cluster in clusters},
            logs={
                "mirror": self._mirror.log_path,
                **{one.name: broker.log_path for one in clusters for broker in one.brokers},
            },
            mirror_pid=self._mirror.running_pid,
            broker_pids=tuple(pid for cluster in clusters for pid in cluster.pids),
            java=machine.java_program(),
            class_path=kafka_jars().class_path,
        )


def remote_name(topic: str) -> str:
    """The name of the copy with MirrorMaker 2's default policy."""
    return f"{SOURCE}.{topic}"


def topic_patterns() -> Sequence[str]:
    """The topics of the flow as a user would write them."""
    names = [re.sub("^codec-.*", "codec-.*", row.name) for row in (*TOPICS, LATE)]
    return list(dict.fromkeys(names))


def _late_records() -> dict[TopicPartition, int]:
    return {
        TopicPartition(LATE.name, number): len(range(number, LATE_RECORDS, LATE.partitions))
        for number in range(LATE.partitions)
    }
