"""The states of connectors and tasks, and the events that change them: the only such table.

Runs on: worker. Pure. The states are those of org.apache.kafka.connect.runtime.AbstractStatus.
WorkerConnector and ConnectorTasks use this table. `python -m sparkmirror.connect.states` makes the
one in docs/connect-mode.md from it, and the short one in ARCHITECTURE.md.

A pair that is not in a table is a bug of ours, and raises. `None` as the next state: this worker
writes no status any more, because the subject is deleted or belongs to another worker.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from sparkmirror.connect.entities import State

UNASSIGNED, RUNNING, FAILED = State.UNASSIGNED, State.RUNNING, State.FAILED
PAUSED, STOPPED, RESTARTING = State.PAUSED, State.STOPPED, State.RESTARTING


class ConnectorEvent(enum.StrEnum):
    """What happens to a connector on the leader."""

    STARTED = "it has started"
    START_FAILED = "it cannot start"
    TARGET_STARTED = "target state STARTED"
    TARGET_PAUSED = "target state PAUSED"
    TARGET_STOPPED = "target state STOPPED"
    SETTINGS_CHANGED = "other settings"
    RESTART = "restart"
    RESTART_WITH_TASKS = "restart, tasks too"
    RELEASED = "the worker ends in order"
    DEPOSED = "another worker leads"
    DELETED = "deleted"


class TaskEvent(enum.StrEnum):
    """What happens to a task on the worker that it is assigned to."""

    CALLED_IN = "it has its configuration and runs"
    ENDED = "it has ended, or does not run yet"
    RAISED = "it raised an error, or cannot start"
    RESTART = "restart, or other settings"
    CONNECTOR_STARTED = "connector STARTED"
    CONNECTOR_PAUSED = "connector PAUSED"
    RELEASED = "the task moves, or the worker ends"
    LEASE_OVER = "the worker's lease is over"
    REMOVED = "connector stopped or deleted, or fewer tasks"


E = TypeVar("E", bound=enum.StrEnum)


@dataclass(frozen=True, slots=True)
class Transition:
    """The next state (None: this worker writes no status any more) and what the worker does."""

    next: State | None
    effect: str = ""


Transitions = Mapping[tuple[State, E], Transition]
STAYS = ""


def _rows(
    rows: Mapping[E, Mapping[State, tuple[State | None, str]]],
) -> dict[tuple[State, E], Transition]:
    return {
        (state, event): Transition(*found)
        for event, row in rows.items()
        for state, found in row.items()
    }


_C, _T = ConnectorEvent, TaskEvent
CONNECTOR_STATES = (UNASSIGNED, RUNNING, FAILED, PAUSED, STOPPED, RESTARTING)
TASK_STATES = (UNASSIGNED, RUNNING, FAILED, PAUSED, RESTARTING)

CONNECTOR: Transitions[ConnectorEvent] = _rows(
    {
        _C.STARTED: {
            UNASSIGNED: (RUNNING, "publish task configs"),
            RUNNING: (RUNNING, STAYS),
            FAILED: (RUNNING, "trace gone"),
            RESTARTING: (RUNNING, STAYS),
        },
        # Connect leaves it FAILED until a user restarts it. We retry: a cluster that was away for a
        # minute is no reason to restart connectors by hand.
        _C.START_FAILED: {
            UNASSIGNED: (FAILED, "trace; retry after 1 s"),
            RUNNING: (FAILED, "trace; retry after 1 s"),
            FAILED: (FAILED, "next wait doubles, up to 60 s"),
            RESTARTING: (FAILED, "trace; retry after 1 s"),
        },
        _C.TARGET_STARTED: {
            UNASSIGNED: (UNASSIGNED, "connect, start"),
            RUNNING: (RUNNING, STAYS),
            FAILED: (FAILED, STAYS),
            PAUSED: (UNASSIGNED, "connect, start"),
            STOPPED: (UNASSIGNED, "connect, start"),
            RESTARTING: (RESTARTING, STAYS),
        },
        _C.TARGET_PAUSED: {
            UNASSIGNED: (PAUSED, STAYS),
            RUNNING: (PAUSED, "stop"),
            FAILED: (PAUSED, "trace gone"),
            PAUSED: (PAUSED, STAYS),
            STOPPED: (PAUSED, STAYS),
            RESTARTING: (PAUSED, "stop"),
        },
        _C.TARGET_STOPPED: {
            UNASSIGNED: (STOPPED, "write no task configs"),
            RUNNING: (STOPPED, "stop, write no task configs"),
            FAILED: (STOPPED, "trace gone, write no task configs"),
            PAUSED: (STOPPED, "write no task configs"),
            STOPPED: (STOPPED, STAYS),
            RESTARTING: (STOPPED, "stop, write no task configs"),
        },
        _C.SETTINGS_CHANGED: {
            UNASSIGNED: (UNASSIGNED, "start with them"),
            RUNNING: (UNASSIGNED, "stop, start with them"),
            FAILED: (FAILED, "start with them now"),
            PAUSED: (PAUSED, STAYS),
            STOPPED: (STOPPED, STAYS),
            RESTARTING: (RESTARTING, "start with them"),
        },
        # Connect stops and starts it. Its tasks run independently, so a refresh does the same.
        _C.RESTART: {
            UNASSIGNED: (UNASSIGNED, STAYS),
            RUNNING: (RUNNING, "refresh"),
            FAILED: (FAILED, "start now"),
            PAUSED: (PAUSED, STAYS),
            STOPPED: (STOPPED, STAYS),
            RESTARTING: (RESTARTING, STAYS),
        },
        _C.RESTART_WITH_TASKS: {
            UNASSIGNED: (UNASSIGNED, STAYS),
            RUNNING: (RESTARTING, "refresh"),
            FAILED: (RESTARTING, "start now"),
            PAUSED: (PAUSED, STAYS),
            STOPPED: (STOPPED, STAYS),
            RESTARTING: (RESTARTING, STAYS),
        },
        _C.RELEASED: {
            UNASSIGNED: (UNASSIGNED, STAYS),
            RUNNING: (UNASSIGNED, "stop"),
            FAILED: (UNASSIGNED, STAYS),
            PAUSED: (UNASSIGNED, STAYS),
            STOPPED: (STOPPED, STAYS),
            RESTARTING: (UNASSIGNED, "stop"),
        },
        _C.DEPOSED: dict.fromkeys(CONNECTOR_STATES, (None, "stop, write nothing")),
        _C.DELETED: dict.fromkeys(CONNECTOR_STATES, (None, "stop, delete statuses and topics")),
    }
)

TASK: Transitions[TaskEvent] = _rows(
    {
        _T.CALLED_IN: {
            UNASSIGNED: (RUNNING, STAYS),
            RUNNING: (RUNNING, STAYS),
            FAILED: (RUNNING, "trace gone"),
            RESTARTING: (RUNNING, STAYS),
        },
        # A task that waits for its next attempt stays FAILED until that attempt runs.
        _T.ENDED: {
            UNASSIGNED: (UNASSIGNED, STAYS),
            RUNNING: (UNASSIGNED, "next attempt after a pause"),
            FAILED: (FAILED, STAYS),
            RESTARTING: (RESTARTING, STAYS),
        },
        _T.RAISED: {
            UNASSIGNED: (FAILED, "trace; retry after 1 s"),
            RUNNING: (FAILED, "trace; retry after 1 s"),
            FAILED: (FAILED, "next wait doubles, up to 60 s"),
            RESTARTING: (FAILED, "trace; retry after 1 s"),
        },
        _T.RESTART: {
            UNASSIGNED: (UNASSIGNED, "next attempt now"),
            RUNNING: (RESTARTING, "commit, end, next attempt now"),
            FAILED: (RESTARTING, "next attempt now"),
            PAUSED: (PAUSED, STAYS),
            RESTARTING: (RESTARTING, STAYS),
        },
        _T.CONNECTOR_STARTED: {
            UNASSIGNED: (UNASSIGNED, "start"),
            RUNNING: (RUNNING, STAYS),
            FAILED: (FAILED, STAYS),
            PAUSED: (UNASSIGNED, "start"),
            RESTARTING: (RESTARTING, STAYS),
        },
        _T.CONNECTOR_PAUSED: {
            UNASSIGNED: (PAUSED, STAYS),
            RUNNING: (PAUSED, "commit, end"),
            FAILED: (PAUSED, "trace gone"),
            PAUSED: (PAUSED, STAYS),
            RESTARTING: (PAUSED, "end"),
        },
        _T.RELEASED: {
            UNASSIGNED: (UNASSIGNED, STAYS),
            RUNNING: (UNASSIGNED, "commit, end"),
            FAILED: (UNASSIGNED, STAYS),
            PAUSED: (UNASSIGNED, STAYS),
            RESTARTING: (UNASSIGNED, "end"),
        },
        _T.LEASE_OVER: dict.fromkeys(TASK_STATES, (None, "no byte leaves; end, write nothing")),
        _T.REMOVED: dict.fromkeys(TASK_STATES, (None, "commit, end, delete the status")),
    }
)


class StateMachine(Generic[E]):
    """The state of one connector or task. Owned by one thread; any thread may read `state`."""

    def __init__(self, transitions: Transitions[E], state: State = UNASSIGNED) -> None:
        self._transitions = transitions
        self.state = state

    def fire(self, event: E) -> State | None:
        """Apply the event and return the next state. LookupError: the event is impossible."""
        found = self._transitions.get((self.state, event))
        if found is None:
            raise LookupError(f"{self.state} has no transition for: {event}")
        if found.next is not None:
            self.state = found.next
        return found.next


def connector_states() -> StateMachine[ConnectorEvent]:
    """The states of a connector that this worker has just taken over."""
    return StateMachine(CONNECTOR)


def task_states() -> StateMachine[TaskEvent]:
    """The states of a task that this worker was just assigned."""
    return StateMachine(TASK)


# -- documentation --------------------------------------------------------------------------------


def markdown() -> str:
    """Both tables as docs/connect-mode.md shows them."""
    return "\n".join(
        [
            "**Connectors**",
            "",
            *_table(CONNECTOR, ConnectorEvent, CONNECTOR_STATES),
            "",
            "**Tasks**",
            "",
            *_table(TASK, TaskEvent, TASK_STATES),
        ]
    )


def summary() -> str:
    """Where connectors and tasks go from each state, as ARCHITECTURE.md shows it."""
    rows = [["from", "a connector", "a task"], ["---"] * 3]
    rows += [
        [f"`{state}`", _ways(CONNECTOR, ConnectorEvent, state), _ways(TASK, TaskEvent, state)]
        for state in CONNECTOR_STATES
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _ways(transitions: Transitions[E], events: type[E], state: State) -> str:
    """The other states that it may reach, each with the events that lead there."""
    ways: dict[State, list[str]] = {}
    for event in events:
        found = transitions.get((state, event))
        if found is not None and found.next not in (None, state):
            ways.setdefault(found.next, []).append(str(event))
    return "; ".join(f"**{to}**: {', '.join(events)}" for to, events in ways.items()) or "-"


def _table(transitions: Transitions[E], events: type[E], states: tuple[State, ...]) -> list[str]:
    head = ["event", *map(str, states)]
    rows = [head, ["---"] * len(head)]
    rows += [
        [str(event), *(_cell(state, transitions.get((state, event))) for state in states)]
        for event in events
    ]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _cell(state: State, found: Transition | None) -> str:
    if found is None:
        return "never"
    target = "none" if found.next is None else "=" if found.next is state else str(found.next)
    return f"{target}: {found.effect}" if found.effect else target


if __name__ == "__main__":
    sys.stdout.write(f"{markdown()}\n\n{summary()}\n")
