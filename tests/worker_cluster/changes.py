"""Random changes of a group of workers, and rounds of them with a check of all that was copied."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Sequence

from tests.worker_cluster.scene import signal_all
from tests.worker_cluster.shared import SESSION_SECONDS, Shared, report
from tests.worker_cluster.standstills import Standstills
from tests.worker_cluster.workers import Worker

MOST_WORKERS = 4
# How often all that was copied is read: it becomes more and more.
CHECK_ROUNDS = 10
# For a moment, almost to the end of a session, or beyond it.
SECONDS = (0.5, SESSION_SECONDS - 1, SESSION_SECONDS + 3)


class Changes:
    """The same seed gives the same ones. `more` take how long they last."""

    def __init__(
        self,
        workers: Sequence[Worker],
        new_worker: Callable[[], Worker],
        *,
        seed: int,
        more: Sequence[Callable[[float], None]] = (),
    ) -> None:
        self.running = list(workers)
        self._new_worker = new_worker
        self._more = more
        self._dice = random.Random(seed)
        self._stopped: list[Worker] = []

    def step(self) -> str:
        """One change; says which."""
        changes = [self.disturb] * len(self._more)
        if len(self.running) < MOST_WORKERS:
            changes += [self.join] * 2
        if len(self.running) > 1:
            changes += [self.drain, self.kill, self.freeze]
        return self._dice.choice(changes)()

    def join(self) -> str:
        worker = self._stopped.pop() if self._stopped else self._new_worker()
        worker.start()
        self.running.append(worker)
        return "join"

    def drain(self) -> str:
        self._take().stop()
        return "drain"

    def kill(self) -> str:
        self._take().kill()
        return "kill"

    def freeze(self) -> str:
        """With or without its tasks."""
        worker, seconds = self._dice.choice(self.running), self._dice.choice(SECONDS)
        frozen = [worker.process, *(worker.descendants if self._dice.random() < 0.5 else [])]
        signal_all(frozen, signal.SIGSTOP)
        time.sleep(seconds)
        signal_all(frozen, signal.SIGCONT)
        return f"freeze for {seconds:g} s"

    def disturb(self) -> str:
        change, seconds = self._dice.choice(self._more), self._dice.choice(SECONDS)
        change(seconds)
        return f"{change.__name__} for {seconds:g} s"

    def _take(self) -> Worker:
        worker = self._dice.choice(self.running)
        self.running.remove(worker)
        self._stopped.append(worker)
        return worker


def run_rounds(shared: Shared, watch: Standstills, changes: Changes, count: int) -> None:
    """Two changes a round, then all workers have equal shares again, and everything is copied."""
    twice = 0
    for number in range(1, count + 1):
        done = [changes.step() for _ in range(2)]
        shared.settle(changes.running)
        shared.wait_for_growth(watch)
        if number % CHECK_ROUNDS == 0 or number == count:
            twice += shared.twice()
        print(f"round {number}: {', '.join(done)}; {len(changes.running)} workers")  # noqa: T201
    report(f"{count} rounds", watch.take_longest(), twice)
