"""Advice about two flows that would copy the same records in a circle for ever.

This can happen only with the identity policy: prefixes show where a topic has been.
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
# An expression that is probably a plain name: a dot nearly always means a dot.
PLAIN = re.compile(r"[\w.-]*", re.ASCII)
# These allow zero repeats of the character before them.
REPEATS = ("*", "?", "{")


def warn_of_loops(flows: Iterable[SourceConfig], findings: Findings) -> None:
    """Warn of every pair of opposite flows that keep topic names and may share a topic."""
    keeping = {flow.flow: flow for flow in flows if flow.policy_class == IDENTITY_POLICY}
    for name, forth in keeping.items():
        back = keeping.get(FlowName(name.target, name.source))
        if back is not None and name < back.flow and _may_share_topics(forth, back):
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
    return any(
        _may_overlap(left, one, right, other) for left in one.topics for right in other.topics
    )


def _may_overlap(left: str, one: SourceConfig, right: str, other: SourceConfig) -> bool:
    """Whether a topic may match both patterns; warns too often rather than too rarely."""
    names = [pattern for pattern in (left, right) if PLAIN.fullmatch(pattern)]
    if names:
        return any(_copies(one, name) and _copies(other, name) for name in names)
    starts = sorted((_plain_start(left), _plain_start(right)), key=len)
    excluded = left in other.topics_exclude or right in one.topics_exclude
    return starts[1].startswith(starts[0]) and not excluded


def _plain_start(pattern: str) -> str:
    """The characters that every match begins with; empty if there are several alternatives."""
    if "|" in pattern:
        return ""
    start = PLAIN.match(pattern)
    found = "" if start is None else start.group()
    if pattern[len(found) :].startswith(REPEATS):
        found = found[:-1]
    # A dot may mean any character here: only the text before it is certain.
    return found.partition(".")[0]


def _copies(flow: SourceConfig, topic: str) -> bool:
    include, exclude = compile_patterns(flow.topics), compile_patterns(flow.topics_exclude)
    is_included = include is not None and include.fullmatch(topic) is not None
    return is_included and (exclude is None or exclude.fullmatch(topic) is None)
