"""MirrorMaker 2 -> sparkmirror -> MirrorMaker 2 -> sparkmirror, while records keep coming.

All four read the same file, whose offset.flush.interval.ms is MirrorMaker 2's minute: positions are
those that each of them left when it was stopped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sparkmirror.demo.mirror_process import (
    ENGINES,
    SOURCE,
    TARGET,
    MirrorProcess,
    mm2_properties,
)
from sparkmirror.embedded import KAFKA_VERSION
from sparkmirror.embedded.class_archive import class_archive_args
from sparkmirror.tools.preview.planned_file import load_planned
from sparkmirror.tools.preview.planning import plan_file
from sparkmirror.types import TopicPartition
from tests.clusters import side_by_side, start_cluster, wait_for
from tests.engines import mirror_process
from tests.handover.seams import last_offsets, repeated_at_seams
from tests.handover.traffic import GroupMember, GroupWatch, numbers_of, steady_load
from tests.kafka.records import last_value
from tests.mm2_suite.flows import DEFAULT, Flow
from tests.mm2_suite.groups import assert_monotonic_checkpoints, checkpoints_of
from tests.mm2_suite.topics import create_topics, ends

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

TURNS = ("mm2", "sparkmirror", "mm2", "sparkmirror")
TOPICS = ("orders", "payments", "clicks")
PARTITIONS = 2
PER_SECOND = 300
GROUP = "billing"
WAIT_SECONDS = 120.0
# How long each one goes on after it has caught up.
LIVE_SECONDS = 2.0
# The only topic that MirrorMaker 2 does not have.
OFFSET_MAP = f"mm2-offset-map.{SOURCE}.internal"
EVERY_SECOND = dict.fromkeys(
    (
        "refresh.groups.interval.seconds",
        "emit.checkpoints.interval.seconds",
        "sync.group.offsets.interval.seconds",
    ),
    "1",
)
CHANGES = {
    "groups": GROUP,
    "sync.group.offsets.enabled": "true",
    # Otherwise MirrorMaker 2 searches all its jars for plugins at every start, twice.
    "plugin.discovery": "service_load",
    f"{TARGET}.plugin.discovery": "service_load",
    **EVERY_SECOND,
}


def remote(tp: TopicPartition) -> TopicPartition:
    return TopicPartition(f"{SOURCE}.{tp.topic}", tp.partition)


SOURCE_PARTITIONS = [TopicPartition(topic, at) for topic in TOPICS for at in range(PARTITIONS)]
REMOTE_PARTITIONS = [remote(tp) for tp in SOURCE_PARTITIONS]
REMOTES = sorted({tp.topic for tp in REMOTE_PARTITIONS})


def make_mirror(engine: str, file: Path) -> MirrorProcess:
    """MirrorMaker 2 starts sooner with the classes that brokers have parsed."""
    if engine != "mm2":
        mirror = mirror_process(engine, file)
        mirror.engine = replace(mirror.engine, command=_resuming_command)
        return mirror
    program = replace(ENGINES[engine], command=_quick_mm2_command)
    return MirrorProcess(program, file, detached=False)


def _resuming_command(file: Path) -> Sequence[str | Path]:
    """It ends at once unless every partition has a position that MirrorMaker 2 stored."""
    return [*ENGINES["sparkmirror"].command(file), "--resume-only"]


def _quick_mm2_command(file: Path) -> Sequence[str | Path]:
    java, *arguments = ENGINES["mm2"].command(file)
    return [java, *class_archive_args(), *arguments]


@dataclass(slots=True)
class HandOver:
    """The flow, and what each mirror left: its `seams` are end offsets of the target."""

    flow: Flow
    mirror: MirrorProcess
    watch: GroupWatch
    seams: list[dict[TopicPartition, int]] = field(default_factory=list)
    stop_seconds: list[float] = field(default_factory=list)
    # From a start to the first record in every partition.
    start_seconds: list[float] = field(default_factory=list)

    def start(self, engine: str) -> None:
        """Start the next one with the same file."""
        self.mirror = make_mirror(engine, self.mirror.log_path.with_name("mm2.properties"))
        self.flow = replace(self.flow, mirror=self.mirror)
        self.mirror.start()

    def wait_for(self, condition: Callable[[], object], describe: Callable[[], str]) -> None:
        """Wait for what the mirror should do; the group may not go back meanwhile."""
        mirror = self.flow.mirror

        def holds() -> object:
            mirror.check_running()
            self.watch.look()
            return condition()

        wait_for(holds, within=WAIT_SECONDS, describe=lambda: f"{describe()}; {mirror.log_end()}")

    def wait_until_at_work(self) -> None:
        """Wait until records arrive as they are written, and the group moves on in all of them."""
        began = time.monotonic()
        before = ends(self.flow.target, REMOTES)
        stood = self.watch.look()

        def has_begun() -> bool:
            now = ends(self.flow.target, REMOTES)
            return all(now.get(tp, 0) > before.get(tp, 0) for tp in REMOTE_PARTITIONS)

        def group_has_moved() -> bool:
            now = self.watch.look()
            return all(now.get(tp, -1) > stood.get(tp, -1) for tp in REMOTE_PARTITIONS)

        self.wait_for(has_begun, lambda: f"more than {before} on the target")
        self.start_seconds.append(time.monotonic() - began)
        self.wait_caught_up()
        self.wait_for(
            group_has_moved, lambda: f"{GROUP} beyond {stood} on the target: {self.watch.look()}"
        )

    def wait_caught_up(self) -> None:
        """Wait until the target has as many records as the source had when it was asked."""
        there = ends(self.flow.source, TOPICS)
        wanted = {remote(tp): end_offset for tp, end_offset in there.items()}

        def has_all() -> bool:
            now = ends(self.flow.target, REMOTES)
            return all(now.get(tp, 0) >= end_offset for tp, end_offset in wanted.items())

        self.wait_for(has_all, lambda: f"{wanted}; {ends(self.flow.target, REMOTES)}")

    def wait_complete(self) -> None:
        """Wait until the newest records of the source are the newest of the target."""
        wanted = {remote(tp): last_value(self.flow.source, *tp) for tp in SOURCE_PARTITIONS}

        def found() -> dict[TopicPartition, bytes | None]:
            return {tp: last_value(self.flow.target, *tp) for tp in wanted}

        self.wait_for(lambda: found() == wanted, lambda: f"{wanted}; {found()}")

    def stop(self) -> None:
        """SIGTERM; note where it has ended."""
        self.stop_seconds.append(self.mirror.stop())
        self.seams.append(ends(self.flow.target, REMOTES))


@pytest.fixture(params=[KAFKA_VERSION, pytest.param("2.8", marks=pytest.mark.long)])
def handover(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HandOver]:
    """Two clusters, the topics, the file; the source is of this release."""
    clusters = [start_cluster(SOURCE, version=request.param), start_cluster(TARGET)]
    with side_by_side(clusters) as (source, target):
        create_topics(source, TOPICS, partitions=PARTITIONS)
        file = tmp_path / "mm2.properties"
        servers = source.bootstrap_servers, target.bootstrap_servers
        file.write_text(mm2_properties(*servers, TOPICS, CHANGES))
        mirror = make_mirror(TURNS[0], file)
        flow = Flow(mirror, source, target, SOURCE, TARGET, DEFAULT, "")
        with closing(GroupWatch(target, GROUP, REMOTE_PARTITIONS)) as watch:
            made = HandOver(flow, mirror, watch)
            try:
                yield made
            finally:
                made.mirror.kill()


def test_four_mirrors_in_turn_lose_nothing_and_ours_leaves_nothing_to_copy_twice(
    handover: HandOver,
) -> None:
    source = handover.flow.source
    with (
        GroupMember(source, GROUP, TOPICS) as member,
        steady_load(source, TOPICS, PARTITIONS, per_second=PER_SECOND),
    ):
        for number, engine in enumerate(TURNS):
            if number:
                handover.stop()
            handover.start(engine)
            handover.wait_until_at_work()
            time.sleep(LIVE_SECONDS)
            # `plan` on the file of a running flow: of ours there is nothing to do.
            assert planned(handover) == ([] if number else [("create", OFFSET_MAP)])
    handover.wait_complete()
    handover.stop()
    assert member.read > 0
    resumed = re.findall(
        r"(\d+) resume at .*, 0 start afresh", handover.mirror.log_path.read_text()
    )
    assert resumed == [str(len(SOURCE_PARTITIONS))] * TURNS.count("sparkmirror")

    found = numbers_of(handover.flow.target, REMOTES)
    assert {tp: set(numbers) for tp, numbers in found.items()} == {
        remote(tp): set(numbers) for tp, numbers in numbers_of(source, TOPICS).items()
    }
    repeated = {
        tp: repeated_at_seams(numbers, [seam[tp] for seam in handover.seams[:-1]])
        for tp, numbers in found.items()
    }
    for at, stopped in enumerate(TURNS[:-1]):
        print(describe_seam(handover, repeated, at))  # noqa: T201
        if stopped == "sparkmirror":
            assert {tp: counts[at] for tp, counts in repeated.items() if counts[at]} == {}
    assert_monotonic_checkpoints(handover.flow, GROUP)
    assert_group_misses_nothing(handover.flow, found)


def planned(handover: HandOver) -> list[tuple[str, str]]:
    """What `plan` would change, but for offsets of the group, which moves all the time."""
    file = load_planned(handover.mirror.log_path.with_name("mm2.properties"))
    rows = plan_file(file).as_json()["changes"]
    return [(row["action"], row["name"]) for row in rows if row["kind"] != "group"]


def describe_seam(handover: HandOver, repeated: dict[TopicPartition, list[int]], at: int) -> str:
    before, after = TURNS[at : at + 2]
    total = sum(handover.seams[at].values())
    twice = {str(tp): counts[at] for tp, counts in repeated.items() if counts[at]}
    return (
        f"{before} -> {after}: {sum(twice.values())} of {total} records twice {twice or ''}, "
        f"stopped in {handover.stop_seconds[at]:.1f} s, "
        f"first records after {handover.start_seconds[at + 1]:.1f} s"
    )


def assert_group_misses_nothing(flow: Flow, found: dict[TopicPartition, list[int]]) -> None:
    """Who goes on at a checkpoint on the target gets every record that was not yet read."""
    copies = {tp: last_offsets(numbers) for tp, numbers in found.items()}
    for checkpoint in checkpoints_of(flow, GROUP):
        where = TopicPartition(checkpoint.topic, checkpoint.partition)
        # The group may have read everything: then there is no next record.
        next_copy = copies[where].get(checkpoint.upstream_offset, len(found[where]))
        assert checkpoint.downstream_offset <= next_copy, checkpoint
