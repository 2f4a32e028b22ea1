"""The runbook of docs/group-tools.md, step by step, with the real commands.

Two flows between the same clusters, in one mirror process: one for each policy.

    us   -> eu    DefaultReplicationPolicy     orders-default  -> us.orders-default
    west -> eu    IdentityReplicationPolicy    orders-identity -> orders-identity
"""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.demo.mirror_process import MirrorProcess
from sparkmirror.demo.reading import EndOffsets
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.java import store_properties
from sparkmirror.embedded.process import log_tail, start_child
from tests.clusters import create_topic, wait_for
from tests.engines import mirror_process
from tests.failover.application import Reader, Writer
from tests.failover.groups import fetch_all

PARTITIONS = 3
# So many records are read before the next step: long enough for several commits.
SOME = 300
# Spark starts in 10 s, and in a minute on a machine that does other things as well.
START_SECONDS = 150.0
STEP_SECONDS = 60.0
_COMMAND = [sys.executable, "-m", "sparkmirror.cli.main"]
_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_EVERY_SECOND = (
    "refresh.topics.interval.seconds",
    "refresh.groups.interval.seconds",
    "emit.checkpoints.interval.seconds",
)
_ONE_COPY = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One flow and what the operator types for it; `policy` is given to `-rpc`."""

    alias: str
    topic: str
    remote: str
    pattern: str
    policy: str
    group: str


CASES = {
    "default": Case(
        "us",
        "orders-default",
        "us.orders-default",
        r"^(us\.)?orders-default$",
        "Default",
        "billing-default",
    ),
    "identity": Case(
        "west",
        "orders-identity",
        "orders-identity",
        "^orders-identity$",
        "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
        "billing-identity",
    ),
}


@dataclass(frozen=True, slots=True)
class Clusters:
    """The old and the new home, and the mirror between them."""

    source: KafkaCluster
    target: KafkaCluster
    mirror: MirrorProcess
    folder: Path


@dataclass(slots=True)
class Story:
    """What was sent and read, by cluster, and the offsets that the sync application wrote."""

    sent: list[int] = field(default_factory=list)
    read_on_source: list[int] = field(default_factory=list)
    read_on_target: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)


def make_mirror(folder: Path, source: KafkaCluster, target: KafkaCluster) -> MirrorProcess:
    """Both flows in one file; not started."""
    default, identity = CASES["default"], CASES["identity"]
    settings = {
        "clusters": f"{default.alias}, {identity.alias}, eu",
        f"{default.alias}.bootstrap.servers": source.bootstrap_servers,
        f"{identity.alias}.bootstrap.servers": source.bootstrap_servers,
        "eu.bootstrap.servers": target.bootstrap_servers,
        f"{identity.alias}->eu.replication.policy.class": _IDENTITY,
        "emit.heartbeats.enabled": "false",
        "sync.topic.acls.enabled": "false",
        **dict.fromkeys(_EVERY_SECOND, "1"),
        **dict.fromkeys(_ONE_COPY, "1"),
    }
    for case in CASES.values():
        settings |= {
            f"{case.alias}->eu.enabled": "true",
            f"{case.alias}->eu.topics": case.topic,
            f"{case.alias}->eu.groups": case.group,
        }
    store_properties(folder / "mm2.properties", settings)
    store_properties(folder / "target.properties", {"bootstrap.servers": target.bootstrap_servers})
    return mirror_process("sparkmirror", folder / "mm2.properties")


class Runbook:
    """One application's move; the mirror is started before and stopped after it."""

    def __init__(self, case: Case, clusters: Clusters) -> None:
        self.story = Story()
        self._case = case
        self._clusters = clusters
        self._numbers = itertools.count()
        self._running: list[Writer | Reader] = []

    def start(self) -> None:
        """The application at home: a writer and a reader, on the source."""
        create_topic(self._clusters.source, self._case.topic, partitions=PARTITIONS)
        self._writer = self._write_on(self._clusters.source)
        self._reader = self._read_on(self._clusters.source)

    def move(self) -> None:
        """Every step from the start of the offset sync to the writer's start on the target."""
        source, target, case = self._clusters.source, self._clusters.target, self._case
        self._wait("the mirror has caught up", self._has_caught_up, START_SECONDS)
        with self._offset_sync() as log_path:
            self._wait("offsets are synced", lambda: bool(self._written(log_path)))
            self._wait_for_reading(len(self._reader.read) + SOME)
            self._reader.stop()
            self.story.read_on_source = self._reader.read
            self._wait("the last commit is synced", self._is_synced)
        self._reader = self._read_on(target)
        self._wait_for_reading(SOME)
        self._writer.stop()
        self.story.sent += self._writer.sent
        self._wait("everything has arrived", self._has_arrived)
        left = len(self.story.sent) - len(self.story.read_on_source)
        self._wait_for_reading(left)
        if case.remote != case.topic:
            create_topic(target, case.topic, partitions=PARTITIONS)
        assert self._count_records(source, case.topic) == len(self.story.sent)
        self._writer = self._write_on(target)
        self._wait_for_reading(left + SOME)

    def end(self) -> None:
        """After the mirror has stopped: the application goes on for a while, then it ends."""
        self._wait_for_reading(len(self._reader.read) + SOME)
        self._writer.stop()
        self.story.sent += self._writer.sent
        self._wait_for_reading(len(self.story.sent) - len(self.story.read_on_source))
        self._reader.stop()
        self.story.read_on_target = self._reader.read

    def close(self) -> None:
        """Stop what still runs."""
        for each in self._running:
            each.stop()

    # -- parts -------------------------------------------------------------------------------------

    def _write_on(self, cluster: KafkaCluster) -> Writer:
        writer = Writer(cluster, self._case.topic, PARTITIONS, self._numbers)
        self._running.append(writer)
        return writer

    def _read_on(self, cluster: KafkaCluster) -> Reader:
        reader = Reader(cluster, self._case.group, self._case.pattern)
        self._running.append(reader)
        return reader

    @contextmanager
    def _offset_sync(self) -> Iterator[Path]:
        """The log of the offset sync application, which must end with 0 on Ctrl-C."""
        case, folder = self._case, self._clusters.folder
        options = ["-cgi", case.group, "-src", case.alias, "-rpc", case.policy, "-int", "1"]
        command = [*_COMMAND, "groups", "sync", *options, "-pfp", str(folder / "target.properties")]
        child = start_child(command, folder / f"sync-{case.alias}.log")
        try:
            yield child.log_path
            assert child.exit_code is None, log_tail(child.log_path, 20)
            child.send(signal.SIGINT)
            code = child.wait(STEP_SECONDS)
            assert code == 0, log_tail(child.log_path, 20)
            self.story.written = self._written(child.log_path)
        finally:
            child.kill()

    def _written(self, log_path: Path) -> list[int]:
        """The offsets that the tables of the sync application say it has written."""
        line = re.compile(rf"^{re.escape(self._case.group)} .* (\d+) +written$", re.MULTILINE)
        return [int(found) for found in line.findall(log_path.read_text())]

    def _is_synced(self) -> bool:
        """As the operator finds out: the group's place on the target is the translated one."""
        command = [*_COMMAND, "groups", "translate", "--source", self._case.alias]
        command += ["--group", self._case.group, "--json"]
        command += ["-pfp", str(self._clusters.folder / "mm2.properties")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            return False
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        committed = fetch_all(self._clusters.source, [self._case.group])[self._case.group]
        assert {row["partition"]: row["source_offset"] for row in rows} == {
            tp.partition: offset for tp, offset in committed.items()
        }
        return len(rows) == PARTITIONS and all(
            row["translation"] == "exact"
            and row["target_topic"] == self._case.remote
            and row["target_offset"] == row["committed_on_target"]
            for row in rows
        )

    def _has_caught_up(self) -> bool:
        copied = self._count_records(self._clusters.target, self._case.remote)
        behind = self._count_records(self._clusters.source, self._case.topic) - copied
        return copied > 0 and behind < SOME

    def _has_arrived(self) -> bool:
        return self._count_records(self._clusters.target, self._case.remote) >= len(self.story.sent)

    def _count_records(self, cluster: KafkaCluster, topic: str) -> int:
        return sum(EndOffsets(cluster.bootstrap_servers).list_end_offsets([topic]).values())

    def _wait_for_reading(self, count: int) -> None:
        reader = self._reader
        self._wait(f"{count} records are read", lambda: len(reader.read) >= count)

    def _wait(self, what: str, condition: Callable[[], bool], within: float = STEP_SECONDS) -> None:
        def is_true() -> bool:
            for each in self._running:
                each.check()
            self._clusters.mirror.check_running()
            return condition()

        wait_for(
            is_true,
            within=within,
            describe=lambda: (
                f"{self._case.group}: {what}; read {len(self._reader.read)}; "
                f"{self._clusters.mirror.log_end()}"
            ),
        )
