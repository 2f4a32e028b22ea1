"""The lag of all partitions that this process copies, and (on a leader) of those that wait.

Runs on: worker; for any thread. Figures of running tasks come with their reports, once a second.
Of tasks that do not run, and of retention, a thread of its own asks the clusters.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.lag.flow_lag import FlowLag
from sparkmirror.monitoring.lag.lag_rules import Rates, Reading, rates
from sparkmirror.monitoring.lag.partition_lag import PartitionLag
from sparkmirror.monitoring.lag.partition_lags import PartitionLags
from sparkmirror.monitoring.lag.source_flows import SourceFlow, SourceFlows
from sparkmirror.monitoring.lag.source_probe import FlowKey, SourceProbe, Wanted
from sparkmirror.monitoring.lag.summing import sum_flow
from sparkmirror.monitoring.lag.write_rates import WriteRates
from sparkmirror.monitoring.monitored import Monitored
from sparkmirror.spark.figures import TaskFigures
from sparkmirror.spark.task_runner import TaskState
from sparkmirror.types import TopicPartition

log = logging.getLogger(__name__)

# Metrics, page and stream all ask: of 10,000 partitions an answer takes some 100 ms.
KEEP_SECONDS = 1.0
READ_SECONDS = 1.0
LOOK_SECONDS = 15.0
SOON_SECONDS = 3.0
# The history of totals that rates come from.
MOST_READINGS = 120


class LagModel:
    """`start` once, before the others; `stop` at the end."""

    def __init__(
        self,
        monitored: Monitored,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._monitored = monitored
        self._clock = clock
        self._source_flows = SourceFlows()
        self._probe = SourceProbe(clock, wall_clock)
        self._writes = WriteRates(clock)
        self._lags = PartitionLags(self._probe, self._writes, wall_clock)
        self._asking = threading.Lock()
        self._kept: tuple[float, list[tuple[SourceFlow, list[PartitionLag]]]] | None = None
        self._readings: dict[FlowKey, deque[Reading]] = {}
        self._looked_at = -LOOK_SECONDS
        # Which tasks there were then: when others run or end, there is something to find out.
        self._shape: set[tuple[object, ...]] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag", daemon=True)

    def start(self) -> None:
        """Begin to look at rates, retention, and at partitions of tasks that do not run."""
        self._thread.start()

    def stop(self) -> None:
        """End that; does not wait for a cluster that does not respond."""
        self._stopping.set()

    def partitions(self) -> Sequence[PartitionLag]:
        """All of them, by connector, topic and partition."""
        return [lag for _, lags in self._current() for lag in lags]

    def flows(self) -> Sequence[FlowLag]:
        """Every source connector of which this process knows partitions, or runs tasks."""
        found = []
        for flow, lags in self._current():
            if lags or flow.tasks:
                figures = [runner.figures() for runner in flow.runners]
                found.append(sum_flow(flow, lags, self._rates(flow.key), figures))
        return found

    def task_figures(self) -> Mapping[tuple[str, int], TaskFigures]:
        """What each task that runs here reported, by its connector and number."""
        flows = self._source_flows.of(self._monitored())
        pairs = [(flow, task) for flow in flows for task in flow.tasks]
        return {
            (flow.name, task.number): task.runner.figures()
            for flow, task in pairs
            if task.runner is not None
        }

    # -- inside ------------------------------------------------------------------------------------

    def _current(self) -> list[tuple[SourceFlow, list[PartitionLag]]]:
        with self._asking:
            now = self._clock()
            if self._kept is None or now - self._kept[0] >= KEEP_SECONDS:
                flows = self._source_flows.of(self._monitored())
                made = [(flow, sorted(self._lags.of(flow), key=_place)) for flow in flows]
                self._kept = now, made
            return self._kept[1]

    def _rates(self, key: FlowKey) -> Rates:
        return rates(list(self._readings.get(key, ())))

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.wait(READ_SECONDS):
            try:
                self.turn()
            # One of the places with a broad except: lag must not end with one strange reply.
            except Exception:
                log.exception("cannot look at the lag of partitions; trying again")

    def turn(self) -> None:
        """Once a second: read the totals; every 15 s look at the clusters."""
        now = self._clock()
        flows = self._source_flows.of(self._monitored())
        shape: set[tuple[object, ...]] = {
            (flow.key, flow.is_paused, task.number, task.problem)
            for flow in flows
            for task in flow.tasks
        }
        has_changed = shape != self._shape and now >= self._looked_at + SOON_SECONDS
        is_due = now >= self._looked_at + LOOK_SECONDS or has_changed
        if is_due:
            self._shape = shape
            self._look(flows, is_fresh=has_changed)
            self._looked_at = self._clock()
        for flow in flows:
            self._read(flow, now, is_due=is_due)
        gone = self._readings.keys() - {flow.key for flow in flows}
        for key in gone:
            del self._readings[key]
        if gone:
            self._probe.forget(gone)
            self._writes.forget(lambda key: isinstance(key, tuple) and key[0] in gone)

    def _look(self, flows: Sequence[SourceFlow], *, is_fresh: bool) -> None:
        """Also where nothing is wanted of a flow: what was found is forgotten then."""
        wanted = []
        for flow in flows:
            lags = list(self._lags.of(flow))
            try:
                self._probe.look_at_retention(flow, {lag.source.topic for lag in lags})
            except MirrorError as error:
                log.debug("%s: retention is unknown: %s", flow.flow, error)
            positions = {lag.source: _known_position(lag) for lag in lags if _needs_look(lag)}
            if positions or flow.is_stopped:
                wanted.append(Wanted(flow, positions))
        self._probe.look(wanted, is_fresh=is_fresh)

    def _read(self, flow: SourceFlow, now: float, *, is_due: bool) -> None:
        """A flow without running tasks changes only when its source was looked at."""
        runners = flow.runners
        is_running = any(runner.state is TaskState.RUNNING for runner in runners)
        if not is_running and not is_due:
            return
        behind: int | None
        if is_running:
            known = [runner.numbers.get("behind") for runner in runners]
            behind = None if None in known else sum(int(each or 0) for each in known)
        else:
            lags = [lag.records_behind for lag in self._lags.of(flow)]
            behind = None if None in lags or not lags else sum(each or 0 for each in lags)
        records = sum(runner.records for runner in runners)
        size = sum(runner.bytes for runner in runners)
        readings = self._readings.setdefault(flow.key, deque(maxlen=MOST_READINGS))
        readings.append(Reading(now, records, size, behind))


def _place(lag: PartitionLag) -> TopicPartition:
    return lag.source


def _needs_look(lag: PartitionLag) -> bool:
    """Whether its task does not say where the log ends."""
    return not lag.is_running or bool(lag.problem)


def _known_position(lag: PartitionLag) -> int | None:
    return lag.position if lag.is_running else None
