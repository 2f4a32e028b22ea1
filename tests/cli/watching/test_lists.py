"""`flows`, `topics`, `lag`, `events` and `top`: tables, JSON, and clear words when it fails."""

from __future__ import annotations

import pytest

from sparkmirror.cli.watching.cells import sparkline
from sparkmirror.errors import MirrorError
from sparkmirror.events import EventKind
from sparkmirror.monitoring.event_log import Event
from sparkmirror.monitoring.lag.partition_lag import PartitionState
from tests.cli.watching.conftest import Commands, know_all
from tests.monitoring.views.fakes import FLOW, NOW, OTHER, lag


@pytest.fixture
def running(commands: Commands) -> Commands:
    scene = commands.scene
    scene.add_source("orders-0,orders-1")
    scene.lags.lags = [
        lag(partition=0),
        lag(partition=1, state=PartitionState.FAILED, behind=254_906, seconds=850.0,
            problem="too large; raise max.message.bytes", until_loss=19_260.0),
    ]  # fmt: skip
    know_all(scene)
    scene.look_again()
    return commands


def test_flows_begin_with_what_needs_you(running: Commands) -> None:
    assert running("flows") == 0
    lines = running.out.splitlines()
    assert lines[0].startswith("1 thing needs you. Nothing is lost yet.")
    assert lines[1].strip() == "orders-1 has failed: too large"
    assert lines[2].strip() == "Raise max.message.bytes"
    head, row = lines[-2:]
    assert head.split()[:2] == ["FLOW", "STATE"]
    assert FLOW in row
    assert "254,909" in row
    assert "5 h 21 min" in row


def test_json_is_the_workers_answer(running: Commands) -> None:
    found = running.json("flows")
    assert found["problems"][0]["records_behind"] == 254_906
    assert running.json("topics")["rows"][0]["topic"] == "orders"
    assert running.json("lag", "--limit", "1")["rows"][0]["partition"] == 1
    assert running.json("events")["rows"] == []


def test_topics_and_those_that_are_not_mirrored(running: Commands) -> None:
    assert running("topics", "--state", "problem") == 0
    assert "Failed 1 of 2  orders" in running.out
    assert running("topics", "--not-mirrored") == 0
    assert "by rule  other" in running.out
    assert running("topics", "--filter", "zzz") == 0
    assert "nothing matches" in running.out


def test_lag_of_partitions(running: Commands) -> None:
    assert running("lag") == 0
    assert running.out.splitlines()[1].split()[:2] == ["failed", "orders-1"]


def test_what_is_not_known_says_unknown_and_why(commands: Commands) -> None:
    scene = commands.scene
    scene.add_source("orders-0")
    scene.add_worker(OTHER)
    scene.peers.answers[OTHER] = MirrorError("no answer: refused")
    assert commands("flows") == 0
    assert f"warning: not known: worker {OTHER}: no answer: refused" in commands.err
    assert "unknown" in commands.out.splitlines()[-1]


def test_events_name_their_cause_and_how_long_they_last(running: Commands) -> None:
    running.scene.events.found = [
        Event(1, NOW - 90_000, EventKind.UNREACHABLE, "broker 3 is gone", lasts=True),
        Event(2, NOW - 80_000, EventKind.STUCK, "orders-0 waits", flow=FLOW, cause_id=1,
              lasts=True, ended_ms=NOW - 20_000, count=3),
    ]  # fmt: skip
    running.scene.look_again()
    assert running("events") == 0
    first, second = running.out.splitlines()[1:3]
    assert "over after 1 min" in first
    assert "(because: broker 3 is gone)" in first
    assert "ongoing, 1 min 32 s" in second


def test_top_once(running: Commands) -> None:
    assert running("top", "--once") == 0
    assert "1 thing needs you" in running.out
    assert FLOW in running.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("topics", "--state", "odd"), "state=odd: use one of all, problem"),
        (("topics", "--flow", "x->y"), "there is no flow 'x->y'; flows: a->b"),
        (("lag", "--filter", "/[/"), "is no pattern"),
        (("events", "--kind", "odd"), "kind=odd"),
        (("topics", "--filter", "x" * 1500), "1,000 are allowed"),
    ],
)
def test_bad_input_is_explained(running: Commands, words: tuple[str, ...], message: str) -> None:
    assert running(*words) == 1
    assert message in running.err
    assert running.out == ""


def test_a_server_that_is_none_of_ours(commands: Commands) -> None:
    commands.url += "/nothing"
    assert commands("flows") == 1
    assert "has no views" in commands.err


def test_a_worker_that_is_not_there(commands: Commands) -> None:
    commands.url = "http://127.0.0.1:1"
    assert commands("flows") == 1
    assert "no response from the Connect worker at http://127.0.0.1:1" in commands.err


def test_sparklines_have_gaps() -> None:
    assert sparkline([0.0, None, 5.0, 10.0], 6) == "  ▁ ▅█"
    assert sparkline([], 3) == "   "
    assert sparkline([0.0, 0.0], 2) == "▁▁"
