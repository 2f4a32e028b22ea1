"""Looks at both clusters of a flow again and again, as long as somebody wants to know.

Runs on: worker, one thread per flow. Nothing is asked while nobody watches: pages, `top` and
commands `touch` it. What fails is remembered with its reason and tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.masking import mask
from sparkmirror.errors import KafkaError, MirrorError
from sparkmirror.mirror.policy import IdentityReplicationPolicy, flow_policy
from sparkmirror.monitoring.clusters.flow_specs import FlowSpecs
from sparkmirror.monitoring.clusters.groups_look import GroupsLook, GroupsSeen
from sparkmirror.monitoring.clusters.known import Known
from sparkmirror.monitoring.clusters.topics_look import SettingsSeen, TopicsLook, TopicsSeen
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.watch_admin import WatchAdmin

log = logging.getLogger(__name__)

WANTED_SECONDS = 60.0
TICK_SECONDS = 1.0
# A cluster that does not respond must not keep the figures of the other one back for long.
TIMEOUT_MS = 8_000
HEARTBEAT_SECONDS, BROKERS_SECONDS, TOPICS_SECONDS = 3.0, 5.0, 10.0
GROUPS_SECONDS, SETTINGS_SECONDS = 10.0, 60.0
ONE_HEARTBEAT = "the replication policy gives heartbeats of both clusters one topic"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BrokersSeen:
    """Brokers that answer now, of all that were seen since somebody watches."""

    now: frozenset[int]
    ever: frozenset[int]


class ClusterLink:
    """One cluster, connected when it is first asked."""

    def __init__(self, client: ClientConfig) -> None:
        self._client = client
        self._admin: WatchAdmin | None = None
        self._ever: frozenset[int] = frozenset()

    def get(self) -> WatchAdmin:
        """Connected. Raises KafkaError."""
        if self._admin is None:
            self._admin = WatchAdmin(self._client, TIMEOUT_MS)
        return self._admin

    def brokers(self) -> BrokersSeen:
        """Raises KafkaError."""
        now = frozenset(self.get().broker_ids())
        self._ever |= now
        return BrokersSeen(now, self._ever)

    def close(self) -> None:
        """Close the connections."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None


@dataclass(slots=True)
class _Links:
    """What the thread of a watch owns while it runs."""

    source: ClusterLink
    target: ClusterLink
    topics: TopicsLook | None
    groups: GroupsLook | None

    @classmethod
    def of(cls, specs: FlowSpecs) -> _Links | None:
        """None: no connector says where the clusters are."""
        spec = specs.source or specs.checkpoint
        if spec is None:
            return None
        return cls(
            ClusterLink(spec.config.source_client),
            ClusterLink(spec.config.target_client),
            None if specs.source is None else TopicsLook(specs.source.config),
            None if specs.checkpoint is None else GroupsLook(specs.checkpoint.config),
        )

    def close(self) -> None:
        """Close all connections."""
        for each in (self.source, self.target, self.groups):
            if each is not None:
                each.close()


class FlowWatch:
    """`source`, `target`: brokers. `heartbeat`: time of the newest one that arrived."""

    def __init__(
        self,
        specs: FlowSpecs,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.specs = specs
        self.source: Known[BrokersSeen] = Known()
        self.target: Known[BrokersSeen] = Known()
        self.topics: Known[TopicsSeen] = Known()
        self.settings: Known[SettingsSeen] = Known()
        self.groups: Known[GroupsSeen] = Known()
        self.heartbeat: Known[int] = Known()
        self.no_groups = ""
        self.no_heartbeat = ""
        self._clock_ms = clock_ms
        self._clock = clock
        self._wanted_until = 0.0
        self._due: dict[str, float] = {}
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def touch(self) -> None:
        """Somebody wants to know: look for another minute."""
        with self._lock:
            self._wanted_until = self._clock() + WANTED_SECONDS
            if self._thread is None and not self._stopping.is_set():
                name = f"watch {self.specs.flow}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End; does not wait."""
        self._stopping.set()

    def wait_for(self, is_there: Callable[[FlowWatch], bool], seconds: float) -> bool:
        """Wait until something is known, for someone who has just come."""
        with self._changed:
            return self._changed.wait_for(lambda: is_there(self), seconds)

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        links = _Links.of(self.specs)
        try:
            while links is not None and self._is_wanted():
                self._look(links)
                self._stopping.wait(TICK_SECONDS)
        except Exception:  # the next one who asks starts it again
            log.exception("[%s] looking at the clusters for the page failed", self.specs.flow)
        finally:
            if links is not None:
                links.close()
            with self._lock:
                self._thread = None
                self._due.clear()

    def _is_wanted(self) -> bool:
        return self._clock() < self._wanted_until and not self._stopping.is_set()

    def _look(self, links: _Links) -> None:
        source, target = links.source, links.target
        if self._take_turn("source", BROKERS_SECONDS):
            self.source = self._ask(self.source, source.brokers)
        if self._take_turn("target", BROKERS_SECONDS):
            self.target = self._ask(self.target, target.brokers)
        if self._take_turn("heartbeat", HEARTBEAT_SECONDS):
            self._look_for_heartbeat(target)
        if self._take_turn("groups", GROUPS_SECONDS):
            self._look_at_groups(links)
        if links.topics is not None:
            self._look_at_topics(links, links.topics)

    def _look_at_topics(self, links: _Links, topics: TopicsLook) -> None:
        source, target = links.source, links.target
        if self._take_turn("topics", TOPICS_SECONDS):
            self.topics = self._ask(self.topics, lambda: topics.topics(source.get(), target.get()))
        seen = self.topics.value
        if seen is not None and self._take_turn("settings", SETTINGS_SECONDS):
            self.settings = self._ask(
                self.settings, lambda: topics.settings(seen, source.get(), target.get())
            )

    def _look_for_heartbeat(self, target: ClusterLink) -> None:
        spec = self.specs.source
        if spec is None:
            self.no_heartbeat = "no source connector, so no heartbeats are copied"
            return
        policy = flow_policy(spec.config)
        if isinstance(policy, IdentityReplicationPolicy):
            self.no_heartbeat = ONE_HEARTBEAT
            return
        topic = policy.format_remote_topic(spec.config.source_alias, policy.heartbeats_topic())

        def newest() -> int:
            if target.get().view_topic(topic) is None:
                return -1
            found = target.get().newest_ms(TopicPartition(topic, 0))
            if isinstance(found, KafkaError):
                raise found
            return found

        self.heartbeat = self._ask(self.heartbeat, newest)
        missing = self.heartbeat.is_current and self.heartbeat.value == -1
        source, target_alias = self.specs.aliases
        self.no_heartbeat = (
            f"no heartbeat of {source} has arrived on {target_alias}: `{topic}` is missing or "
            f"empty; a heartbeat connector into {source} writes them"
            if missing
            else ""
        )

    def _look_at_groups(self, links: _Links) -> None:
        spec, groups = self.specs.checkpoint, links.groups
        if spec is None or groups is None:
            self.no_groups = "the flow has no checkpoint connector, so no group is followed"
        elif not spec.config.is_on:
            self.no_groups = "checkpoints are switched off for this flow"
        else:
            self.no_groups = ""
            self.groups = self._ask(
                self.groups, lambda: groups.groups(links.source.get(), links.target.get())
            )

    def _take_turn(self, name: str, seconds: float) -> bool:
        if self._clock() < self._due.get(name, 0.0):
            return False
        self._due[name] = self._clock() + seconds
        return True

    def _ask(self, known: Known[T], ask: Callable[[], T]) -> Known[T]:
        if not self._is_wanted():
            return known
        try:
            found = known.succeeded(ask(), self._clock_ms())
        except MirrorError as error:
            found = known.failed(mask(str(error)), self._clock_ms())
        with self._changed:
            self._changed.notify_all()
        return found


class Watches:
    """The watch of each flow; one whose connectors changed is replaced."""

    def __init__(self, make: Callable[[FlowSpecs], FlowWatch] = FlowWatch) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._watches: dict[str, FlowWatch] = {}

    def of(self, specs: FlowSpecs) -> FlowWatch:
        """The watch of this flow; it looks only if it is touched."""
        with self._lock:
            watch = self._watches.get(specs.flow)
            if watch is None or _differs(watch.specs, specs):
                if watch is not None:
                    watch.stop()
                watch = self._watches[specs.flow] = self._make(specs)
        return watch

    def stop(self) -> None:
        """End all."""
        with self._lock:
            for watch in self._watches.values():
                watch.stop()


def _differs(one: FlowSpecs, other: FlowSpecs) -> bool:
    return one.source is not other.source or one.checkpoint is not other.checkpoint
