"""The refresh case: the first full sync of many small topics and many groups.

Everything is on the source before a system starts: topics of one partition with two records, some
with their own settings, and for each topic a group without members that has read the first record.
The time from the start of the process until the target has everything is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer

from bench.cases import SPARKMIRROR, RefreshCase
from bench.process_tree import PeakMemory
from bench.progress import report
from bench.refresh_looks import (
    COMMITTED,
    OWN_SETTINGS,
    RECORDS,
    RefreshNames,
    TargetLooks,
    group_admin,
)
from bench.results import Measures, RunSystem
from bench.stage import DATA_PREFIX, Stage, Topics, clean_up
from bench.systems import Flow, Mirror, running_mirror
from sparkmirror.errors import KafkaError
from sparkmirror.types import TopicPartition

_LOOK_SECONDS = 0.2
_LONGEST_SECONDS = 600.0
_FLUSH_SECONDS = 60.0
_TOPICS_PER_REQUEST = 500
# Every tenth topic has its own settings.
_EACH = 10
# How often all systems make checkpoints and write group offsets.
_INTERVAL_SECONDS = "5"


@dataclass(frozen=True, slots=True)
class Milestone:
    """When a kind of data was complete, and the CPU of all processes until then."""

    seconds: float
    cpu_seconds: float


# Each is checked after the one before it in its chain was complete.
Chain = Sequence[tuple[str, Callable[[], bool]]]


def refresh_names(case: RefreshCase, scale: float) -> RefreshNames:
    """The topics and groups of the case."""
    topics = [f"{DATA_PREFIX}{case.name}-{number:04}" for number in range(case.topic_count(scale))]
    return RefreshNames(
        topics=tuple(topics),
        with_settings=tuple(topics[::_EACH]),
        groups={f"{topic}-group": topic for topic in topics},
    )


# -- data ------------------------------------------------------------------------------------------


@contextmanager
def prepared_refresh(stage: Stage, case: RefreshCase) -> Iterator[RunSystem]:
    """Fill the source, and let a mirror that is not measured warm up the brokers."""
    names = refresh_names(case, stage.scale)
    topics = Topics(stage.source)
    create_topics(topics, names)
    fill(stage, names)
    commit_groups(stage, names)
    report(f"{case.name}: {len(names.topics)} topics and groups; warming up the brokers")
    run_refresh(stage, case, names, SPARKMIRROR, f"brokers-{case.name}")
    yield lambda system: run_refresh(stage, case, names, system, f"{system}-{case.name}")
    topics.delete(set(names.topics))


def create_topics(topics: Topics, names: RefreshNames) -> None:
    """Create the topics in a few requests."""
    plain = sorted(set(names.topics) - set(names.with_settings))
    for at in range(0, len(plain), _TOPICS_PER_REQUEST):
        topics.create(plain[at : at + _TOPICS_PER_REQUEST], 1)
    topics.create(names.with_settings, 1, OWN_SETTINGS)


def fill(stage: Stage, names: RefreshNames) -> None:
    """Write the records of all topics."""
    producer = Producer({"bootstrap.servers": stage.source.bootstrap_servers, "linger.ms": 100})
    for number in range(RECORDS):
        for topic in names.topics:
            producer.produce(topic, b"record %d" % number, partition=0)
    left = producer.flush(_FLUSH_SECONDS)
    if left:
        raise KafkaError(f"fill the source: {left} records not acknowledged")


def commit_groups(stage: Stage, names: RefreshNames) -> None:
    """Commit the first record of its topic for every group."""
    with closing(group_admin(stage.source)) as admin:
        outcomes = admin.alter_many(
            {
                group: {TopicPartition(topic, 0): (COMMITTED, "")}
                for group, topic in names.groups.items()
            }
        )
    errors = [error for outcome in outcomes.values() for error in outcome.values() if error]
    if errors:
        raise errors[0]


# -- one run ---------------------------------------------------------------------------------------


def run_refresh(
    stage: Stage, case: RefreshCase, names: RefreshNames, system: str, alias: str
) -> list[Measures]:
    """Run one system from its start until everything is on the target."""
    flow = Flow(
        alias=alias,
        source_bootstrap=stage.source.bootstrap_servers,
        target_bootstrap=stage.target.bootstrap_servers,
        topics=".*",
        settings={
            f"{alias}->target.groups": ".*",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": _INTERVAL_SECONDS,
            "emit.checkpoints.interval.seconds": _INTERVAL_SECONDS,
        },
    )
    try:
        with (
            stage.target_offsets() as offsets,
            closing(TargetLooks(stage.target, offsets, flow, names)) as looks,
            running_mirror(system, flow, stage.log_folder(case.name, alias)) as mirror,
        ):
            return [watch(mirror, refresh_chains(looks))]
    finally:
        clean_up(stage)


def refresh_chains(looks: TargetLooks) -> list[Chain]:
    """The chains of checks to wait for."""
    return [
        [("topics_s", looks.has_topics), ("configs_s", looks.has_configs)],
        [("records_s", looks.has_records)],
        [("checkpoints_s", looks.has_checkpoints), ("group_offsets_s", looks.has_group_offsets)],
    ]


def watch(mirror: Mirror, chains: Sequence[Chain]) -> Measures:
    """Check the target until everything is complete."""
    left = [list(chain) for chain in chains]
    found: dict[str, Milestone] = {}
    peak = PeakMemory()
    while any(left):
        mirror.require_running()
        peak.note(mirror.tree.sample())
        for chain in left:
            while chain and chain[0][1]():
                seconds = time.monotonic() - mirror.started_at
                found[chain.pop(0)[0]] = Milestone(seconds, mirror.tree.sample().cpu_seconds)
        _require_time(mirror, [chain[0][0] for chain in left if chain])
        time.sleep(_LOOK_SECONDS if any(left) else 0.0)
    return refresh_measures(found, peak)


def _require_time(mirror: Mirror, missing: Sequence[str]) -> None:
    if missing and time.monotonic() - mirror.started_at > _LONGEST_SECONDS:
        raise TimeoutError(
            f"not complete on the target after {_LONGEST_SECONDS:g} s: {', '.join(missing)}; "
            f"see {mirror.log_path}"
        )


def refresh_measures(found: Mapping[str, Milestone], peak: PeakMemory) -> Measures:
    """The figures of one run; the first sync of topics includes their records and settings."""
    topics = max(found[name].cpu_seconds for name in ("topics_s", "configs_s", "records_s"))
    return {
        **{name: milestone.seconds for name, milestone in found.items()},
        "topics_cpu_s": topics,
        "cpu_s": max(milestone.cpu_seconds for milestone in found.values()),
        **peak.measures(),
    }
