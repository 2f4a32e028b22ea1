"""Prints the demo's progress: each step with its duration, and the table at the end.

On a terminal a long step shows its progress live; elsewhere it prints a line from time to time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from sparkmirror.demo.compare import TopicResult
from sparkmirror.demo.live import Latency

_PLAIN_PROGRESS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class StepTime:
    """A finished step, and how long it took."""

    title: str
    seconds: float
    detail: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """The copying of the records that existed before the mirror."""

    records: int
    size_bytes: int
    start_seconds: float
    copy_seconds: float


@dataclass(frozen=True, slots=True)
class RestartStep:
    """The second start of the mirror; `copied_twice` counts records that the target had."""

    new_records: int
    copied_twice: int


@dataclass(frozen=True, slots=True)
class DemoResult:
    """All results of the demo."""

    engine: str
    topics: Sequence[TopicResult]
    backlog: Backlog
    late_topic_seconds: float
    latency: Latency | None
    stop_seconds: Sequence[float]
    restart: RestartStep
    steps: Sequence[StepTime]

    @property
    def missing(self) -> int:
        return sum(topic.missing for topic in self.topics)

    @property
    def different(self) -> int:
        return sum(topic.different for topic in self.topics)

    @property
    def extra(self) -> int:
        return sum(topic.extra for topic in self.topics)

    @property
    def ok(self) -> bool:
        """True if every copy is exact and nothing was copied twice."""
        return all(topic.same for topic in self.topics) and self.restart.copied_twice == 0

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        totals = {"missing": self.missing, "different": self.different, "extra": self.extra}
        topics = [{**asdict(topic), "same": topic.same} for topic in self.topics]
        return {"ok": self.ok, **totals, **asdict(self), "topics": topics}


@dataclass(frozen=True, slots=True)
class KeptClusters:
    """The processes that still run, and how to inspect and end them."""

    folder: Path
    bootstrap_servers: Mapping[str, str]
    logs: Mapping[str, Path]
    mirror_pid: int | None
    broker_pids: tuple[int, ...]
    java: Path
    class_path: str

    @property
    def look_command(self) -> str:
        """Prints some records of a copied topic with Kafka's own consumer."""
        return (
            f"{self.java} -cp '{self.class_path}' org.apache.kafka.tools.consumer.ConsoleConsumer "
            f"--bootstrap-server {self.bootstrap_servers['target']} --topic source.orders "
            "--from-beginning --max-messages 10 --formatter-property print.key=true"
        )

    @property
    def stop_command(self) -> str:
        """Ends the mirror in order, then the brokers at once, and deletes everything."""
        mirror = f"kill {self.mirror_pid}; tail --pid={self.mirror_pid} -f /dev/null; "
        brokers = f"kill -9 {' '.join(str(pid) for pid in self.broker_pids)}; rm -r {self.folder}"
        return (mirror if self.mirror_pid else "") + brokers


class DemoStep:
    """The current step; `detail` is shown beside it at the end."""

    def __init__(self, title: str, console: Console, status: Status | None) -> None:
        self.title = title
        self.detail = ""
        self._console = console
        self._status = status
        self._printed_at = time.monotonic()

    def progress(self, text: str) -> None:
        """Show the progress; may be called at any rate."""
        if self._status is not None:
            self._status.update(escape(f"{self.title}: {text}"))
        elif time.monotonic() - self._printed_at > _PLAIN_PROGRESS_SECONDS:
            self._printed_at = time.monotonic()
            self._console.print(f"          {self.title}: {text}", markup=False, soft_wrap=True)


class Narrator:
    """Prints the steps of the demo and records their times."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.steps: list[StepTime] = []

    @contextmanager
    def step(self, title: str) -> Iterator[DemoStep]:
        """Run one step, and print a line when it is done or has failed."""
        began = time.monotonic()
        if self.console.is_terminal:
            with self.console.status(escape(title)) as status:
                yield from self._timed(DemoStep(title, self.console, status), began)
        else:
            yield from self._timed(DemoStep(title, self.console, None), began)

    def _timed(self, step: DemoStep, began: float) -> Iterator[DemoStep]:
        done = False
        try:
            yield step
            done = True
        finally:
            seconds = time.monotonic() - began
            self.steps.append(StepTime(step.title, seconds, step.detail))
            mark = "[green]ok[/]    " if done else "[red]failed[/]"
            detail = f"  [dim]{escape(step.detail)}[/]" if step.detail else ""
            line = f"{mark} {seconds:5.1f} s  {escape(step.title)}{detail}"
            self.console.print(line, soft_wrap=True, highlight=False)


def print_result(console: Console, result: DemoResult) -> None:
    """Print the table of topics, the measurements, and the verdict."""
    console.print()
    console.print(_table(result))
    for topic in result.topics:
        if topic.first_difference:
            text = f"[red]{topic.topic}[/]: {escape(topic.first_difference)}"
            console.print(text, soft_wrap=True, highlight=False)
    for line in findings(result):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    console.print(_verdict(result), soft_wrap=True, highlight=False)


def print_kept(console: Console, kept: KeptClusters) -> None:
    """Print how to inspect and end the processes that still run."""
    lines = [
        "",
        "Still running:",
        *(f"  cluster {name:9} {servers}" for name, servers in kept.bootstrap_servers.items()),
        *(f"  log of {name:10} {path}" for name, path in kept.logs.items()),
        f"  settings          {kept.folder / 'mm2.properties'}",
        "Look at a copied topic:",
        f"  {kept.look_command}",
        "Stop everything and delete its files:",
        f"  {kept.stop_command}",
    ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _table(result: DemoResult) -> Table:
    # Narrow enough for 80 columns.
    table = Table(box=box.SIMPLE_HEAD, show_footer=True, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("topic", "total", no_wrap=True)
    table.add_column("parts", str(sum(t.partitions for t in result.topics)), justify="right")
    table.add_column("records", f"{sum(t.records for t in result.topics):,}", justify="right")
    table.add_column("MB", _mb(sum(t.size_bytes for t in result.topics)), justify="right")
    table.add_column("missing", str(result.missing), justify="right")
    table.add_column("different", str(result.different), justify="right")
    table.add_column("extra", str(result.extra), justify="right")
    table.add_column("order", _kept(all(t.order_kept for t in result.topics)))
    table.add_column("content", _same(all(t.same for t in result.topics)))
    for topic in result.topics:
        table.add_row(*_cells(topic))
    return table


def _cells(topic: TopicResult) -> list[str]:
    partitions = str(topic.partitions)
    if topic.partitions != topic.target_partitions:
        partitions = f"{topic.partitions}->{topic.target_partitions}"
    return [
        escape(topic.topic),
        partitions,
        f"{topic.records:,}",
        _mb(topic.size_bytes),
        str(topic.missing),
        str(topic.different),
        str(topic.extra),
        _kept(topic.order_kept),
        _same(topic.same),
    ]


def findings(result: DemoResult) -> list[str]:
    """The measurements, one line each."""
    rows = {
        "backlog": _describe_backlog(result.backlog),
        "latency": describe_latency(result.latency) if result.latency else "nothing seen",
        "new topic": f"copied {result.late_topic_seconds:.1f} s after it was created",
        "restart": describe_restart(result.restart),
        "stopped": "in " + " and ".join(f"{seconds:.1f} s" for seconds in result.stop_seconds),
    }
    return [f"{name:10} {text}" for name, text in rows.items()]


def _describe_backlog(backlog: Backlog) -> str:
    megabytes = backlog.size_bytes / 1e6
    return (
        f"{backlog.records:,} records, {megabytes:.1f} MB in {backlog.copy_seconds:.1f} s "
        f"({megabytes / max(backlog.copy_seconds, 0.001):.0f} MB/s), "
        f"beginning {backlog.start_seconds:.1f} s after the start"
    )


def describe_restart(restart: RestartStep) -> str:
    """The records that the second start copied."""
    new, again = restart.new_records, restart.copied_twice
    return f"{new} new records copied, {again} copied a second time"


def describe_latency(latency: Latency) -> str:
    """Percentiles in one line."""
    return (
        f"p50 {latency.p50_ms:.0f} ms, p99 {latency.p99_ms:.0f} ms, "
        f"max {latency.max_ms:.0f} ms of {latency.records:,} live records"
    )


def _verdict(result: DemoResult) -> str:
    color = "green" if result.ok else "red"
    return f"\n[bold {color}]{describe_verdict(result)}[/]"


def describe_verdict(result: DemoResult) -> str:
    """The last line; a successful demo shows two counts."""
    words = [f"{result.missing} missing", f"{result.different} different"]
    if result.extra:
        words.append(f"{result.extra} extra")
    if not all(topic.order_kept for topic in result.topics):
        words.append("order lost")
    if any(topic.partitions != topic.target_partitions for topic in result.topics):
        words.append("partitions differ")
    if result.restart.copied_twice:
        words.append(f"{result.restart.copied_twice} copied a second time")
    return ", ".join(words)


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.2f}"


def _kept(kept: bool) -> str:
    return "kept" if kept else "[red]LOST[/]"


def _same(same: bool) -> str:
    return "[green]same[/]" if same else "[red]DIFFERS[/]"
