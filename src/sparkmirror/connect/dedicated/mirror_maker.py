"""Dedicated mode: all flows of an mm2 file, each with its herder, until the process is stopped.

Runs on: worker. Mirrors: org.apache.kafka.connect.mirror.MirrorMaker. Every source->target pair has
a herder of its own (`MirrorHerder`); all of them use one Spark. The start does three things in
parallel: it joins the groups, for which brokers make it wait three seconds
(group.initial.rebalance.delay.ms), opens their topics, and starts Spark.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from sparkmirror.config.mm2 import MirrorMakerConfig, PairConfig
from sparkmirror.connect.background import Background
from sparkmirror.connect.connector import Task
from sparkmirror.connect.dedicated.mirror_herder import LEAVE_SECONDS, MirrorHerder, raise_together
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.source.start_report import refuse_fresh_starts
from sparkmirror.errors import MirrorError
from sparkmirror.spark.task_runner import TaskRunner

log = logging.getLogger(__name__)

# To commit, drain and stop: from SIGTERM to exit takes less than ten seconds in all.
STOP_SECONDS = 7.0


class MirrorMaker:
    """The flows of one file, each with its checkpoints, and the heartbeats of all pairs."""

    def __init__(
        self, config: MirrorMakerConfig, *, resume_only: bool = False, url: str = ""
    ) -> None:
        """`resume_only`: start nothing unless every partition has a position to resume at.

        `url`: the URL of this process's REST API, if it has one.
        """
        self._resume_only = resume_only
        self._has_rest = bool(url)
        self._needs_spark = bool(config.flows)
        self._spark = Worker(config.spark)
        # Names this process in statuses, and in the logs of other nodes when it leads.
        own = f"{socket.gethostname()}/{os.getpid()}"
        self._addresses = url or own, urlsplit(url).netloc or own
        self.herders = [self._make_herder(pair, config) for pair in config.pairs]
        self.flows = [FlowView(herder) for herder in self.herders if herder.copies]
        self._is_started = False
        self._has_logged_start = False

    @property
    def thread_tasks(self) -> Sequence[Task]:
        """The tasks here that need no Spark: checkpoints and heartbeats."""
        tasks = (each for herder in self.herders for each in herder.tasks().values())
        return [task for each in tasks for task in each if task.runner is None]

    def start(self, stop: threading.Event) -> None:
        """Connect to all clusters, then join the groups; ends early on `stop`.

        Raises:
            KafkaError: all clusters that cannot be reached; nothing was created anywhere.
            ConfigErrors: all key stores and logins that cannot be used.
            MirrorError: with `resume_only`, all partitions of all flows that would start afresh.
        """
        if self._needs_spark:
            self._spark.begin()
        if not Background(self._connect).wait(stop):
            return
        self._is_started = True
        for herder in self.herders:
            herder.start()

    def look(self) -> None:
        """Called about once a second.

        Raises:
            MirrorError: this process cannot run a flow, or Spark is gone.
        """
        for herder in self.herders:
            herder.look()
        self._spark.raise_failure()
        if self.herders and not any(herder.is_member for herder in self.herders):
            self._spark.close_if_elsewhere()
        self._log_start()

    def stop(self) -> bool:
        """Commit and stop everything; return whether all positions were stored."""
        self._spark.give_up_start()
        threads = [
            # Daemons: a cluster that does not respond must not keep the process.
            threading.Thread(target=herder.stop, args=(STOP_SECONDS,), daemon=True)
            for herder in self.herders
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(STOP_SECONDS + LEAVE_SECONDS)
        self._spark.close()
        late = [herder.name for herder in self.herders if herder.is_stopping]
        if late:
            log.warning("did not end in time: %s", ", ".join(map(str, late)))
        return not late and all(herder.is_clean for herder in self.herders)

    def make_herder(self, pair: PairConfig, *, awaits_heartbeats: bool) -> MirrorHerder:
        """Make the herder of one pair."""
        return MirrorHerder(
            pair,
            self._spark,
            *self._addresses,
            awaits_heartbeats=awaits_heartbeats,
            has_rest=self._has_rest,
            needs_spark=self._needs_spark,
        )

    def _make_herder(self, pair: PairConfig, config: MirrorMakerConfig) -> MirrorHerder:
        """With pairs in both directions, one writes the heartbeats that the other copies."""
        beating = {each.flow.target for each in config.heartbeats}
        return self.make_herder(pair, awaits_heartbeats=pair.name.source in beating)

    def _connect(self) -> None:
        """Connect to all clusters; with `resume_only`, check that all partitions can resume."""
        connect_all([herder.connect for herder in self.herders])
        if self._resume_only:
            refuse_fresh_starts(line for herder in self.herders for line in herder.refused_starts())

    def _log_start(self) -> None:
        """Once, when every pair's connectors run, here or on another node."""
        if self._has_logged_start or not all(herder.is_settled for herder in self.herders):
            return
        self._has_logged_start = True
        led = sum(1 for herder in self.herders if herder.copies and herder.leads)
        others = len(self.flows) - led
        log.info("%d flows started%s", led, f", {others} led by other nodes" if others else "")


class FlowView:
    """One flow, for the live display."""

    def __init__(self, herder: MirrorHerder) -> None:
        self._herder = herder
        self.flow = herder.name

    @property
    def tasks(self) -> list[TaskRunner]:
        return self._herder.runners

    @property
    def last_error(self) -> str:
        errors = (each.last_error for each in self._herder.connectors().values())
        return next((error for error in errors if error), "")

    @property
    def stands_by(self) -> str:
        """Why this process copies nothing of the flow; empty if it does."""
        return self._herder.stands_by


def connect_all(connects: Sequence[Callable[[], None]]) -> None:
    """Connect in parallel.

    Raises:
        ConfigErrors: all key stores and logins that cannot be used.
        KafkaError: all clusters that cannot be reached, each once.
    """
    # Daemons: a cluster that does not respond must not keep a process that stops.
    running = [Background(connect) for connect in connects]
    errors: list[MirrorError] = []
    for each in running:
        try:
            each.wait(threading.Event())
        except MirrorError as error:
            errors.append(error)
    raise_together(errors)
