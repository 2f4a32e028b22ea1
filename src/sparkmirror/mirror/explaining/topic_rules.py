"""Why a topic of the source is mirrored, or not.

Runs on: any thread. Pure.
Mirrors: the order of MirrorSourceConnector.shouldReplicateTopic and DefaultTopicFilter (4.4), with
the functions that the mirror itself calls: filter, policy, `cycle_alias`, `plan_topics`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config.keys.classes import DEFAULT_POLICY
from sparkmirror.config.keys.connector_keys import COMMON_KEYS, SOURCE_KEYS, TOPIC_FILTER_KEYS
from sparkmirror.config.mirror_configs import SourceConfig
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
from sparkmirror.mirror.filters import DefaultTopicFilter, make_topic_filter
from sparkmirror.mirror.policy import ReplicationPolicy, flow_policy, make_policy
from sparkmirror.mirror.topics import cycle_alias, is_cycle, plan_topics, remote_name_problem

ENABLED = COMMON_KEYS["enabled"].name
POLICY = COMMON_KEYS["replication.policy.class"].name
SEPARATOR = COMMON_KEYS["replication.policy.separator"].name
TOPICS, TOPICS_EXCLUDE = (key.name for key in TOPIC_FILTER_KEYS)
TOPIC_FILTER = SOURCE_KEYS["topic.filter.class"].name
HEARTBEATS = SOURCE_KEYS["heartbeats.replication.enabled"].name
INTERNAL, CYCLE, SOURCE, TARGET = "internal", "cycle", "source", "target"
SEPARATORS = ("_", "-", "__", "--")
RENAMES = (
    "this renames all remote topics of the flow: they are created under the new names and copied "
    "from the beginning"
)
PASSES, STOPS, UNKNOWN = RuleResult.PASSES, RuleResult.STOPS, RuleResult.UNKNOWN


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What the clusters say about a topic; None: they were not asked, 0: there is no such topic.

    `problem` is why the topic has no place on the target. `same_remote`: another topic of the
    source that has the same remote name.
    """

    source_partitions: int | None = None
    target_partitions: int | None = None
    problem: str = ""
    same_remote: str = ""


class TopicExplainer:
    """Explains topics of one source connector; any thread may use it."""

    def __init__(self, config: SourceConfig, spelling: Spelling | None = None) -> None:
        self._config = config
        self._flow = config.flow
        self._spelling = spelling or Spelling()
        self._filter = make_topic_filter(config)
        self._policy = flow_policy(config)

    def explain(self, topic: str, facts: TopicFacts | None = None) -> Explanation:
        """Every rule for `topic`, in order."""
        checks = list(self._checks(topic, facts or TopicFacts()))
        stop = next((check for check in checks if check.result is STOPS), None)
        change = self._change(topic, stop.rule) if stop else None
        return Explanation(
            "topic",
            topic,
            self._flow,
            tuple(until_stopped(checks)),
            self._summary(topic, stop, facts or TopicFacts()),
            self._remote(topic),
            also_stopped(checks, change),
        )

    def _checks(self, topic: str, facts: TopicFacts) -> Iterator[RuleCheck]:
        yield self._enabled()
        yield from self._filtered(topic)
        yield self._heartbeats(topic)
        yield self._internal(topic)
        yield self._cycle(topic)
        yield self._named(topic, facts)
        yield self._on_source(topic, facts)
        yield self._on_target(topic, facts)

    def _remote(self, topic: str) -> str:
        return self._policy.format_remote_topic(self._flow.source, topic)

    def _summary(self, topic: str, stop: RuleCheck | None, facts: TopicFacts) -> str:
        source, target = self._flow
        if stop is not None:
            absent = facts.source_partitions == 0 and stop.rule != SOURCE
            more = f"; '{source}' shows no such topic either" if absent else ""
            return f"'{topic}' is not mirrored from '{source}' to '{target}': {stop.text}{more}"
        verb = "would be" if facts.source_partitions is None else "is"
        return f"'{topic}' of '{source}' {verb} mirrored to '{self._remote(topic)}' of '{target}'"

    # -- the rules ---------------------------------------------------------------------------------

    def _enabled(self) -> RuleCheck:
        is_on = self._config.enabled
        return RuleCheck(
            ENABLED,
            "does the flow copy?",
            PASSES if is_on else STOPS,
            f"{self._spelling.key(ENABLED)}={str(is_on).lower()}",
            "the flow copies" if is_on else f"the flow {self._flow} is switched off",
        )

    def _filtered(self, topic: str) -> Iterator[RuleCheck]:
        own = self._filter
        # A subclass may decide in other ways.
        if type(own) is not DefaultTopicFilter:
            name = self._config.topic_filter_class
            accepts = own.should_replicate_topic(topic)
            text = f"{name} {'accepts' if accepts else 'does not accept'} it"
            value = f"{self._spelling.key(TOPIC_FILTER)}={name}"
            yield self._or_heartbeats(
                topic,
                RuleCheck(
                    TOPIC_FILTER,
                    "does the topic filter accept it?",
                    PASSES if accepts else STOPS,
                    value,
                    text,
                ),
            )
            return
        yield self._or_heartbeats(topic, self._included(own, topic))
        yield self._or_heartbeats(topic, self._excluded(own, topic))

    def _included(self, own: DefaultTopicFilter, topic: str) -> RuleCheck:
        patterns, key = self._config.topics, self._spelling.key(TOPICS)
        value = f"{key}={listed(patterns)}"
        asks = "do the expressions of `topics` match it?"
        if own.includes(topic):
            found = listed(matching(patterns, topic))
            return RuleCheck(TOPICS, asks, PASSES, value, f"{found or key} matches it")
        text = f"no expression of {key} matches it" if patterns else f"{key} is empty"
        return RuleCheck(TOPICS, asks, STOPS, value, text)

    def _excluded(self, own: DefaultTopicFilter, topic: str) -> RuleCheck:
        patterns, key = self._config.topics_exclude, self._spelling.key(TOPICS_EXCLUDE)
        value = f"{key}={listed(patterns)}"
        asks = "does no expression of `topics.exclude` match it?"
        if not own.excludes(topic):
            return RuleCheck(TOPICS_EXCLUDE, asks, PASSES, value, "none matches it")
        found = listed(matching(patterns, topic))
        text = f"{found} of {key} matches it" if found else f"{key} matches it"
        return RuleCheck(TOPICS_EXCLUDE, asks, STOPS, value, text)

    def _or_heartbeats(self, topic: str, check: RuleCheck) -> RuleCheck:
        """Heartbeats need no filter to accept them, unless they are switched off."""
        if check.result is STOPS and self._is_exempt(topic):
            text = f"{check.text}, but heartbeats are mirrored all the same"
            return check._replace(result=PASSES, text=text)
        return check

    def _is_exempt(self, topic: str) -> bool:
        is_on = self._config.heartbeats_replication_enabled
        return is_on and self._policy.is_heartbeats_topic(topic)

    def _heartbeats(self, topic: str) -> RuleCheck:
        is_on = self._config.heartbeats_replication_enabled
        if not self._policy.is_heartbeats_topic(topic):
            text = "it is no heartbeats topic, so the topic filter decides"
        elif is_on:
            text = "it is a heartbeats topic, which needs no topic filter"
        else:
            text = "it is a heartbeats topic, treated like any other"
        value = f"{self._spelling.key(HEARTBEATS)}={str(is_on).lower()}"
        return RuleCheck(HEARTBEATS, "is it a heartbeats topic?", PASSES, value, text)

    def _internal(self, topic: str) -> RuleCheck:
        asks = "is it no internal topic of Kafka or MirrorMaker 2?"
        if not self._policy.is_internal_topic(topic):
            return RuleCheck(INTERNAL, asks, PASSES, topic, "it is no internal topic")
        if self._policy.is_mm2_internal_topic(topic):
            text = "it is an internal topic of MirrorMaker 2, which is never mirrored"
        else:
            text = "names that begin with `__` or `.` are internal, which is never mirrored"
        return RuleCheck(INTERNAL, asks, STOPS, topic, text)

    def _cycle(self, topic: str) -> RuleCheck:
        asks = "has it not been on one of the two clusters before?"
        alias = cycle_alias(topic, self._policy, self._flow.source, self._flow.target)
        value = f"aliases {self._flow.source}, {self._flow.target}"
        if alias is None:
            return RuleCheck(CYCLE, asks, PASSES, value, "its name names neither cluster")
        text = f"its name says that it is a copy from '{alias}', so that copying it makes a circle"
        return RuleCheck(CYCLE, asks, STOPS, value, text)

    def _named(self, topic: str, facts: TopicFacts) -> RuleCheck:
        asks = "can it have its name on the target?"
        remote = self._remote(topic)
        problem = remote_name_problem(topic, remote, self._flow.source, facts.same_remote)
        if problem:
            return RuleCheck(POLICY, asks, STOPS, remote, problem)
        policy = self._config.policy_class.rpartition(".")[2]
        text = f"{policy} calls it '{remote}' on '{self._flow.target}'"
        return RuleCheck(POLICY, asks, PASSES, remote, text)

    def _on_source(self, topic: str, facts: TopicFacts) -> RuleCheck:
        asks = "does the source show such a topic?"
        count, source = facts.source_partitions, self._flow.source
        if count is None:
            return RuleCheck(SOURCE, asks, UNKNOWN, "", f"'{source}' was not asked")
        if count == 0:
            text = f"'{source}' shows no topic '{topic}': it is not there, or DESCRIBE is denied"
            return RuleCheck(SOURCE, asks, STOPS, "", text)
        value = plural(count, "partition")
        return RuleCheck(SOURCE, asks, PASSES, value, f"'{topic}' of '{source}' has {value}")

    def _on_target(self, topic: str, facts: TopicFacts) -> RuleCheck:
        asks = "does it have its place on the target?"
        wanted, count = facts.source_partitions, facts.target_partitions
        remote, target = self._remote(topic), self._flow.target
        if facts.problem:
            return RuleCheck(TARGET, asks, STOPS, remote, facts.problem)
        if count is None:
            return RuleCheck(TARGET, asks, UNKNOWN, remote, f"'{target}' was not asked")
        there = {remote: count} if count else {}
        plan = plan_topics({topic: wanted or count}, there, self._policy, self._flow.source)
        if plan.create:
            text = f"'{remote}' is not there yet: the next refresh creates it"
        elif plan.grow:
            text = f"'{remote}' has {plural(count, 'partition')}: the next refresh adds the others"
        else:
            extra = f"; {plan.warnings[0]}" if plan.warnings else ""
            text = f"'{remote}' has {plural(count, 'partition')}{extra}"
        return RuleCheck(TARGET, asks, PASSES, remote, text)

    # -- what to change ----------------------------------------------------------------------------

    def _change(self, topic: str, rule: str) -> Change | None:
        config, write = self._config, self._spelling.change
        if rule == ENABLED:
            return write(ENABLED, "true")
        if rule == TOPIC_FILTER:
            note = "the class decides: change it, or name another"
            return write(TOPIC_FILTER, config.topic_filter_class, note)
        if rule == CYCLE:
            return self._other_separator(topic)
        return self._other_list(topic, rule)

    def _other_list(self, topic: str, rule: str) -> Change | None:
        excluded, write = self._config.topics_exclude, self._spelling.change
        if rule == TOPICS:
            return write(TOPICS, with_name(self._config.topics, topic))
        if rule == TOPICS_EXCLUDE:
            dropped = listed(matching(excluded, topic)) or "the list"
            note = f"mirrors all that {dropped} excluded"
            return write(TOPICS_EXCLUDE, without_matching(excluded, topic), note)
        if rule == POLICY:
            return write(TOPICS_EXCLUDE, with_name(excluded, topic), "silences this")
        return None

    def _other_separator(self, topic: str) -> Change | None:
        """Only the separator makes a name look like a copy."""
        if self._config.policy_class != DEFAULT_POLICY:
            return None
        for separator in SEPARATORS:
            policy: ReplicationPolicy = make_policy(
                self._config.policy_class,
                self._flow.source,
                separator,
                self._config.internal_separator_enabled,
            )
            if not is_cycle(topic, policy, self._flow.source, self._flow.target):
                note = f"only if the topic is no copy; {RENAMES}"
                return self._spelling.change(SEPARATOR, separator, note)
        return None
