"""The connectors that this worker runs, which are all while it leads and none while it does not.

Runs on: worker. One thread looks at the config topic and at the group, and tells each connector's
keeper what is wanted; it waits for none of them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sparkmirror.connect.entities import ConnectorProps, TargetState
from sparkmirror.connect.group.tenure import Tenure
from sparkmirror.connect.runtime.running import Running, RunningSource
from sparkmirror.connect.runtime.status_publisher import StatusPublisher, WorkerIdentity
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.runtime.worker_connector import (
    ConnectorTarget,
    PendingRestart,
    WorkerConnector,
)
from sparkmirror.connect.storage.backing_stores import Stores
from sparkmirror.connect.storage.config_records import ConfigSnapshot
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

TICK_SECONDS = 0.2
SLOT_SECONDS = 1.0
# At the end, for a connector that has only begun to start: it has nothing to store.
STARTING_SECONDS = 1.0


class HerderLoop:
    """Keepers by name of their connector.

    `problem` says why this worker must end: Spark is gone, and nothing here can bring it back.
    """

    def __init__(
        self,
        stores: Stores,
        identity: WorkerIdentity,
        make: Callable[[ConnectorProps], Running],
        spark: Worker,
        stop_seconds: float = 5.0,
    ) -> None:
        self.problem = ""
        self.last_turn = time.monotonic()
        self._stores = stores
        self._configs = stores.configs
        self._group = stores.group
        self._identity = identity
        self._make = make
        self._spark = spark
        self._stop_seconds = stop_seconds
        self._tenure = Tenure(stores.group)
        self._lock = threading.Lock()
        self._keepers: dict[str, WorkerConnector] = {}
        self._leaving: list[WorkerConnector] = []
        self._has_claimed = False
        # The last error of a turn, so that it is logged once.
        self._said = ""
        self._slots_at = 0.0
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="herder", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._configs.on_change(self._wake.set)
        self._group.on_change(self._wake.set)
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Stop all connectors and Spark; tells whether all that had anything to store ended."""
        self._stopping.set()
        self._wake.set()
        deadline = time.monotonic() + seconds
        if self._thread.is_alive():
            self._thread.join(seconds)
        self._step_down("the worker ends")
        # Connectors that wait for Spark need not wait any longer.
        self._spark.give_up_start()
        starting_until = time.monotonic() + STARTING_SECONDS
        for keeper in self._leaving:
            until = starting_until if keeper.is_starting else deadline
            keeper.join(max(0.1, until - time.monotonic()))
        has_ended = all(keeper.has_ended or keeper.is_starting for keeper in self._leaving)
        self._spark.close()
        return has_ended

    def wake(self) -> None:
        """Look now."""
        self._wake.set()

    def leads(self) -> bool:
        """Whether this worker leads, and nobody else can."""
        return self._tenure.leads()

    def keeper(self, name: str) -> WorkerConnector | None:
        """Who keeps the connector `name` here."""
        with self._lock:
            return self._keepers.get(name)

    def running(self) -> dict[str, Running]:
        """The connectors that run here, by their names."""
        with self._lock:
            found = {name: keeper.running for name, keeper in self._keepers.items()}
        return {name: running for name, running in found.items() if running is not None}

    def restart(self, name: str, restart: PendingRestart) -> bool:
        """Restart what it names; False when the connector is not kept here, or not yet."""
        keeper = self.keeper(name)
        return keeper is not None and keeper.restart(restart)

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self.reconcile()
                self._said = ""
            except MirrorError as error:
                self._complain(str(error))
            except Exception:  # the next turn may do better, and nobody else would
                log.exception("looking after the connectors failed")
            self.last_turn = time.monotonic()
            self._wake.wait(TICK_SECONDS)

    def _complain(self, error: str) -> None:
        level = logging.DEBUG if error == self._said else logging.WARNING
        log.log(level, "connectors cannot be looked after: %s", error)
        self._said = error

    def reconcile(self) -> None:
        """One look: who leads, and what is wanted."""
        self._leaving = [keeper for keeper in self._leaving if not keeper.has_ended]
        if self._tenure.has_lapsed():
            self._step_down("this worker leads no more")
        if self._group.tenure is None:
            self._close_spark()
        elif self.leads() and not self._leaving:
            self._take_over()
            self._apply(self._configs.snapshot())
            self._check_spark()

    def _take_over(self) -> None:
        if not self._has_claimed:
            self._configs.claim()
            self._has_claimed = True
            log.info("this worker leads, and runs the connectors")

    def _apply(self, snapshot: ConfigSnapshot) -> None:
        for name in self._keepers.keys() - snapshot.connectors.keys():
            if not self._keepers[name].want(None):
                with self._lock:
                    del self._keepers[name]
        for name, config in snapshot.connectors.items():
            state = _target_state(snapshot.target_states.get(name))
            self._want(name, ConnectorTarget(config, state, snapshot.tasks.get(name, ())))

    def _want(self, name: str, desired: ConnectorTarget) -> None:
        keeper = self._keepers.get(name)
        if keeper is not None and keeper.want(desired):
            return
        keeper = self._new_keeper(name)
        keeper.want(desired)
        with self._lock:
            self._keepers[name] = keeper
        keeper.start()

    def _new_keeper(self, name: str) -> WorkerConnector:
        publisher = StatusPublisher(name, self._stores, self._identity)
        return WorkerConnector(name, self._make, publisher, self.leads, self._stop_seconds)

    def _step_down(self, why: str) -> None:
        self._has_claimed = False
        with self._lock:
            keepers, self._keepers = list(self._keepers.values()), {}
        if keepers:
            log.info("%s: %d connectors stop here", why, len(keepers))
        for keeper in keepers:
            keeper.leave()
        self._leaving += keepers

    def _close_spark(self) -> None:
        if not self._leaving:
            self._spark.close()

    def _check_spark(self) -> None:
        if time.monotonic() < self._slots_at:
            return
        self._slots_at = time.monotonic() + SLOT_SECONDS
        sources = [each for each in self.running().values() if isinstance(each, RunningSource)]
        wanted = sum(source.task_count for source in sources)
        try:
            self._spark.check_alive()
            for source in sources:
                source.check_slots(wanted)
        except MirrorError as error:
            if not self.problem:
                log.error("%s", error)  # noqa: TRY400
            self.problem = str(error)


def _target_state(text: str | None) -> TargetState:
    """Of later versions there may be others: like Connect, take those for STARTED."""
    return TargetState(text) if text in set(TargetState) else TargetState.STARTED
