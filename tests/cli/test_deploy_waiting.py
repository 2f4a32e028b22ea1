"""How deploy waits until the connectors run, and when it gives up."""

from __future__ import annotations

import time

import pytest

from sparkmirror.connect.entities import State, TargetState
from sparkmirror.tools.deploy import deployment
from tests.cli.deploy_shell import Shell
from tests.cli.test_deploy import CPC, HBC, MSC


def test_rebalance_is_waited_for(shell: Shell) -> None:
    shell.worker.busy = 3
    assert shell("deploy") == 0, shell.err
    assert (shell.worker.busy, len(shell.worker.connectors())) == (0, 3)


def test_rebalance_that_lasts_longer_than_the_timeout(shell: Shell) -> None:
    shell.worker.busy = 1000
    assert shell("deploy", "--timeout", "1") == 1
    assert "rejected by the worker: Cannot complete request because of a rebalance" in shell.err
    assert shell.worker.connectors() == []


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param("java.lang.Error: no such broker\n\tat somewhere", id="Java"),
        pytest.param("Traceback (most):\n  File x\njava.lang.Error: no such broker\n", id="Python"),
    ],
)
def test_failed_connector_ends_the_wait(shell: Shell, trace: str) -> None:
    shell.worker.states[MSC] = (State.FAILED, trace)
    start = time.monotonic()
    assert shell("deploy") == 1
    assert time.monotonic() - start < 20
    assert shell.err == f"sparkmirror: {MSC} is FAILED: java.lang.Error: no such broker\n"
    assert len(shell.worker.connectors()) == 3


def test_notice_of_a_running_connector_is_shown(shell: Shell) -> None:
    shell.worker.states[MSC] = (State.RUNNING, "records go elsewhere\n")
    assert shell("deploy") == 0
    assert shell.err == f"warning: {MSC}: records go elsewhere\n"


def test_state_from_before_does_not_end_the_wait(shell: Shell) -> None:
    shell("deploy")
    shell.worker.states[MSC] = (State.FAILED, "old")
    shell.worker.looks = 3  # one before the settings are sent, two after
    assert shell("deploy") == 0, shell.err
    assert f"{MSC}: settings replaced" in shell.out
    assert f"{MSC}: FAILED, 1 of 1 tasks RUNNING" in shell.out


def test_paused_connector_is_reported_after_a_while(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("deploy")
    shell.worker.set_target_state(HBC, TargetState.PAUSED)
    monkeypatch.setattr(deployment, "STALE_SECONDS", 0.1)
    assert shell("deploy") == 1
    assert f"sparkmirror: {HBC} is PAUSED" in shell.err.splitlines()


def test_what_is_not_running_in_time_is_named(shell: Shell) -> None:
    shell.worker.states[CPC] = (State.UNASSIGNED, "")
    assert shell("deploy", "--timeout", "3") == 1
    assert shell.err.startswith("sparkmirror: not RUNNING after ")
    assert shell.err.endswith(f" s: {CPC} is UNASSIGNED\n")


def test_connector_without_work_has_no_tasks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "NO_TASK_SECONDS", 0.2)
    shell.worker.without_tasks = True
    start = time.monotonic()
    assert shell("deploy") == 0, shell.err
    assert time.monotonic() - start > 0.2
    assert f"{CPC}: RUNNING, no tasks" in shell.out
    monkeypatch.setattr(deployment, "NO_TASK_SECONDS", 3600.0)
    assert shell("deploy") == 0, shell.err  # it ran before: nothing to wait for
