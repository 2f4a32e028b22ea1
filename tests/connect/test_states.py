"""Every pair of a state and an event, and the documentation that is made of them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from sparkmirror.connect.entities import State
from sparkmirror.connect.states import (
    CONNECTOR,
    CONNECTOR_STATES,
    TASK,
    TASK_STATES,
    ConnectorEvent,
    StateMachine,
    TaskEvent,
    markdown,
    summary,
)

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "connect-mode.md"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- states -->", "<!-- end of states -->"
# What cannot be: an idle connector or task does not run, so that it neither starts nor fails.
IMPOSSIBLE_CONNECTOR = {
    (state, event)
    for state in (State.PAUSED, State.STOPPED)
    for event in (ConnectorEvent.STARTED, ConnectorEvent.START_FAILED)
}
IMPOSSIBLE_TASK = {
    (State.PAUSED, event) for event in (TaskEvent.CALLED_IN, TaskEvent.ENDED, TaskEvent.RAISED)
}


@pytest.mark.parametrize(
    ("state", "event"), list(product(CONNECTOR_STATES, ConnectorEvent)), ids=str
)
def test_every_pair_of_a_connector_is_decided(state: State, event: ConnectorEvent) -> None:
    machine = StateMachine(CONNECTOR, state)
    if (state, event) in IMPOSSIBLE_CONNECTOR:
        with pytest.raises(LookupError, match=f"{state} has no transition"):
            machine.fire(event)
        assert machine.state is state
        return
    following = machine.fire(event)
    assert following is None or (following in CONNECTOR_STATES and machine.state is following)
    assert (following is None) == (event in (ConnectorEvent.DEPOSED, ConnectorEvent.DELETED))


@pytest.mark.parametrize(("state", "event"), list(product(TASK_STATES, TaskEvent)), ids=str)
def test_every_pair_of_a_task_is_decided(state: State, event: TaskEvent) -> None:
    machine = StateMachine(TASK, state)
    if (state, event) in IMPOSSIBLE_TASK:
        with pytest.raises(LookupError, match=f"{state} has no transition"):
            machine.fire(event)
        assert machine.state is state
        return
    following = machine.fire(event)
    assert following is None or (following in TASK_STATES and machine.state is following)
    assert (following is None) == (event in (TaskEvent.LEASE_OVER, TaskEvent.REMOVED))


@pytest.mark.parametrize(
    ("events", "state"),
    [
        (["RAISED", "ENDED"], State.FAILED),
        (["RAISED", "CALLED_IN", "ENDED"], State.UNASSIGNED),
        (["CALLED_IN", "RESTART", "ENDED"], State.RESTARTING),
        (["CALLED_IN", "RESTART", "ENDED", "CALLED_IN"], State.RUNNING),
        (["CALLED_IN", "CONNECTOR_PAUSED", "CONNECTOR_STARTED"], State.UNASSIGNED),
    ],
)
def test_lives_of_a_task(events: list[str], state: State) -> None:
    machine = StateMachine(TASK)
    for name in events:
        machine.fire(TaskEvent[name])
    assert machine.state is state


@pytest.mark.parametrize(
    ("document", "tables"), [(DOCS, markdown()), (ARCHITECTURE, summary())], ids=["docs", "map"]
)
def test_documents_show_the_tables(document: Path, tables: str) -> None:
    shown = document.read_text().partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == tables, "run python -m sparkmirror.connect.states and put it there"
