"""Why a group's offsets are written on the target, or not.

Runs on: any thread. Pure.
Mirrors: the rules of MirrorCheckpointConnector.findConsumerGroups, then of MirrorCheckpointTask
(4.4), with the functions that the mirror itself calls: the group filter, `select_consuming`, and
the reasons of `CheckpointPlan` and `GroupPlan`. The filters come first, so that a group that is not
there yet can be explained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sparkmirror.config.keys.connector_keys import (
    CHECKPOINT_KEYS,
    COMMON_KEYS,
    SOURCE_KEYS,
    TOPIC_FILTER_KEYS,
)
from sparkmirror.config.mirror_configs import CheckpointConfig
from sparkmirror.mirror.checkpoints import NoCheckpoint
from sparkmirror.mirror.explaining.explanation import (
    Change,
    Explanation,
    RuleCheck,
    RuleResult,
    Spelling,
    also_stopped,
    listed,
    matching,
    plural,
    until_stopped,
    with_name,
    without_matching,
)
from sparkmirror.mirror.filters import (
    DefaultGroupFilter,
    describe_topic_filter,
    make_group_filter,
    make_topic_filter,
)
from sparkmirror.mirror.group_offsets import (
    GroupListing,
    GroupPlan,
    NotFollowed,
    NotWritten,
    is_consumer_group,
    select_consuming,
)
from sparkmirror.types import FlowName, TopicPartition

ENABLED = COMMON_KEYS["enabled"].name
CHECKPOINTS_ON = CHECKPOINT_KEYS["emit.checkpoints.enabled"].name
SYNCS_ON = SOURCE_KEYS["emit.offset-syncs.enabled"].name
SYNC_GROUPS = CHECKPOINT_KEYS["sync.group.offsets.enabled"].name
GROUPS = CHECKPOINT_KEYS["groups"].name
GROUPS_EXCLUDE = CHECKPOINT_KEYS["groups.exclude"].name
GROUP_FILTER = CHECKPOINT_KEYS["group.filter.class"].name
TOPICS = TOPIC_FILTER_KEYS["topics"].name
SOURCE, PROTOCOL, OFFSETS, TARGET = "source", "protocol", "offsets", "target"
CHECKPOINTS, MEMBERS = "checkpoints", "members"
PASSES, STOPS, UNKNOWN = RuleResult.PASSES, RuleResult.STOPS, RuleResult.UNKNOWN

# The offset that is there is as good as the one that would be written.
AS_GOOD = frozenset({NotWritten.UNCHANGED, NotWritten.ALREADY_AHEAD})


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What the clusters say about a group; None: they were not asked.

    `committed` are the partitions in which it has offsets on the source, `skipped` those of them
    without a checkpoint, `plan` is what group offset sync would do.
    """

    listing: GroupListing | None = None
    is_listed: bool | None = None
    committed: Collection[TopicPartition] | None = None
    skipped: Mapping[TopicPartition, NoCheckpoint] | None = None
    plan: GroupPlan | None = None


class GroupExplainer:
    """Explains groups of one checkpoint connector; any thread may use it."""

    def __init__(self, config: CheckpointConfig, spelling: Spelling | None = None) -> None:
        self._config = config
        self._flow = FlowName(config.source_alias, config.target_alias)
        self._spelling = spelling or Spelling()
        self._filter = make_group_filter(config)
        self._topic_filter = make_topic_filter(config)

    def explain(self, group: str, facts: GroupFacts | None = None) -> Explanation:
        """Every rule for `group`, in order."""
        known = facts or GroupFacts()
        checks = list(self._checks(group, known))
        stop = next((check for check in checks if check.result is STOPS), None)
        change = self._change(group, stop.rule) if stop else None
        return Explanation(
            "group",
            group,
            self._flow,
            tuple(until_stopped(checks)),
            self._summary(group, stop, checks),
            change=also_stopped(checks, change),
        )

    def _checks(self, group: str, facts: GroupFacts) -> Iterator[RuleCheck]:
        yield self._makes_checkpoints()
        yield from self._filtered(group)
        yield self._on_source(group, facts)
        yield self._protocol(facts)
        yield self._offsets(group, facts)
        yield self._checkpoints(facts)
        yield self._syncs_groups()
        yield self._members(facts)
        yield self._on_target(facts)

    def _summary(self, group: str, stop: RuleCheck | None, checks: list[RuleCheck]) -> str:
        source, target = self._flow
        if stop is None:
            is_known = all(check.result is PASSES for check in checks)
            verb = "are" if is_known else "would be"
            return f"offsets of '{group}' on '{source}' {verb} translated and written on '{target}'"
        rules = [check.rule for check in checks]
        if rules.index(stop.rule) >= rules.index(SYNC_GROUPS):
            return (
                f"'{group}' of '{source}' gets checkpoints, but its offsets are not written on "
                f"'{target}': {stop.text}"
            )
        return f"'{group}' is not mirrored from '{source}' to '{target}': {stop.text}"

    # -- the rules ---------------------------------------------------------------------------------

    def _makes_checkpoints(self) -> RuleCheck:
        flags = self._flags()
        value = ", ".join(f"{self._spelling.key(key)}={str(on).lower()}" for key, on in flags)
        off = [self._spelling.key(key) for key, is_on in flags if not is_on]
        is_on = self._config.is_on
        text = "the flow makes checkpoints" if is_on else f"{' and '.join(off)} is false"
        asks = "does the flow make checkpoints?"
        return RuleCheck(CHECKPOINTS_ON, asks, PASSES if is_on else STOPS, value, text)

    def _flags(self) -> tuple[tuple[str, bool], ...]:
        config = self._config
        return (
            (ENABLED, config.enabled),
            (CHECKPOINTS_ON, config.emit_checkpoints_enabled),
            (SYNCS_ON, config.has_syncs),
        )

    def _on_source(self, group: str, facts: GroupFacts) -> RuleCheck:
        asks = "does the source show such a group?"
        source = self._flow.source
        if facts.is_listed is None:
            return RuleCheck(SOURCE, asks, UNKNOWN, "", f"'{source}' was not asked")
        if facts.is_listed:
            return RuleCheck(SOURCE, asks, PASSES, group, f"'{source}' lists it")
        text = (
            f"'{source}' lists no consumer group '{group}': it is not there, or DESCRIBE is denied"
        )
        return RuleCheck(SOURCE, asks, STOPS, group, text)

    def _protocol(self, facts: GroupFacts) -> RuleCheck:
        asks = "is it a group of consumers?"
        listing = facts.listing
        if listing is None:
            return RuleCheck(PROTOCOL, asks, UNKNOWN, "", f"'{self._flow.source}' was not asked")
        value = f"protocol '{listing.protocol_type}', type '{listing.group_type or 'classic'}'"
        if is_consumer_group(listing):
            return RuleCheck(PROTOCOL, asks, PASSES, value, "it is a group of consumers")
        return RuleCheck(PROTOCOL, asks, STOPS, value, NotFollowed.NO_CONSUMER_GROUP.value)

    def _filtered(self, group: str) -> Iterator[RuleCheck]:
        own, config, key = self._filter, self._config, self._spelling.key
        # A subclass may decide in other ways.
        if type(own) is not DefaultGroupFilter:
            name = config.group_filter_class
            accepts = own.should_replicate_group(group)
            yield RuleCheck(
                GROUP_FILTER,
                "does the group filter accept it?",
                PASSES if accepts else STOPS,
                f"{key(GROUP_FILTER)}={name}",
                f"{name} {'accepts' if accepts else 'does not accept'} it",
            )
            return
        includes, excludes = own.includes(group), own.excludes(group)
        found = listed(matching(config.groups, group)) or key(GROUPS)
        missed = f"no expression of {key(GROUPS)} matches it"
        empty = f"{key(GROUPS)} is empty"
        yield RuleCheck(
            GROUPS,
            "do the expressions of `groups` match it?",
            PASSES if includes else STOPS,
            f"{key(GROUPS)}={listed(config.groups)}",
            f"{found} matches it" if includes else (missed if config.groups else empty),
        )
        found = listed(matching(config.groups_exclude, group))
        matches = f"{found} of {key(GROUPS_EXCLUDE)}" if found else key(GROUPS_EXCLUDE)
        yield RuleCheck(
            GROUPS_EXCLUDE,
            "does no expression of `groups.exclude` match it?",
            STOPS if excludes else PASSES,
            f"{key(GROUPS_EXCLUDE)}={listed(config.groups_exclude)}",
            f"{matches} matches it" if excludes else "none matches it",
        )

    def _offsets(self, group: str, facts: GroupFacts) -> RuleCheck:
        asks = "has it offsets in topics that the topic filter accepts?"
        value = describe_topic_filter(self._config)
        if facts.committed is None:
            return RuleCheck(OFFSETS, asks, UNKNOWN, value, f"'{self._flow.source}' was not asked")
        selection = select_consuming({group: facts.committed}, self._topic_filter)
        topics = sorted({tp.topic for tp in facts.committed})
        if not selection.groups:
            has = f"it has offsets in {listed(topics[:5])}" if topics else "it has no offset at all"
            text = f"{selection.rejected[group].value}: {has}"
            return RuleCheck(OFFSETS, asks, STOPS, value, text)
        accepted = [topic for topic in topics if self._topic_filter.should_replicate_topic(topic)]
        more = f" and {len(accepted) - 5} more" if len(accepted) > 5 else ""
        text = f"it has offsets in {listed(accepted[:5])}{more}"
        return RuleCheck(OFFSETS, asks, PASSES, value, text)

    def _checkpoints(self, facts: GroupFacts) -> RuleCheck:
        asks = "can its offsets be translated?"
        if facts.skipped is None or facts.committed is None:
            return RuleCheck(CHECKPOINTS, asks, UNKNOWN, "", "the flow was not asked")
        reasons = {
            tp: why for tp, why in facts.skipped.items() if why is not NoCheckpoint.UNCHANGED
        }
        left = len(set(facts.committed) - reasons.keys())
        value = f"{left} of {plural(len(facts.committed), 'partition')}"
        told = "; ".join(f"{tp}: {why.value}" for tp, why in sorted(reasons.items())[:3])
        if left:
            return RuleCheck(CHECKPOINTS, asks, PASSES, value, told or "all can be translated")
        return RuleCheck(CHECKPOINTS, asks, STOPS, value, told or "it has no offset")

    def _syncs_groups(self) -> RuleCheck:
        is_on = self._config.sync_group_offsets_enabled
        key = self._spelling.key(SYNC_GROUPS)
        off = f"{key} is false, MirrorMaker 2's default: only checkpoints are written"
        return RuleCheck(
            SYNC_GROUPS,
            "does the flow write offsets of groups?",
            PASSES if is_on else STOPS,
            f"{key}={str(is_on).lower()}",
            "the flow writes offsets of groups" if is_on else off,
        )

    def _members(self, facts: GroupFacts) -> RuleCheck:
        asks = "is it without members on the target?"
        target = self._flow.target
        plan = facts.plan
        if plan is None or plan.reason is NotWritten.NOT_DESCRIBED:
            return RuleCheck(MEMBERS, asks, UNKNOWN, "", f"'{target}' was not asked")
        if plan.reason is NotWritten.ACTIVE:
            text = (
                f"{NotWritten.ACTIVE.value}: brokers accept no offsets of others while it is in "
                f"use; stop its consumers on '{target}'"
            )
            return RuleCheck(MEMBERS, asks, STOPS, "active", text)
        return RuleCheck(MEMBERS, asks, PASSES, "", f"it has no members on '{target}'")

    def _on_target(self, facts: GroupFacts) -> RuleCheck:
        asks = "is an offset to be written?"
        plan, target = facts.plan, self._flow.target
        if plan is None:
            return RuleCheck(TARGET, asks, UNKNOWN, "", f"'{target}' was not asked")
        if plan.write:
            text = f"{plural(len(plan.write), 'partition')}: the next sync writes them"
            return RuleCheck(TARGET, asks, PASSES, "", text)
        if plan.reason is not None:
            return RuleCheck(TARGET, asks, STOPS, "", plan.reason.value)
        bad = {tp: why for tp, why in plan.kept.items() if why not in AS_GOOD}
        told = "; ".join(f"{tp}: {why.value}" for tp, why in sorted((bad or plan.kept).items())[:3])
        return RuleCheck(TARGET, asks, STOPS if bad else PASSES, "", told or "nothing to write")

    # -- what to change ----------------------------------------------------------------------------

    def _change(self, group: str, rule: str) -> Change | None:
        config, write = self._config, self._spelling.change
        if rule == CHECKPOINTS_ON:
            off = [key for key, is_on in self._flags() if not is_on]
            return write(off[0], "true") if off else None
        if rule == GROUPS:
            return write(GROUPS, with_name(config.groups, group))
        if rule == GROUPS_EXCLUDE:
            dropped = listed(matching(config.groups_exclude, group)) or "the list"
            left = without_matching(config.groups_exclude, group)
            return write(GROUPS_EXCLUDE, left, f"follows all groups that {dropped} excluded")
        if rule == GROUP_FILTER:
            note = "the class decides: change it, or name another"
            return write(GROUP_FILTER, config.group_filter_class, note)
        if rule == SYNC_GROUPS:
            return write(SYNC_GROUPS, "true")
        return None
