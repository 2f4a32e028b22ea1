"""`failover check A B`: exit code 0 only if nothing would be lost."""

from __future__ import annotations

import json

import pytest

from sparkmirror.monitoring.clusters.known import Known
from sparkmirror.monitoring.lag.partition_lag import PartitionState
from tests.cli.watching.conftest import Commands, know_all
from tests.monitoring.views.fakes import NOW, OPS, lag


@pytest.fixture
def copied(commands: Commands) -> Commands:
    scene = commands.scene
    scene.add_source("orders-0")
    scene.lags.lags = [lag(state=PartitionState.IDLE, behind=0, seconds=0.0)]
    know_all(scene)
    scene.views.flows(OPS)
    scene.look_again(5000)
    return commands


def test_nothing_would_be_lost(copied: Commands) -> None:
    assert copied("failover", "check", "a", "b") == 0, copied.out
    assert "If a is lost now: Ready: nothing would be lost" in copied.out
    assert "Planned move: Ready: everything is copied" in copied.out
    assert "You check  Consumers subscribe to both names" in copied.out
    assert copied.out.count("Reading") == 2
    assert "4. Wait until all groups are synced (done)" in copied.out


def test_records_on_the_way_would_be_lost_but_a_planned_move_is_possible(copied: Commands) -> None:
    scene = copied.scene
    scene.lags.lags = [lag(behind=41, seconds=0.6)]
    scene.look_again()
    assert copied("failover", "check", "a", "b") == 1
    assert copied("failover", "check", "a", "b", "--lost") == 1
    assert copied("failover", "check", "a", "b", "--planned") == 0
    assert "If a is lost" not in copied.out


def test_json_has_the_same_exit_code(copied: Commands) -> None:
    assert copied("failover", "check", "a", "b", "--json") == 0
    assert json.loads(copied.out)["lost"]["nothing_lost"] is True
    copied.scene.lags.lags = [lag()]
    copied.scene.look_again()
    assert copied("failover", "check", "a", "b", "--json") == 1
    assert json.loads(copied.out)["records_lost"] == 3


def test_what_is_unknown_is_no_zero(copied: Commands) -> None:
    copied.scene.watch.topics = Known().failed("source is down", NOW)
    copied.scene.look_again()
    assert copied("failover", "check", "a", "b") == 1
    assert copied("failover", "check", "a", "b", "--planned") == 1
    assert "source is down" in copied.out


def test_a_flow_that_is_not_there(copied: Commands) -> None:
    assert copied("failover", "check", "b", "a") == 1
    assert "there is no flow 'b->a'; flows: a->b" in copied.err


def test_no_worker_is_no_zero(copied: Commands) -> None:
    copied.url = "http://127.0.0.1:1"
    assert copied("failover", "check", "a", "b") == 1
