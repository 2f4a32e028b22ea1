"""Collects what decides about a failover of one flow.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.monitoring.clusters.flow_specs import FlowSpecs
from sparkmirror.monitoring.views.failover.failover_evidence import FailoverFacts
from sparkmirror.monitoring.views.flows_view import flow_row
from sparkmirror.monitoring.views.picture import Picture, data_partitions
from sparkmirror.monitoring.views.rows.failover_rows import LagReading
from sparkmirror.monitoring.views.rows.group_rows import GroupRow
from sparkmirror.monitoring.views.rows.partition_rows import UnmirroredRow
from sparkmirror.monitoring.views.unmirrored_view import BLOCKED


def failover_facts(
    picture: Picture,
    specs: FlowSpecs,
    groups: Sequence[GroupRow],
    unmirrored: Sequence[UnmirroredRow],
    readings: Sequence[LagReading],
) -> FailoverFacts:
    """Of one flow."""
    row = flow_row(picture, specs)
    watch = picture.watches[specs.flow]
    problem = watch.topics.error
    has_groups = watch.groups.value is not None and not watch.groups.error
    no_groups = watch.no_groups or watch.groups.error or ""
    own = next(
        (each for each in picture.gathered.groups if each.group.prefix == specs.group.prefix), None
    )
    return FailoverFacts(
        flow=specs.flow,
        source=specs.aliases[0],
        target=specs.aliases[1],
        partitions=data_partitions(picture, specs.flow, picture.partitions.get(specs.flow, ())),
        topics=row.topics,
        blocked=[each.topic for each in unmirrored if each.verdict == BLOCKED],
        topics_problem=problem,
        groups=groups if has_groups and not watch.no_groups else None,
        no_groups=no_groups,
        heartbeat=row.heartbeat_age_seconds,
        no_heartbeat=row.unknown.get("heartbeat_age_seconds", "")
        or row.not_applicable.get("heartbeat_age_seconds", ""),
        is_heartbeat_unknown="heartbeat_age_seconds" in row.unknown,
        readings=readings,
        missing=[] if own is None else own.missing,
        since="its tasks began",
        written_per_second=row.written_records_per_second,
        latency_seconds=0.0 if row.latency is None else row.latency.p99_ms / 1000,
    )
