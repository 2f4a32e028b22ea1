"""The views of a worker: what each REST endpoint answers, for all groups of this process.

Runs on: worker, on threads of the REST API.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sparkmirror.monitoring.gathering.history import RANGES
from sparkmirror.monitoring.views.clusters_view import cluster_rows
from sparkmirror.monitoring.views.connectors_view import setting_rows
from sparkmirror.monitoring.views.events_view import select_events
from sparkmirror.monitoring.views.failover.failover_facts import failover_facts
from sparkmirror.monitoring.views.failover.failover_view import (
    failover_brief,
    failover_view,
)
from sparkmirror.monitoring.views.flows_view import flow_row, flow_rows
from sparkmirror.monitoring.views.groups_view import (
    find_group,
    group_partitions,
    select_groups_view,
)
from sparkmirror.monitoring.views.notes import note_rows
from sparkmirror.monitoring.views.partition_view import worst_first
from sparkmirror.monitoring.views.picture import Picture
from sparkmirror.monitoring.views.problems_view import problem_rows, verdict
from sparkmirror.monitoring.views.rows.common import Requester, as_json
from sparkmirror.monitoring.views.rows.flow_rows import Gap, Mark
from sparkmirror.monitoring.views.topics_view import select_partitions, select_topics
from sparkmirror.monitoring.views.unmirrored_view import select_unmirrored
from sparkmirror.monitoring.views.view_base import (
    GROUPS_WAIT_SECONDS,
    LOOK_SECONDS,
    READINGS_WAIT_SECONDS,
    Answer,
    ViewBase,
)
from sparkmirror.monitoring.views.view_parts import (
    MARKED,
)
from sparkmirror.monitoring.views.view_parts import (
    find_flow as _flow,
)
from sparkmirror.monitoring.views.view_parts import (
    knows_topics as _knows_topics,
)
from sparkmirror.monitoring.views.view_parts import (
    lateness as _lateness,
)
from sparkmirror.monitoring.views.view_parts import (
    paged as _paged,
)
from sparkmirror.monitoring.views.view_parts import (
    sums as _sums,
)
from sparkmirror.monitoring.views.view_parts import (
    versions as _versions,
)
from sparkmirror.monitoring.views.wording.paging import NotThere, Query, choice

SLOWEST, LAST_EVENTS, FLOW_EVENTS = 10, 5, 10
MOST_REQUESTERS = 100


class Views(ViewBase):
    """`start` once, `stop` at the end; every method may be called by any thread in between.

    Raises NotThere for what does not exist, and BadQuery for parameters that cannot be used.
    """

    # -- views -------------------------------------------------------------------------------------

    def overview(self, requester: Requester) -> Answer:
        """Is everything all right? Streams and pages of one second share the answer."""
        picture = self._watched()
        known = self._overviews.get(requester)
        if known is not None and known[0] is picture:
            return known[1]
        if len(self._overviews) > MOST_REQUESTERS:
            self._overviews.clear()
        found = self._make_overview(picture, requester)
        self._overviews[requester] = picture, found
        return found

    def _make_overview(self, picture: Picture, requester: Requester) -> Answer:
        flows = flow_rows(picture)
        problems = problem_rows(picture)
        groups = {specs.flow: self._groups(picture, specs.flow) for specs in picture.flows}
        unmirrored = {specs.flow: self._not_mirrored(picture, specs) for specs in picture.flows}
        worst = max((row.worst for row in flows if row.worst), key=_lateness, default=None)
        sums, unknown = _sums(flows)
        briefs = [
            failover_brief(
                failover_view(
                    failover_facts(
                        picture,
                        specs,
                        groups[specs.flow],
                        unmirrored[specs.flow],
                        self._last_readings(specs.flow),
                    )
                )
            )
            for specs in picture.flows
        ]
        return self._answer(
            picture,
            requester,
            {
                "verdict": verdict(picture, flows, problems),
                "problems": problems,
                "notes": note_rows(picture, groups, unmirrored),
                "worst": worst,
                **sums,
                "unknown": unknown,
                "failover": briefs,
                "clusters": cluster_rows(picture),
                "flows": flows,
                "events": picture.events[:LAST_EVENTS],
                "sparks": self._sparks,
                "versions": _versions(picture),
            },
        )

    def flows(self, requester: Requester) -> Answer:
        """All flows."""
        picture = self._watched()
        return self._answer(picture, requester, {"flows": flow_rows(picture)})

    def flow(self, requester: Requester, name: str) -> Answer:
        """One flow, its slowest partitions and its last events."""
        picture = self._watched()
        specs = _flow(picture, name)
        rows = sorted(picture.partitions.get(name, ()), key=worst_first)
        events = [row for row in picture.events if row.flow in ("", name)]
        return self._answer(
            picture,
            requester,
            {
                "flow": flow_row(picture, specs),
                "slowest": rows[:SLOWEST],
                "events": events[:FLOW_EVENTS],
            },
        )

    def history(self, requester: Requester, name: str, length: str) -> Answer:
        """Series of one flow, and what happened meanwhile."""
        picture = self._watched()
        _flow(picture, name)
        chosen = choice(length or "1h", tuple(RANGES), "range")
        found = self._history.series(name, chosen, picture.at_ms)
        first = found.times_ms[0] if found.times_ms else 0
        marks = [
            Mark(row.time_ms, row.text, row.id)
            for row in reversed(picture.events)
            if row.time_ms >= first and row.flow in ("", name) and row.kind in MARKED
        ]
        return self._answer(
            picture,
            requester,
            {
                "flow": name,
                "range": chosen,
                "step_seconds": found.step_seconds,
                "times_ms": found.times_ms,
                "series": found.values,
                "gaps": [Gap(*gap) for gap in found.gaps],
                "marks": marks,
            },
        )

    def topics(self, requester: Requester, query: Query) -> Answer:
        """Mirrored topics."""
        picture = self._watched()
        if query.flow:
            _flow(picture, query.flow)
        rows = [row for each in picture.topics.values() for row in each]
        return self._answer(picture, requester, {**_paged(select_topics(rows, query))})

    def lag(self, requester: Requester, query: Query) -> Answer:
        """Partitions of all topics, the furthest behind first."""
        picture = self._watched()
        if query.flow:
            _flow(picture, query.flow)
        rows = [row for each in picture.partitions.values() for row in each]
        return self._answer(picture, requester, {**_paged(select_partitions(rows, query))})

    def partitions(self, requester: Requester, flow: str, topic: str) -> Answer:
        """The partitions of one topic, the worst first."""
        picture = self._watched()
        _flow(picture, flow)
        row = next((each for each in picture.topics.get(flow, ()) if each.topic == topic), None)
        if row is None:
            raise NotThere(
                f"'{topic}' is not mirrored in {flow}; /sparkmirror/unmirrored says why not"
            )
        rows = [each for each in picture.partitions[flow] if each.topic == topic]
        return self._answer(
            picture, requester, {"flow": flow, "topic": row, "rows": sorted(rows, key=worst_first)}
        )

    def unmirrored(self, requester: Requester, query: Query) -> Answer:
        """Topics that are not mirrored, and why."""
        picture = self._watched()
        if query.flow:
            _flow(picture, query.flow)
        chosen = [specs for specs in picture.flows if query.flow in ("", specs.flow)]
        for specs in chosen:
            picture.watches[specs.flow].wait_for(_knows_topics, GROUPS_WAIT_SECONDS)
        rows = [row for specs in chosen for row in self._not_mirrored(picture, specs)]
        missing = [
            f"topics of {specs.flow}: {picture.watches[specs.flow].topics.error}"
            for specs in chosen
            if picture.watches[specs.flow].topics.error
        ]
        return self._answer(picture, requester, {**_paged(select_unmirrored(rows, query))}, missing)

    def groups(self, requester: Requester, query: Query) -> Answer:
        """Consumer groups."""
        picture = self._watched()
        if query.flow:
            _flow(picture, query.flow)
        chosen = [specs for specs in picture.flows if query.flow in ("", specs.flow)]
        missing = self._wait_for_groups(picture, chosen)
        rows = [row for specs in chosen for row in self._groups(picture, specs.flow)]
        rereads = [row.reread_records for row in rows if row.newest is not None]
        ages = [
            row.checkpoint_age_seconds for row in rows if row.checkpoint_age_seconds is not None
        ]
        unknown = {}
        if None in rereads:
            unknown["reread_records"] = "not known of all groups"
        if not ages:
            unknown["oldest_checkpoint_seconds"] = "no group has a checkpoint"
        return self._answer(
            picture,
            requester,
            {
                **_paged(select_groups_view(rows, query)),
                "reread_records": None if None in rereads else sum(each or 0 for each in rereads),
                "oldest_checkpoint_seconds": max(ages, default=None),
                "unknown": unknown,
            },
            missing,
        )

    def group(self, requester: Requester, flow: str, name: str) -> Answer:
        """The partitions of one group."""
        picture = self._watched()
        specs = _flow(picture, flow)
        missing = self._wait_for_groups(picture, [specs])
        row = next((each for each in self._groups(picture, flow) if each.group == name), None)
        seen = find_group(picture.watches[flow], name)
        if row is None or seen is None:
            why = f": {'; '.join(missing)}" if missing else ""
            raise NotThere(f"{flow} follows no group '{name}'{why}")
        return self._answer(
            picture, requester, {"group": row, "rows": group_partitions(seen)}, missing
        )

    def connectors(self, requester: Requester, flow: str) -> Answer:
        """All connectors with their tasks."""
        picture = self._watched()
        if flow:
            _flow(picture, flow)
        rows = [row for row in picture.connectors if flow in ("", row.flow)]
        return self._answer(picture, requester, {"rows": rows})

    def connector(self, requester: Requester, prefix: str, name: str) -> Answer:
        """One connector with its settings."""
        picture = self._watched()
        found = [row for row in picture.connectors if row.name == name]
        row = next((each for each in found if each.prefix == prefix), None)
        if row is None:
            raise NotThere(f"there is no connector '{name}'{f' at {prefix}' if prefix else ''}")
        group = next(each for each in self._monitored() if each.prefix == prefix)
        props = group.cluster.configs.snapshot().connectors.get(name, {})
        return self._answer(picture, requester, {"connector": row, "settings": setting_rows(props)})

    def events(
        self, requester: Requester, query: Query, kinds: Sequence[str], since: str
    ) -> Answer:
        """What happened, newest first."""
        picture = self._watched()
        rows = select_events(picture.events, query, kinds, since)
        newest = picture.events[0].id if picture.events else ""
        return self._answer(
            picture, requester, {"rows": rows, "total": len(picture.events), "newest_id": newest}
        )

    def failover(self, requester: Requester, source: str, target: str) -> Answer:
        """Could one switch now, and what would it cost? Waits for a second reading."""
        name = f"{source}->{target}"
        picture = self._watched()
        specs = _flow(picture, name)
        self._wait_for_groups(picture, [specs])
        picture.watches[name].wait_for(_knows_topics, GROUPS_WAIT_SECONDS)
        deadline = time.monotonic() + READINGS_WAIT_SECONDS
        while len(self._last_readings(name)) < 2 and time.monotonic() < deadline:
            if self._stopping.wait(LOOK_SECONDS):
                break
            picture = self._watched()
        facts = failover_facts(
            picture,
            specs,
            self._groups(picture, name),
            self._not_mirrored(picture, specs),
            self._last_readings(name),
        )
        found = as_json(failover_view(facts))
        assert isinstance(found, dict)
        return self._answer(picture, requester, {**found})
