"""Writes translated offsets to consumer groups on the target: `sync.group.offsets.enabled`.

Runs on: worker, on the checkpoint task's thread. The rules are in `mirror.group_offsets` (KIP-545):
a group in use on the target is not touched, and no offset goes back. The reason why a group was not
written is logged once, and again when it changes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.connect.checkpoint.group_plans import TargetGroups, is_in_use, plan_on_target
from sparkmirror.connect.naming import some_names
from sparkmirror.errors import DeniedError, KafkaError, describe_error
from sparkmirror.events import EventKind, event
from sparkmirror.mirror.group_offsets import GroupPlan, NotWritten
from sparkmirror.mirror.permissions import (
    READ,
    Feature,
    Resource,
    ResourceKind,
    consequence_without,
)
from sparkmirror.mirror.records import Checkpoint
from sparkmirror.types import FlowName, TopicPartition
from sparkmirror.wire.access import DENIALS, needing

log = logging.getLogger(__name__)

# Normal reasons, which users need not act on.
QUIET = frozenset({NotWritten.NO_CHECKPOINT, NotWritten.UNCHANGED})


Outcomes = Mapping[TopicPartition, KafkaError | None]


class SyncedGroups(TargetGroups, Protocol):
    """The part of the target's `GroupAdmin` that is used here; a round may write thousands."""

    def alter_many(
        self,
        wanted: Mapping[str, Mapping[TopicPartition, tuple[int, str]]],
        is_stopping: Callable[[], bool],
    ) -> Mapping[str, Outcomes]:
        """Commit offsets for groups without members."""


@dataclass(slots=True)
class SyncReport:
    """One round: partitions written per group, and why the other groups were not written."""

    written: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, NotWritten] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> Counter[NotWritten]:
        """How many groups were not written, by reason."""
        return Counter(self.reasons.values())


class GroupOffsetSync:
    """Writes the offsets of one flow's groups. Owned by one thread."""

    def __init__(self, flow: FlowName, target: SyncedGroups) -> None:
        self._flow = flow
        self._target = target
        # The last line that was logged for each group.
        self._logged: dict[str, str] = {}

    def run(
        self,
        groups: Collection[str],
        checkpoints: Mapping[str, Mapping[TopicPartition, Checkpoint]],
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> SyncReport:
        """One round over `groups`; those without checkpoints cost nothing.

        Never raises for a single group: its error is in the report, and the next round retries it.
        `is_stopping` ends the round between two groups, because each is a request of its own.
        """
        planned = plan_on_target(groups, checkpoints, self._target)
        plans = planned.plans
        report = SyncReport(
            errors={group: _describe(error) for group, error in planned.errors.items()}
        )
        wanted = {group: plan.write for group, plan in plans.items() if plan.write}
        self._log_reset(plans)
        for group, outcome in self._target.alter_many(wanted, is_stopping).items():
            self._note_written(group, outcome, report)
        for group, plan in plans.items():
            if not plan.write:
                self._note_kept(group, plan, report)
        self._logged = {group: text for group, text in self._logged.items() if group in plans}
        return report

    # -- one group ---------------------------------------------------------------------------------

    def _log_reset(self, plans: Mapping[str, GroupPlan]) -> None:
        for group, plan in plans.items():
            if plan.reset_by_others:
                log.warning(
                    "[%s] group '%s' has no offset any more on the target in %s: written again",
                    self._flow,
                    group,
                    some_names(plan.reset_by_others),
                    extra=event(EventKind.SYNCED, flow=self._flow, group=group),
                )

    def _note_kept(self, group: str, plan: GroupPlan, report: SyncReport) -> None:
        kept = plan.kept.values()
        notable = (why for why in (NotWritten.BEYOND_END, NotWritten.ALREADY_AHEAD) if why in kept)
        reason = plan.reason or next(notable, NotWritten.UNCHANGED)
        where = [tp for tp, why in plan.kept.items() if why is reason and why not in QUIET]
        report.reasons[group] = reason
        self._explain(group, reason, report.errors.get(group) or some_names(where))

    def _note_written(self, group: str, outcome: Outcomes, report: SyncReport) -> None:
        failed = {tp: error for tp, error in outcome.items() if error is not None}
        if any(is_in_use(error) for error in failed.values()):
            # A member joined between the check and the write.
            report.reasons[group] = NotWritten.ACTIVE
            self._explain(group, NotWritten.ACTIVE, "")
            return
        if failed:
            report.errors[group] = _describe(next(iter(failed.values())))
            text = f"{some_names(failed)} not written: {report.errors[group]}"
            self._log_once(group, text, logging.WARNING)
        else:
            self._logged.pop(group, None)
        if len(failed) < len(outcome):
            report.written[group] = len(outcome) - len(failed)

    def _explain(self, group: str, reason: NotWritten, detail: str) -> None:
        level = logging.DEBUG if reason in QUIET else logging.INFO
        if reason in (NotWritten.NOT_DESCRIBED, NotWritten.OFFSETS_UNREAD):
            level = logging.WARNING
        more = f" ({detail})" if detail else ""
        self._log_once(group, f"not written: {reason.value}{more}", level)

    def _log_once(self, group: str, text: str, level: int) -> None:
        if self._logged.get(group) != text:
            self._logged[group] = text
            log.log(level, "[%s] offsets of group '%s' on the target: %s", self._flow, group, text)


def _describe(error: KafkaError) -> str:
    """The error; after a denial, with the consequence."""
    if not isinstance(error, DeniedError):
        return str(error)
    is_group = DENIALS[error.code] is Resource.GROUP
    place = ResourceKind.GROUPS if is_group else ResourceKind.REMOTE
    return describe_error(
        needing(error, READ), consequence_without(Feature.GROUP_OFFSETS, place, READ)
    )
