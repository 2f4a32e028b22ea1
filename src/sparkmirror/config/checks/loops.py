"""Advice about two flows that would copy the same records to and fro, for ever.

Only the identity policy allows that: with prefixes a topic shows where it has been.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sparkmirror.config.findings import Findings
from sparkmirror.config.keys.classes import DEFAULT_TOPIC_FILTER, IDENTITY_POLICY
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.types import FlowName

POLICY = "replication.policy.class"
# What can be meant as it stands; a dot nearly always is.
PLAIN = re.compile(r"[\w.-]*", re.ASCII)
# What follows may repeat the character before it no times.
REPEATS = ("*", "?", "{")


def warn_of_loops(flows: Iterable[SourceConfig], findings: Findings) -> None:
    """Warn of every pair of opposite flows that keep topic names and may share a topic."""
    keeping = {flow.flow: flow for flow in flows if flow.policy_class == IDENTITY_POLICY}
    for name, there in keeping.items():
        back = keeping.get(FlowName(name.target, name.source))
        if back is not None and name < back.flow and _may_share_topics(there, back):
            findings.warn(
                f"{name} and {back.flow} both keep topic names "
                f"({POLICY}=IdentityReplicationPolicy) and may have topics in common: their "
                "records would circle for ever; give the two flows different topics, or set "
                f"{POLICY}=DefaultReplicationPolicy"
            )


def _may_share_topics(one: SourceConfig, other: SourceConfig) -> bool:
    filters = {one.topic_filter_class, other.topic_filter_class}
    if filters != {DEFAULT_TOPIC_FILTER}:
        return True
    return any(_may_meet(left, one, right, other) for left in one.topics for right in other.topics)


def _may_meet(left: str, one: SourceConfig, right: str, other: SourceConfig) -> bool:
    """Whether some topic may match both patterns; said of too many rather than too few."""
    names = [pattern for pattern in (left, right) if PLAIN.fullmatch(pattern)]
    if names:
        return any(_copies(one, name) and _copies(other, name) for name in names)
    starts = sorted((_plain_start(left), _plain_start(right)), key=len)
    excluded = left in other.topics_exclude or right in one.topics_exclude
    return starts[1].startswith(starts[0]) and not excluded


def _plain_start(pattern: str) -> str:
    """The characters that every match begins with; none if there are several alternatives."""
    if "|" in pattern:
        return ""
    start = PLAIN.match(pattern)
    found = "" if start is None else start.group()
    if pattern[len(found) :].startswith(REPEATS):
        found = found[:-1]
    # A dot may stand for any character here: what is before it is sure.
    return found.partition(".")[0]


def _copies(flow: SourceConfig, topic: str) -> bool:
    include, exclude = compile_patterns(flow.topics), compile_patterns(flow.topics_exclude)
    is_included = include is not None and include.fullmatch(topic) is not None
    return is_included and (exclude is None or exclude.fullmatch(topic) is None)
