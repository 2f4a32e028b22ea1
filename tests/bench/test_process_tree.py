"""CPU and memory of a tree, from files that look like /proc."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.process_tree import ProcessTree, parse_stat

ROOT = 10
PAGE_BYTES = 4096
LINE = (
    b"4242 (py (spark) d) S 17 4242 4242 0 -1 4194560 1 0 0 0 250 50 7 8 20 0 4 0 98765 "
    b"1000000 300 18446744073709551615 1 1\n"
)


def test_stat_line_is_parsed_when_the_name_has_spaces_and_brackets() -> None:
    stat = parse_stat(LINE)
    assert stat.key == (4242, 98765)
    assert stat.parent_pid == 17
    assert stat.cpu_seconds == 3.0
    assert stat.rss_bytes == 300 * PAGE_BYTES


class FakeProc:
    """A folder in which processes appear, work and end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "self").mkdir()

    def set(self, pid: int, parent: int, seconds: int, command: str = "x", start: int = 1) -> None:
        fields = [0] * 40
        fields[0:2] = [0, parent]
        fields[11], fields[19], fields[21] = seconds * 100, start, pid
        line = f"{pid} (p) S " + " ".join(str(field) for field in fields[1:])
        (self.folder / str(pid)).mkdir(exist_ok=True)
        (self.folder / str(pid) / "stat").write_text(line)
        (self.folder / str(pid) / "cmdline").write_bytes(command.encode())

    def end(self, pid: int) -> None:
        shutil.rmtree(self.folder / str(pid))


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    fake = FakeProc(tmp_path)
    fake.set(1, 0, 500, "init")
    fake.set(ROOT, 1, 4, "python\0-m\0sparkmirror")
    fake.set(11, ROOT, 20, "java\0SparkSubmit")
    fake.set(12, 11, 1, "python\0-m\0pyspark.daemon\0pyspark.worker")
    fake.set(13, 12, 6, "python\0-m\0pyspark.daemon\0pyspark.worker")
    fake.set(99, 1, 700, "java\0kafka.Kafka")
    return fake


def test_tree_is_the_root_and_its_descendants(proc: FakeProc) -> None:
    usage = ProcessTree(ROOT, proc.folder).sample()
    assert usage.cpu_seconds == 31.0
    assert usage.rss_bytes == (10 + 11 + 12 + 13) * PAGE_BYTES


def test_copy_tasks_are_the_daemon_and_its_children(proc: FakeProc) -> None:
    proc.set(14, 13, 2, "helper-of-a-task")
    usage = ProcessTree(ROOT, proc.folder).sample()
    assert usage.task_cpu_seconds == 9.0
    assert usage.largest_task_rss_bytes == 14 * PAGE_BYTES


def test_process_that_ended_keeps_the_cpu_seen_last(proc: FakeProc) -> None:
    tree = ProcessTree(ROOT, proc.folder)
    tree.sample()
    proc.end(13)
    usage = tree.sample()
    assert usage.cpu_seconds == 31.0
    assert usage.task_cpu_seconds == 7.0
    assert usage.largest_task_rss_bytes == 12 * PAGE_BYTES


def test_process_id_given_to_another_process_counts_anew(proc: FakeProc) -> None:
    tree = ProcessTree(ROOT, proc.folder)
    tree.sample()
    proc.set(13, 12, 2, "python\0-m\0pyspark.daemon\0pyspark.worker", start=2)
    assert tree.sample().cpu_seconds == 33.0


def test_process_whose_parent_ended_still_counts(proc: FakeProc) -> None:
    tree = ProcessTree(ROOT, proc.folder)
    tree.sample()
    proc.end(12)
    proc.set(13, 1, 8, "python\0-m\0pyspark.daemon\0pyspark.worker")
    assert tree.sample().cpu_seconds == 33.0


def test_process_becomes_a_copy_task_when_it_calls_exec(proc: FakeProc) -> None:
    proc.set(15, 11, 1, "java\0SparkSubmit")
    tree = ProcessTree(ROOT, proc.folder)
    assert tree.sample().task_cpu_seconds == 7.0
    proc.set(15, 11, 2, "python\0-m\0pyspark.daemon\0pyspark.worker")
    assert tree.sample().task_cpu_seconds == 9.0
