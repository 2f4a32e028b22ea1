"""What the demo prints: steps, the table in 80 columns, the verdict, how to stop what is kept."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console

from sparkmirror.demo.compare import TopicResult
from sparkmirror.demo.live import Latency
from sparkmirror.demo.report import (
    Backlog,
    DemoResult,
    KeptClusters,
    Narrator,
    RestartStep,
    describe_verdict,
    print_kept,
    print_result,
)

SAME = TopicResult(
    "codec-snappy", "source.codec-snappy", 6, 6, 12_345, 32_150_000, 0, 0, 0, True, ""
)
RESULT = DemoResult(
    engine="sparkmirror",
    topics=[SAME],
    backlog=Backlog(12_345, 32_150_000, 6.0, 0.5),
    late_topic_seconds=1.2,
    latency=Latency(800, 3.0, 20.0, 30.0),
    stop_seconds=[1.0, 2.0],
    restart=RestartStep(38, 0),
    steps=[],
)
CHANGED = dataclasses.replace(SAME, different=1, first_difference="partition 0: [x] became [y]")


def plain_console() -> Console:
    return Console(file=io.StringIO(), width=80)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_result_ends_with_the_verdict() -> None:
    console = plain_console()
    print_result(console, RESULT)
    text = printed(console)
    assert text.endswith("\n0 missing, 0 different\n")
    assert "32.1 MB in 0.5 s (64 MB/s)" in text
    assert "p50 3 ms, p99 20 ms, max 30 ms of 800 live records" in text


def test_table_fits_in_80_columns() -> None:
    console = plain_console()
    print_result(console, RESULT)
    rows = [line.split() for line in printed(console).splitlines()]
    assert ["codec-snappy", "6", "12,345", "32.15", "0", "0", "0", "kept", "same"] in rows


def test_difference_is_shown_as_it_is() -> None:
    console = plain_console()
    print_result(console, dataclasses.replace(RESULT, topics=[SAME, CHANGED]))
    text = printed(console)
    assert "codec-snappy: partition 0: [x] became [y]" in text
    assert text.endswith("0 missing, 1 different\n")


@pytest.mark.parametrize(
    ("changes", "ok", "verdict"),
    [
        ({}, True, ""),
        ({"topics": [SAME, dataclasses.replace(SAME, extra=2)]}, False, ", 2 extra"),
        ({"topics": [dataclasses.replace(SAME, order_kept=False)]}, False, ", order lost"),
        (
            {"topics": [dataclasses.replace(SAME, target_partitions=5)]},
            False,
            ", partitions differ",
        ),
        ({"restart": RestartStep(38, 1)}, False, ", 1 copied a second time"),
    ],
    ids=["same", "extra", "order", "partitions", "copied twice"],
)
def test_json_and_verdict_say_whether_all_is_well(
    changes: dict[str, object], ok: bool, verdict: str
) -> None:
    result = dataclasses.replace(RESULT, **changes)  # type: ignore[arg-type]
    assert describe_verdict(result) == f"0 missing, 0 different{verdict}"
    body = result.as_json()
    assert body["ok"] is ok
    assert body["topics"][0]["topic"] == "codec-snappy"
    assert body["restart"]["new_records"] == 38


def test_step_is_printed_with_its_detail_and_kept() -> None:
    narrator = Narrator(plain_console())
    with narrator.step("Fill topics") as step:
        step.detail = "12 records [of 13]"
    assert [(one.title, one.detail) for one in narrator.steps] == [
        ("Fill topics", "12 records [of 13]")
    ]
    assert printed(narrator.console) == "ok       0.0 s  Fill topics  12 records [of 13]\n"


def test_step_that_fails_says_so() -> None:
    narrator = Narrator(plain_console())
    with pytest.raises(ValueError, match="no"), narrator.step("Fill topics"):
        raise ValueError("no")
    assert printed(narrator.console).startswith("failed")


def test_step_on_a_terminal_shows_progress() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with Narrator(console).step("Copy") as step:
        step.progress("3 of 4 records")
    assert "3 of 4 records" in printed(console)


def test_kept_processes_come_with_commands() -> None:
    console = plain_console()
    kept = KeptClusters(
        folder=Path("/tmp/x"),
        bootstrap_servers={"source": "h:1", "target": "h:2"},
        logs={"mirror": Path("/tmp/x/mirror.log")},
        mirror_pid=5,
        broker_pids=(6, 7),
        java=Path("/bin/java"),
        class_path="/jars/*",
    )
    print_kept(console, kept)
    text = printed(console)
    assert "kill 5; tail --pid=5 -f /dev/null; kill -9 6 7; rm -r /tmp/x" in text
    assert "--bootstrap-server h:2 --topic source.orders" in text
