"""Clusters: brokers that answer, of all that were seen.

Runs on: worker. Pure.
"""

from __future__ import annotations

from sparkmirror.monitoring.clusters.flow_watch import BrokersSeen
from sparkmirror.monitoring.clusters.known import Known
from sparkmirror.monitoring.views.picture import Picture
from sparkmirror.monitoring.views.rows.common import ClusterRow

_BROKERS = ("brokers_known", "brokers_reachable")


def cluster_rows(picture: Picture) -> list[ClusterRow]:
    """Every cluster once; of two flows that see one differently, what the worse one sees."""
    found: dict[str, ClusterRow] = {}
    for specs in picture.flows:
        watch = picture.watches[specs.flow]
        for alias, known in zip(specs.aliases, (watch.source, watch.target), strict=True):
            row = _row(alias, known)
            other = found.get(alias)
            if other is None or _rank(row) < _rank(other):
                found[alias] = row
    return [found[alias] for alias in sorted(found)]


def _rank(row: ClusterRow) -> int:
    return ("unreachable", "partly", "ok", "unknown").index(row.state)


def _row(alias: str, known: Known[BrokersSeen]) -> ClusterRow:
    seen = known.value
    if known.error or seen is None:
        state = "unreachable" if known.is_asked else "unknown"
        unknown = dict.fromkeys(_BROKERS, known.error)
        return ClusterRow(alias, state, None, None, known.error, known.since_ms, unknown)
    gone = sorted(seen.ever - seen.now)
    if gone:
        listed = ", ".join(map(str, gone))
        reason = f"broker {listed} has left" if len(gone) == 1 else f"brokers {listed} have left"
        return ClusterRow(alias, "partly", len(seen.ever), len(seen.now), reason)
    return ClusterRow(alias, "ok", len(seen.ever), len(seen.now))
