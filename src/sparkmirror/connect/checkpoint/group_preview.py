"""What the checkpoint connector would do for groups now: the same round, without any write.

Runs on: wherever `sparkmirror plan` and `explain` are called, and in the checkpoint task, which
writes what `plan_checkpoints` returns. Reads both clusters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.batches.records import Record
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.connect.checkpoint.checkpoint_places import CheckpointPlaces
from sparkmirror.connect.checkpoint.group_discovery import Committed, GroupDiscovery
from sparkmirror.connect.checkpoint.group_plans import plan_on_target
from sparkmirror.connect.checkpoint.offset_translator import make_translator
from sparkmirror.connect.checkpoint.translation_reader import READ_SECONDS, TranslationReader
from sparkmirror.connect.storage.log_reader import LogReader
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.checkpoints import (
    CheckpointRules,
    CheckpointStore,
    CommittedOffset,
    NoCheckpoint,
    TargetEnds,
    Translate,
)
from sparkmirror.mirror.filters import make_topic_filter
from sparkmirror.mirror.group_offsets import GroupPlan
from sparkmirror.mirror.policy import flow_policy
from sparkmirror.mirror.records import Checkpoint, RecordError, UnsupportedRecordError
from sparkmirror.types import FlowName, TopicPartition
from sparkmirror.wire.admin.group_admin import GroupAdmin


class CheckpointRound(NamedTuple):
    """The checkpoints of one round, and by group why the other partitions have none."""

    emit: list[Checkpoint]
    skipped: dict[str, Mapping[TopicPartition, NoCheckpoint]]


def plan_checkpoints(
    rules: CheckpointRules,
    committed: Committed,
    translate: Translate,
    last_of: Callable[[str], Mapping[TopicPartition, Checkpoint]],
    places: TargetEnds,
) -> CheckpointRound:
    """Decide about every partition of every group; `last_of` has a group's last checkpoints."""
    emit: list[Checkpoint] = []
    skipped: dict[str, Mapping[TopicPartition, NoCheckpoint]] = {}
    for group, offsets in committed.items():
        plan = rules.plan(group, offsets, translate, last_of(group), places)
        emit += plan.emit
        skipped[group] = plan.skipped
    return CheckpointRound(emit, skipped)


@dataclass(frozen=True, slots=True)
class GroupPreview:
    """One group: its offsets on the source, and what would be written on the target.

    `before` are its offsets there. `error`: why it is not known.
    """

    committed: Mapping[TopicPartition, CommittedOffset]
    skipped: Mapping[TopicPartition, NoCheckpoint]
    plan: GroupPlan
    before: Mapping[TopicPartition, int | None]
    error: str = ""


def preview_groups(
    config: CheckpointConfig, source: GroupAdmin, target: GroupAdmin
) -> dict[str, GroupPreview]:
    """All groups that the flow follows.

    Raises:
        KafkaError: a cluster does not tell its groups.
    """
    flow = FlowName(config.source_alias, config.target_alias)
    policy, topic_filter = flow_policy(config), make_topic_filter(config)
    rules = CheckpointRules(policy, topic_filter, config.source_alias, config.target_alias)
    discovery = GroupDiscovery(flow, config, topic_filter)
    discovery.refresh(source)
    committed, unread = discovery.committed(source)
    store = CheckpointStore()
    is_loaded = _load(config, policy.checkpoints_topic(config.source_alias), store)
    translator = make_translator(config, policy, must_read_to_end=not is_loaded)
    try:
        TranslationReader(flow, threading.Event().wait).read(translator, committed)
        looked = CheckpointPlaces(flow, config, rules, lambda: "")
        places = looked.look(target, rules.partitions_on_target(committed))
        found = plan_checkpoints(rules, committed, translator.translate, store.of_group, places)
    finally:
        translator.close()
    for checkpoint in found.emit:
        store.add(checkpoint)
    planned = plan_on_target(discovery.names, store.by_group(), target)
    errors = {**unread, **planned.errors}
    return {
        group: GroupPreview(
            committed.get(group, {}),
            found.skipped.get(group, {}),
            plan,
            planned.offsets.get(group, {}),
            str(errors.get(group, "")),
        )
        for group, plan in planned.plans.items()
    }


def _load(config: CheckpointConfig, topic: str, store: CheckpointStore) -> bool:
    """Read the checkpoints that are there; whether that worked."""
    reader = LogReader(config.checkpoints_reader, topic)
    try:
        for record in reader.catch_up(READ_SECONDS):
            _take(record, store)
    except MirrorError:
        return False
    finally:
        reader.close()
    return True


def _take(record: Record, store: CheckpointStore) -> None:
    if record.value is None:
        return
    try:
        store.add(Checkpoint.decode(record.key or b"", record.value))
    except UnsupportedRecordError:
        raise
    except RecordError:
        return
