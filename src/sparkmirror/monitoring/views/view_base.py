"""What all views share: the newest picture, two readings of the lag, and samples for the charts.

Runs on: worker, on threads of the REST API. One thread of its own takes a sample every 15 s; all
else happens when somebody asks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sparkmirror
from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.clusters.flow_specs import FlowSpecs, SpecReader
from sparkmirror.monitoring.clusters.flow_watch import Watches
from sparkmirror.monitoring.gathering.gathering import Gathering, Peers
from sparkmirror.monitoring.gathering.history import STEP_SECONDS, History
from sparkmirror.monitoring.gathering.own_figures import Events, Lags, OwnFigures
from sparkmirror.monitoring.gathering.worker_figures import encode_figures
from sparkmirror.monitoring.monitored import Monitored
from sparkmirror.monitoring.views.failover.failover_view import (
    READINGS_MS,
)
from sparkmirror.monitoring.views.flows_view import flow_rows
from sparkmirror.monitoring.views.groups_view import (
    group_rows,
)
from sparkmirror.monitoring.views.picture import Picture, Pictures, data_partitions
from sparkmirror.monitoring.views.rows.common import Requester, as_json
from sparkmirror.monitoring.views.rows.failover_rows import LagReading
from sparkmirror.monitoring.views.rows.group_rows import GroupRow
from sparkmirror.monitoring.views.rows.partition_rows import UnmirroredRow
from sparkmirror.monitoring.views.unmirrored_view import Unmirrored
from sparkmirror.monitoring.views.view_parts import (
    knows_groups as _knows_groups,
)
from sparkmirror.monitoring.views.view_parts import (
    reading,
    sample_of,
)
from sparkmirror.monitoring.views.view_parts import (
    worker_rows as _workers,
)
from sparkmirror.monitoring.views.wording.paging import NotThere

log = logging.getLogger(__name__)

GROUPS_WAIT_SECONDS = 8.0
READINGS_WAIT_SECONDS = 7.0
LOOK_SECONDS = 0.2
# Older than this, a reading is no second one.
READINGS_KEPT_MS = 60_000
# Of the last hour, one point per minute.
SPARK_EVERY = 4
SPARKS = ("bytes_per_second", "seconds_behind")
Answer = dict[str, Any]


class ViewBase:
    """`start` once, `stop` at the end; every method may be called by any thread in between.

    Raises NotThere for what does not exist, and BadQuery for parameters that cannot be used.
    """

    def __init__(
        self,
        monitored: Monitored,
        lags: Lags,
        events: Events,
        peers: Peers,
        *,
        watches: Watches | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._monitored = monitored
        self._clock_ms = clock_ms
        own = OwnFigures(lags, events, clock_ms)
        self._gathering = Gathering(monitored, own, peers, clock_ms=clock_ms)
        self._watches = watches or Watches()
        self._pictures = Pictures(self._gathering, SpecReader(monitored), self._watches)
        self._unmirrored = Unmirrored()
        self._history = History(clock_ms())
        self._sparks: Mapping[str, Mapping[str, Sequence[float | None]]] = {}
        self._readings: dict[str, deque[LagReading]] = {}
        self._overviews: dict[Requester, tuple[Picture, Answer]] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="views", daemon=True)

    def start(self) -> None:
        """Begin to take samples."""
        self._thread.start()

    def stop(self) -> None:
        """End; does not wait for clusters that do not respond."""
        self._stopping.set()
        self._watches.stop()

    @property
    def is_stopping(self) -> bool:
        """Whether the process ends: streams do too."""
        return self._stopping.is_set()

    # -- for the other workers ---------------------------------------------------------------------

    def figures(self, prefix: str) -> Answer:
        """What this process alone knows of one of its groups."""
        found = self._gathering.own_of(prefix)
        if found is None:
            raise NotThere(f"this process has no group {prefix or '/'}")
        return encode_figures(found)

    # -- inside ------------------------------------------------------------------------------------

    def _watched(self) -> Picture:
        """The newest picture, for somebody who looks: the clusters are looked at too."""
        picture = self._take()
        for watch in picture.watches.values():
            watch.touch()
        return picture

    def _take(self) -> Picture:
        picture = self._pictures.take()
        with self._lock:
            for flow, rows in picture.partitions.items():
                kept = self._readings.setdefault(flow, deque())
                if kept and picture.at_ms <= kept[-1].time_ms:
                    continue
                own = [lag for lag, _ in picture.gathered.partitions if lag.flow == flow]
                data = data_partitions(picture, flow, rows)
                kept.append(reading(picture.at_ms, own, data, picture.gathered.missing))
                while picture.at_ms - kept[0].time_ms > READINGS_KEPT_MS:
                    kept.popleft()
        return picture

    def _last_readings(self, flow: str) -> list[LagReading]:
        """The newest, and the last one that is at least 5 s older."""
        with self._lock:
            kept = list(self._readings.get(flow, ()))
        if not kept:
            return []
        older = [each for each in kept if kept[-1].time_ms - each.time_ms >= READINGS_MS]
        return [*older[-1:], kept[-1]]

    def _groups(self, picture: Picture, flow: str) -> list[GroupRow]:
        return group_rows(picture.watches[flow], picture.at_ms)

    def _not_mirrored(self, picture: Picture, specs: FlowSpecs) -> list[UnmirroredRow]:
        notes = [
            row.note
            for row in picture.connectors
            if row.flow == specs.flow and row.kind == "source" and row.state == "RUNNING"
        ]
        return self._unmirrored.rows(picture.watches[specs.flow], "\n".join(notes))

    def _wait_for_groups(self, picture: Picture, flows: Sequence[FlowSpecs]) -> list[str]:
        """Until they were asked for once; what is not known then."""
        missing = []
        for specs in flows:
            watch = picture.watches[specs.flow]
            watch.wait_for(_knows_groups, GROUPS_WAIT_SECONDS)
            why = watch.no_groups or watch.groups.error
            seen = watch.groups.value
            if why:
                missing.append(f"groups of {specs.flow}: {why}")
            elif seen is not None and seen.warning:
                missing.append(f"exact offsets of {specs.flow}: {seen.warning}")
        return missing

    def _answer(
        self, picture: Picture, requester: Requester, data: Answer, missing: Sequence[str] = ()
    ) -> Answer:
        frame: Answer = {
            "now_ms": picture.at_ms,
            "version": sparkmirror.__version__,
            "worker": next((row.id for row in _workers(picture) if row.is_this), ""),
            "who": requester,
            "workers": _workers(picture),
            "missing": list(dict.fromkeys([*picture.missing, *missing])),
        }
        found = as_json({**frame, **data})
        assert isinstance(found, dict)
        return found

    # -- samples -----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.wait(STEP_SECONDS):
            try:
                self.sample()
            except MirrorError as error:
                log.debug("no sample for the charts: %s", error)
            except Exception:  # a chart with a gap is better than none from now on
                log.exception("no sample for the charts")

    def sample(self) -> None:
        """Remember how all flows are now."""
        picture = self._take()
        rows = flow_rows(picture)
        samples = {row.flow: sample_of(row) for row in rows}
        self._history.add(picture.at_ms, samples, picture.gathered.missing)
        sparks = {}
        for row in rows:
            values = self._history.series(row.flow, "1h", picture.at_ms).values
            sparks[row.flow] = {name: values[name][::SPARK_EVERY] for name in SPARKS}
        self._sparks = sparks
