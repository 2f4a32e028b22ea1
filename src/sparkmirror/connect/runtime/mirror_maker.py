"""Dedicated mode: all flows of an mm2 file in one process, until told to stop.

Runs on: worker. Mirrors: org.apache.kafka.connect.mirror.MirrorMaker. Several processes may run
with one file: `FlowGroup` lets one of them copy each flow. Spark starts while the groups are being
joined, which takes a broker three seconds (group.initial.rebalance.delay.ms).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from sparkmirror.config.mm2 import FlowConfig, HeartbeatPair, MirrorMakerConfig
from sparkmirror.connect.background import Background
from sparkmirror.connect.checkpoint.local_checkpoints import LocalCheckpoints
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.runtime.dedicated_topics import DedicatedTopics
from sparkmirror.connect.runtime.flow_group import (
    LEAVE_SECONDS,
    STOP_SECONDS,
    Connectors,
    FlowGroup,
    FlowView,
    Phase,
    ThreadConnector,
    connect_all,
)
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.connect.source.local_source import LocalSource
from sparkmirror.connect.source.start_report import refuse_fresh_starts
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)


class MirrorMaker:
    """The flows of one file, each with its checkpoints, and the heartbeats of all pairs."""

    def __init__(self, config: MirrorMakerConfig, *, resume_only: bool = False) -> None:
        """`resume_only`: start nothing unless every partition has a position to resume at."""
        tasks = sum(flow.source.tasks_max for flow in config.flows)
        self._resume_only = resume_only
        self._spark = Worker(config.spark, slots=tasks)
        self._groups = self._make_groups(config)
        self.flows = [FlowView(flow, self._groups[_group_key(flow)]) for flow in config.flows]
        self._is_started = False
        self._has_told = False

    @property
    def worker_connectors(self) -> Sequence[ThreadConnector]:
        """Those that have no tasks: checkpoints and heartbeats, of the flows that run here."""
        return [each for group in self._groups.values() for each in group.connectors.worker_side]

    def start(self, stop: threading.Event) -> None:
        """Connect everywhere, then start Spark and join the groups; ends early on `stop`.

        Raises:
            KafkaError: all clusters that cannot be reached, at once; nothing was created anywhere.
            ConfigErrors: the same for key stores and logins that cannot be used.
            MirrorError: with `resume_only`, all partitions that would start afresh, of all flows.
        """
        try:
            if not Background(self._connect).wait(stop):
                return
        except MirrorError:
            for group in self._groups.values():
                group.close_unused()
            raise
        self._is_started = True
        if self.flows:
            self._spark.begin()
        for group in self._groups.values():
            group.start()

    def look(self) -> None:
        """Called about once a second: say which tasks lack a Spark slot, and what has started.

        Raises:
            MirrorError: a flow cannot be run by this process, or Spark is gone.
        """
        groups = list(self._groups.values())
        for group in groups:
            if group.failure is not None:
                raise group.failure
        self._spark.raise_failure()
        tasks = [task for group in groups for task in group.tasks]
        for task in tasks:
            task.check_slot(len(tasks))
        if groups and all(group.phase is Phase.STANDING_BY for group in groups):
            # Executors elsewhere are for those who use them; a JVM of our own is kept warm.
            self._spark.close_if_elsewhere()
        self._tell_started()

    def stop(self) -> bool:
        """Commit and end everything; tells whether all tasks ended clean."""
        if not self._is_started:
            return True
        deadline = time.monotonic() + STOP_SECONDS + LEAVE_SECONDS
        groups = list(self._groups.values())
        for group in groups:
            group.stop()
        self._spark.give_up_start()
        for group in groups:
            group.finish(deadline)
        for group in groups:
            group.leave()
        self._spark.close()
        return all(group.is_clean for group in groups)

    def make_connectors(self, members: Sequence[Member]) -> Connectors:
        """What runs for one group, whenever this process leads it."""
        return make_connectors(members)

    def _make_groups(self, config: MirrorMakerConfig) -> dict[tuple[str, str], FlowGroup]:
        members: dict[tuple[str, str], list[Member]] = {}
        every: list[Member] = [*config.flows, *config.heartbeat_pairs]
        for member in every:
            members.setdefault(_group_key(member), []).append(member)
        needed = self._spark if config.flows else None
        return {key: self._make_group(rows, needed) for key, rows in members.items()}

    def _make_group(self, members: Sequence[Member], spark: Worker | None) -> FlowGroup:
        return FlowGroup(members[0].worker, lambda: self.make_connectors(members), spark)

    def _connect(self) -> None:
        """Reach all clusters, and look for positions if all partitions have to have one."""
        groups = self._groups.values()
        connect_all([each for group in groups for each in group.connectors.all])
        if self._resume_only:
            sources = [each for group in groups for each in group.connectors.sources]
            refuse_fresh_starts(line for each in sources for line in each.refused_starts())

    def _tell_started(self) -> None:
        """Once, when it is known of every flow whether it runs here."""
        phases = [group.phase for group in self._groups.values()]
        if self._has_told or not all(p in (Phase.RUNNING, Phase.STANDING_BY) for p in phases):
            return
        self._has_told = True
        waiting = sum(1 for flow in self.flows if flow.stands_by)
        running = len(self.flows) - waiting
        log.info("%d flows started%s", running, f", {waiting} standing by" if waiting else "")


Member = FlowConfig | HeartbeatPair


def _group_key(member: Member) -> tuple[str, str]:
    """Flows with one group.id on one target share its fate, as they do in MirrorMaker 2."""
    return member.name.target, member.worker.group_id


def make_connectors(members: Sequence[Member]) -> Connectors:
    """What MirrorMaker 2 runs for these."""
    flows = [member for member in members if isinstance(member, FlowConfig)]
    pairs = [member for member in members if isinstance(member, HeartbeatPair)]
    checkpoints = [
        LocalCheckpoints(flow, has_syncs=flow.source.emit_offset_syncs_enabled) for flow in flows
    ]
    heartbeats = [MirrorHeartbeatTask(pair) for pair in pairs]
    topics = DedicatedTopics([member.worker for member in members])
    return Connectors([LocalSource(flow) for flow in flows], [*checkpoints, *heartbeats, topics])
