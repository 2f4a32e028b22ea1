"""What a request to restart a connector and its tasks means, by the states they are in.

Runs on: worker. Pure. Mirrors: org.apache.kafka.connect.runtime.{RestartPlan,RestartRequest}.
"""

from __future__ import annotations

from dataclasses import replace

from sparkmirror.connect.entities import ConnectorStatus, State


class RestartPlan:
    """Which parts restart; `expected` is the status with those in RESTARTING."""

    def __init__(self, status: ConnectorStatus, *, include_tasks: bool, only_failed: bool) -> None:
        def restarts(state: State) -> bool:
            return state is State.FAILED or not only_failed

        self.has_connector = restarts(status.state)
        self.tasks = frozenset(
            task.id for task in status.tasks if include_tasks and restarts(task.state)
        )
        self.expected = replace(
            status,
            state=State.RESTARTING if self.has_connector else status.state,
            tasks=[
                replace(task, state=State.RESTARTING) if task.id in self.tasks else task
                for task in status.tasks
            ],
        )
