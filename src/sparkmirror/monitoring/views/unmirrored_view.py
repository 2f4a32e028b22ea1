"""Topics of the source that are not mirrored, and why: every rule in order, as `explain` has it.

Runs on: worker. Pure, but for what it remembers: the rules are asked again only when the topics of
the clusters, or the connector's settings, are others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sparkmirror.config.connector_spec import ConnectorSpec
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.mirror.explaining.explanation import Explanation, RuleResult, Spelling
from sparkmirror.mirror.explaining.topic_rules import TopicExplainer, TopicFacts
from sparkmirror.monitoring.clusters.flow_watch import FlowWatch
from sparkmirror.monitoring.clusters.topics_look import TopicsSeen
from sparkmirror.monitoring.views.rows.common import Remedy
from sparkmirror.monitoring.views.rows.partition_rows import RuleRow, UnmirroredRow
from sparkmirror.monitoring.views.wording.paging import Page, Query, choice, name_filter
from sparkmirror.monitoring.views.wording.remedies import remedy_of, without_remedy

BLOCKED, BY_RULE = "blocked", "by rule"
STATES: Final = ("all", BLOCKED, BY_RULE)
# So many topics with one prefix and one reason are one row.
FOLD: Final = 5
# A topic that was just created is not on the target for a moment.
_PASSED: Final[Mapping[RuleResult, bool | None]] = {
    RuleResult.PASSES: True,
    RuleResult.STOPS: False,
    RuleResult.NOT_REACHED: None,
    RuleResult.UNKNOWN: None,
}


class Unmirrored:
    """Of all flows; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[TopicsSeen, object, str, list[UnmirroredRow]]] = {}

    def rows(self, watch: FlowWatch, degraded: str) -> list[UnmirroredRow]:
        """One row per topic. `degraded`: what the source connector cannot do, as its status says.

        Empty also while the source's topics are not known.
        """
        seen, spec = watch.topics.value, watch.specs.source
        if seen is None or spec is None:
            return []
        flow = watch.specs.flow
        with self._lock:
            known = self._known.get(flow)
            if known is not None and known[0] is seen and known[1] is spec and known[2] == degraded:
                return known[3]
        rows = _explained(watch, spec, seen, degraded)
        with self._lock:
            self._known[flow] = seen, spec, degraded, rows
        return rows


def _explained(
    watch: FlowWatch, spec: ConnectorSpec[SourceConfig], seen: TopicsSeen, degraded: str
) -> list[UnmirroredRow]:
    group = watch.specs.group
    prefix = f"{watch.specs.flow}." if group.prefix else ""
    spelling = Spelling(
        prefix, group.cluster.file.connector_names.get(spec.name, {}), is_json=not prefix
    )
    explainer = TopicExplainer(spec.config, spelling)
    rows = []
    for topic, count in sorted(seen.source.items()):
        remote = seen.wanted.get(topic)
        if remote is not None and seen.target.get(remote, 0) >= 1:
            continue
        problem = _said_of(degraded, topic, remote or "") if remote is not None else ""
        facts = TopicFacts(count, seen.target.get(remote or "", 0), problem)
        rows.append(_row(watch, explainer.explain(topic, facts), remote is not None, problem))
    for topic, why in sorted(seen.hidden.items()):
        made = _row(watch, explainer.explain(topic), True, why)
        rows.append(made)
    rows.sort(key=lambda row: (row.verdict != BLOCKED, row.topic))
    return rows


def _said_of(degraded: str, topic: str, remote: str) -> str:
    """What the connector's status says of this topic; it names a few of those it cannot create."""
    parts = [part for part in degraded.split("\n") if topic in part or (remote and remote in part)]
    return parts[0] if parts else degraded


def _row(
    watch: FlowWatch, explanation: Explanation, is_wanted: bool, problem: str
) -> UnmirroredRow:
    topic = explanation.name
    stop = explanation.stopped_by
    is_blocked = is_wanted
    reason = problem or (stop.text if stop is not None else "not on the target yet")
    remedy = remedy_of(problem) if is_blocked else None
    if remedy is None and explanation.change is not None:
        note = explanation.change.note
        remedy = Remedy(f"To mirror it{f' ({note})' if note else ''}:", explanation.change.line)
    return UnmirroredRow(
        flow=watch.specs.flow,
        topic=topic,
        count=1,
        topics=[topic],
        verdict=BLOCKED if is_blocked else BY_RULE,
        reason=without_remedy(reason),
        note="",
        key=explanation.change.key if explanation.change else stop.rule if stop else "",
        rules=[
            RuleRow(
                check.rule,
                check.value,
                check.text or str(check.result.value),
                _PASSED[check.result],
            )
            for check in explanation.rules
        ],
        remedy=remedy,
        explain=f"sparkmirror explain topic {topic}",
        since_ms=None,
    )


def select_unmirrored(rows: Sequence[UnmirroredRow], query: Query) -> Page[UnmirroredRow]:
    """Those that were asked for, folded; counts are of topics. Raises BadQuery."""
    state = choice(query.state, STATES, "state")
    accepts = name_filter(query.q)
    named = [row for row in rows if not query.q or accepts(row.topic)]
    counts = {each: sum(map(_is_in(each), named)) for each in STATES}
    folded = fold([row for row in named if _is_in(state)(row)])
    limit = min(query.limit, 2000)
    part = folded[query.offset : query.offset + limit]
    return Page(part, counts, len(rows), len(folded), query.offset, limit)


def _is_in(state: str) -> Callable[[UnmirroredRow], bool]:
    return lambda row: state in ("all", row.verdict)


def fold(rows: Sequence[UnmirroredRow]) -> list[UnmirroredRow]:
    """Many topics with one prefix and one reason become one row."""
    groups: dict[tuple[str, str, str, str], list[UnmirroredRow]] = {}
    for row in rows:
        groups.setdefault((row.flow, row.verdict, _kind(row), _prefix(row.topic)), []).append(row)
    found: list[UnmirroredRow] = []
    for (_, _, _, prefix), each in groups.items():
        if len(each) < FOLD or not prefix:
            found += each
            continue
        first = each[0]
        found.append(
            UnmirroredRow(
                flow=first.flow,
                topic=f"{prefix}*",
                count=len(each),
                topics=[row.topic for row in each],
                verdict=first.verdict,
                reason=first.reason,
                note=f"{len(each)} topics; shown for `{first.topic}`",
                key=first.key,
                rules=first.rules,
                remedy=first.remedy,
                explain=first.explain,
                since_ms=first.since_ms,
            )
        )
    found.sort(key=lambda row: (row.verdict != BLOCKED, row.topic))
    return found


def _kind(row: UnmirroredRow) -> str:
    """The rule that stops it; of blocked topics the whole reason."""
    stop = next((rule.rule for rule in row.rules if rule.passed is False), "")
    return stop if row.verdict == BY_RULE else row.reason


def _prefix(topic: str) -> str:
    found = [at for at in (topic.find("."), topic.find("-")) if at > 0]
    return topic[: min(found) + 1] if found else ""
