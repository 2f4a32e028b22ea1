"""`sparkmirror run`: its options, its live lines on a terminal, its summary lines elsewhere."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from sparkmirror.cli import flow_display
from sparkmirror.cli.flow_display import FlowDisplay, Rate, Sample, describe, format_seconds
from sparkmirror.connect.flow_status import FlowStatus
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.process import end_processes
from sparkmirror.spark.task_runner import TaskState
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import Feeder, fill, new_topic

PROGRAM = [sys.executable, "-m", "sparkmirror.cli.main"]
CTRL_C = b"\x03"
START_SECONDS = 120.0


# -- lines ---------------------------------------------------------------------------------------


def status(**changes: Any) -> FlowStatus:
    plain: dict[str, Any] = {"flow": "a->b", "records": 0, "bytes": 0, "behind": 0, "tasks": 2}
    nothing: dict[str, Any] = {"running": 2, "lost": 0, "skipped": 0, "problems": 0, "error": ""}
    return FlowStatus(**plain | nothing | changes)


@pytest.mark.parametrize(
    ("changes", "rates", "line"),
    [
        pytest.param(
            {},
            (0.0, 0.0),
            "a->b: 0 records/s, 0.0 MB/s, 0 records behind, 2 of 2 tasks running",
            id="idle",
        ),
        pytest.param(
            {"behind": 120_000},
            (2000.0, 2.5e6),
            "a->b: 2,000 records/s, 2.5 MB/s, 120,000 records behind, caught up in 60 s, "
            "2 of 2 tasks running",
            id="catching up",
        ),
        pytest.param(
            {"behind": None, "running": 1},
            (0.0, 0.0),
            "a->b: 0 records/s, 0.0 MB/s, position not known yet, 1 of 2 tasks running",
            id="starting",
        ),
        pytest.param(
            {"lost": 3, "skipped": 4000, "problems": 1, "error": "t FAILED: why"},
            (1.0, 0.0),
            "a->b: 1 records/s, 0.0 MB/s, 0 records behind, 2 of 2 tasks running, 3 LOST, "
            "4,000 SKIPPED, 1 partitions waiting, t FAILED: why",
            id="in trouble",
        ),
    ],
)
def test_line_about_a_flow(changes: dict[str, Any], rates: tuple[float, float], line: str) -> None:
    assert describe(status(**changes), rates) == line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (59.6, "60 s"), (89, "89 s"), (300, "5 min"), (9000, "2.5 h")],
)
def test_time_to_catch_up_is_rounded_for_people(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_rate_is_over_the_last_seconds_only() -> None:
    rate = Rate(window=5.0)
    assert rate.add(Sample(0.0, 0, 0)) == (0.0, 0.0)
    assert rate.add(Sample(5.0, 1000, 50)) == (200.0, 10.0)
    assert rate.add(Sample(10.0, 1000, 50)) == (0.0, 0.0)


def test_rate_of_a_flow_that_began_again_is_not_negative() -> None:
    rate = Rate(window=5.0)
    rate.add(Sample(0.0, 1000, 50))
    assert rate.add(Sample(1.0, 0, 0)) == (0.0, 0.0)
    assert rate.add(Sample(2.0, 10, 5)) == (10.0, 5.0)


class Flow:
    """Has an identity, as connectors have."""

    def __init__(self, name: str, tasks: list[Any]) -> None:
        self.flow = name
        self.tasks = tasks
        self.last_error = self.stands_by = ""


def flow(name: str, records: int) -> Any:
    """A connector with one running task, as far as the display looks at it."""
    numbers = {"behind": 0}
    task = SimpleNamespace(state=TaskState.RUNNING, records=records, bytes=0, numbers=numbers)
    return Flow(name, [task])


def test_without_a_terminal_each_flow_has_a_log_line_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "sparkmirror")
    now = [0.0]
    flows = [flow("a->b", 0), flow("b->a", 0)]
    with FlowDisplay(flows, is_terminal=False, clock=lambda: now[0]) as display:
        for second in range(int(flow_display.SUMMARY_SECONDS) * 2 + 1):
            now[0] = float(second)
            flows[0].tasks[0].records = 100 * second
            display.update()
    lines = [
        "a->b: 100 records/s, 0.0 MB/s, 0 records behind, 1 of 1 tasks running",
        "b->a: 0 records/s, 0.0 MB/s, 0 records behind, 1 of 1 tasks running",
    ]
    assert caplog.messages == lines * 2


# -- the program ---------------------------------------------------------------------------------


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "run", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_help_names_file_and_options() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert all(word in done.stdout for word in ("FILE", "--clusters", "--log-level", "SIGTERM"))


def test_file_is_required() -> None:
    done = run()
    assert done.returncode == 2
    assert "FILE" in done.stderr


def test_log_level_must_be_one(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    keys = ("clusters=a,b", "a.bootstrap.servers=h:1", "b.bootstrap.servers=h:2")
    file.write_text("\n".join([*keys, "a->b.enabled=true"]))
    done = run(str(file), "--log-level", "LOUD")
    assert done.returncode == 2
    assert "LOUD: use one of DEBUG, INFO, WARNING, ERROR" in done.stderr


@pytest.mark.kafka
@pytest.mark.parametrize("wanted", [("b",), ("c",), ("b", "c")], ids="+".join)
def test_only_flows_into_the_clusters_that_were_named_take_part(
    source_cluster: KafkaCluster, tmp_path: Path, wanted: tuple[str, ...]
) -> None:
    # Nothing listens at the addresses of b and c: those that take part are named as unreachable.
    file = tmp_path / "mm2.properties"
    keys = ["clusters=a,b,c", f"a.bootstrap.servers={source_cluster.bootstrap_servers}"]
    keys += [f"{alias}.bootstrap.servers=127.0.0.1:{at}" for at, alias in enumerate("bc", 1)]
    file.write_text("\n".join([*keys, "a->b.enabled=true", "a->c.enabled=true"]))
    done = run(str(file), "--clusters", *wanted)
    assert done.returncode == 1
    assert f"flows: {', '.join(f'a->{alias}' for alias in wanted)}\n" in done.stderr
    assert re.findall(r"cluster '(.)' cannot be reached", done.stderr) == list(wanted)


@pytest.mark.kafka
def test_terminal_has_a_live_line_per_flow_and_ctrl_c_stops_in_order(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    # The same brokers under a second alias make a second flow.
    settings = {
        "twin.bootstrap.servers": source_cluster.bootstrap_servers,
        "twin->target.enabled": "true",
    }
    topic = new_topic(source_cluster, partitions=2)
    fill(source_cluster, topic, 1000)
    mirror = Mirror(tmp_path, source_cluster, target_cluster, topic, settings)
    text = mirror.file.read_text().replace(
        f"clusters = {mirror.alias}, target", f"clusters = {mirror.alias}, twin, target"
    )
    mirror.file.write_text(f"{text}twin->target.topics = {topic}\n")
    with (
        terminal([*PROGRAM, "run", str(mirror.file)]) as screen,
        Feeder(source_cluster, topic, 2, per_second=1000),
    ):
        numbers = r"[1-9][\d,]* records/s, \d+\.\d MB/s, [\d,]+ records behind"
        for name in (mirror.alias, "twin"):
            screen.wait_for(rf"{name}->target: {numbers}.*, [12] of [12] tasks running")
        screen.type(CTRL_C)
        screen.wait_for("SIGINT: committing and stopping")
        assert screen.end() == 0
    screen.wait_for(r"INFO   (\x1b\[0m)? stopped\r?\n")
    # Log lines stand above the live ones, not behind them.
    assert not re.search(r"tasks running\d{4}-", screen.shown)


class Screen:
    """A program in its own terminal: what it shows, and what is typed."""

    def __init__(self, terminal_fd: int, process: subprocess.Popen[bytes]) -> None:
        self.shown = ""
        self._fd = terminal_fd
        self._process = process

    def wait_for(self, pattern: str, within: float = START_SECONDS) -> None:
        """Wait until something like it was shown."""
        deadline = time.monotonic() + within
        while not re.search(pattern, self.shown):
            assert time.monotonic() < deadline, f"not shown: {pattern}; {self.shown[-3000:]}"
            if not self._read(1.0) and self._process.poll() is not None:
                assert re.search(pattern, self.shown), f"ended without {pattern}; {self.shown}"

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._fd, keys)

    def end(self) -> int:
        """Wait for the end; the exit code."""
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None:
            assert time.monotonic() < deadline, self.shown[-3000:]
            self._read(0.2)
        while self._read(0.2):
            pass
        return self._process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._fd], [], [], seconds)[0]:
            return False
        try:
            self.shown += os.read(self._fd, 65536).decode(errors="replace")
        except OSError:  # Linux's error when no process has the terminal open
            return False
        return True


@contextmanager
def terminal(command: list[str]) -> Iterator[Screen]:
    """Run `command` in a terminal of 200 columns, from where Ctrl-C reaches its process group."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    # The first terminal that the leader of a new session opens becomes the one that controls it.
    script = 'exec 0<>"$0" 1>&0 2>&0; exec "$@"'
    with subprocess.Popen(
        ["/bin/sh", "-c", script, os.ttyname(slave), *command],
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    ) as process:
        try:
            yield Screen(master, process)
        finally:
            if process.poll() is None:
                started = psutil.Process(process.pid)
                end_processes([started, *started.children(recursive=True)])
            os.close(slave)
            os.close(master)
