"""What deploys and runs, but not as its user may think: warned of, and shown by status."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sparkmirror.config.validation.connector_validation import add_errors
from sparkmirror.connect.entities import Json, State
from tests.cli.deploy_shell import Shell
from tests.cli.test_deploy import CPC, MSC, NAMES


def test_what_works_all_the_same_is_a_warning(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = shell.worker.validate

    def validate(plugin: str, config: Mapping[str, str | None]) -> Json:
        infos = judge(plugin, config)
        if config["name"] == CPC:
            add_errors(infos, {"replication.policy.class": "warning: checkpoints lead nowhere"})
        return infos

    monkeypatch.setattr(shell.worker, "validate", validate)
    assert shell("deploy") == 0, shell.err
    assert shell.worker.connectors() == list(NAMES)
    text = f"{CPC}.json: replication.policy.class: checkpoints lead nowhere"
    assert [line for line in shell.err.splitlines() if line.endswith(text)] != []
    assert shell.err.startswith("warning: ")


def test_status_of_what_runs_but_does_not_do_all_of_its_work(shell: Shell) -> None:
    shell("deploy")
    shell.worker.states[MSC] = (State.RUNNING, "records go to b:9092")
    assert shell("status") == 0  # only something to know
    shell.worker.states[MSC] = (State.RUNNING, "DEGRADED: no offset syncs")
    assert shell("status") == 1
    (row,) = (line for line in shell.out.splitlines() if "DEGRADED" in line)
    assert row.split()[2] == "RUNNING"
    assert row.endswith("DEGRADED: no offset syncs")
