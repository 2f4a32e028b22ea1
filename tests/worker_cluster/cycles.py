"""Lives of connectors: created, told this and that at random, and deleted."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from tests.worker_cluster.workers import Worker, connector_path


@dataclass(frozen=True, slots=True)
class Action:
    """A request, how it may be answered, and the state that follows; None: as before."""

    method: str
    path: str
    statuses: tuple[int, ...]
    state: str | None = None


# A connector that was just created has no status yet, or no tasks: 404.
ACTIONS = (
    Action("PUT", "pause", (202,), "PAUSED"),
    Action("PUT", "resume", (202,), "RUNNING"),
    Action("PUT", "stop", (204,), "STOPPED"),
    Action("POST", "restart", (204,)),
    Action("POST", "restart?includeTasks=true", (202, 404)),
    Action("POST", "tasks/0/restart", (204, 404)),
)
_WAIT_SHARE = 0.5
_MOST_ACTIONS = 4


@dataclass(slots=True)
class Lives:
    """The lives of one connector, one after the other. The same seed gives the same requests."""

    worker: Worker
    name: str
    config: dict[str, str]
    seed: int
    asked: Counter[str] = field(default_factory=Counter)

    def run(self, cycles: int) -> None:
        chance = random.Random(self.seed)
        for _ in range(cycles):
            self.live_once(chance)

    def live_once(self, chance: random.Random) -> None:
        """Half of what is asked for has happened before the next thing is asked for."""
        body = {"name": self.name, "config": self.config}
        self._ask(Action("POST", "", (201,)), body)
        state = "RUNNING"
        for action in chance.choices(ACTIONS, k=chance.randint(1, _MOST_ACTIONS)):
            if chance.random() < _WAIT_SHARE:
                self.worker.wait_for_states(self.name, state)
            self._ask(action)
            state = action.state or state
        self._ask(Action("DELETE", "", (204,)))
        if chance.random() < _WAIT_SHARE:
            self.wait_until_gone()

    def wait_until_gone(self) -> None:
        self.worker.wait_for(
            lambda: not self.worker.states(self.name), lambda: f"no status of {self.name}"
        )

    def _ask(self, action: Action, body: object = None) -> None:
        path = "/connectors" if body else connector_path(self.name, action.path)
        answer = self.worker.ask(action.method, path, body)
        self.asked[f"{action.method} {action.path}".strip()] += 1
        assert answer.status_code in action.statuses, (action, answer.status_code, answer.text)
