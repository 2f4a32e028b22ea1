"""Flows: state, throughput, lag, latency, heartbeat, and when each is caught up.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.monitoring.clusters.flow_specs import FlowSpecs
from sparkmirror.monitoring.clusters.flow_watch import FlowWatch
from sparkmirror.monitoring.gathering.rates import NOTHING_YET, TOO_SHORT, ZERO, FlowSpeed
from sparkmirror.monitoring.views.flow_sentences import flow_sentence, flow_word
from sparkmirror.monitoring.views.partition_view import (
    UNKNOWN,
    most,
    nearest_loss,
    state_counts,
    total,
    worst_first,
    worst_state,
)
from sparkmirror.monitoring.views.picture import Picture
from sparkmirror.monitoring.views.rows.connector_rows import ConnectorRow
from sparkmirror.monitoring.views.rows.flow_rows import (
    CatchUp,
    FlowLatency,
    FlowRow,
    WorstPartition,
)
from sparkmirror.monitoring.views.rows.partition_rows import PartitionRow
from sparkmirror.monitoring.views.wording.words import clock, count

# Below this a flow is live: so much is always on the way.
LIVE_SECONDS = 15.0
NO_PARTITIONS = "no topic is mirrored yet"
_SUMS = ("records_behind", "bytes_behind", "seconds_behind")


def flow_rows(picture: Picture) -> list[FlowRow]:
    """All flows, by name."""
    return [flow_row(picture, specs) for specs in picture.flows]


def flow_row(picture: Picture, specs: FlowSpecs) -> FlowRow:
    """One flow."""
    flow = specs.flow
    rows = picture.partitions.get(flow, ())
    connectors = [row for row in picture.connectors if row.flow == flow]
    source = [row for row in connectors if row.kind == "source"]
    state = _state(rows, source)
    late = sorted(rows, key=worst_first)
    worst, others = _worst(rows)
    # Without partitions nothing was measured.
    seconds = most(row.seconds_behind for row in rows) if rows else None
    rate = _rate(picture, flow, rows)
    behind = total(row.records_behind for row in rows) if rows else None
    behind_bytes = total(row.bytes_behind for row in rows) if rows else None
    left, loss_at, unknown, not_applicable = nearest_loss(rows)
    if not rows:
        not_applicable |= dict.fromkeys((*_SUMS, "seconds_until_loss", "loss_at_ms"), NO_PARTITIONS)
    latency = _latency(picture, flow)
    if latency is None:
        not_applicable["latency"] = "nothing was copied in the last 10 s"
    age, why_unknown, why_none = _heartbeat(picture.watches[flow], picture.at_ms)
    if why_unknown:
        unknown["heartbeat_age_seconds"] = why_unknown
    if why_none:
        not_applicable["heartbeat_age_seconds"] = why_none
    if worst is None:
        not_applicable["worst"] = NO_PARTITIONS
    if rows:
        sums = dict(zip(_SUMS, (behind, behind_bytes, seconds), strict=True))
        unknown |= {name: _why(rows, name) for name, value in sums.items() if value is None}
    if others is None:
        not_applicable["others_seconds_behind"] = "there is no other partition"
    for name, value in _named(rate).items():
        if value is None:
            unknown[name] = TOO_SHORT
    seen = picture.watches[flow].topics.value
    unmirrored = None if seen is None else len(seen.source) - len(seen.wanted) + len(seen.hidden)
    if unmirrored is None:
        unknown["unmirrored"] = picture.watches[flow].topics.error
    catch_up = _catch_up(picture, flow, state, behind, rows)
    tasks = [task for row in connectors for task in row.tasks]
    return FlowRow(
        flow=flow,
        source=specs.aliases[0],
        target=specs.aliases[1],
        prefix=specs.group.prefix,
        connectors=[row.name for row in connectors],
        state=state,
        word=flow_word(state, rows, connectors),
        sentence=flow_sentence(state, late, connectors, catch_up, picture.at_ms),
        topics=len(picture.topics.get(flow, ())),
        unmirrored=unmirrored,
        partitions=state_counts(rows),
        tasks=len(tasks),
        tasks_running=sum(task.state == "RUNNING" for task in tasks),
        bytes_per_second=rate.bytes,
        records_per_second=rate.records,
        written_bytes_per_second=rate.written_bytes,
        written_records_per_second=rate.written_records,
        records_behind=behind,
        bytes_behind=behind_bytes,
        seconds_behind=seconds,
        worst=worst,
        others_seconds_behind=others,
        seconds_until_loss=left,
        loss_at_ms=loss_at,
        latency=latency,
        heartbeat_age_seconds=age,
        catch_up=catch_up,
        lost_records=sum(row.lost_records for row in rows),
        skipped_records=sum(row.skipped_records for row in rows),
        unknown=unknown,
        not_applicable=not_applicable,
    )


def _named(rate: FlowSpeed) -> dict[str, float | None]:
    return {
        "bytes_per_second": rate.bytes,
        "records_per_second": rate.records,
        "written_bytes_per_second": rate.written_bytes,
        "written_records_per_second": rate.written_records,
    }


def _why(rows: Sequence[PartitionRow], name: str) -> str:
    lacking = [row for row in rows if getattr(row, name) is None]
    first = lacking[0]
    more = f", and of {len(lacking) - 1} more" if len(lacking) > 1 else ""
    why = first.unknown.get(name, "not known yet")
    return f"not known of `{first.topic}-{first.partition}`{more}: {why}"


def _state(rows: Sequence[PartitionRow], source: Sequence[ConnectorRow]) -> str:
    states = [row.state for row in source]
    states += [task.state for row in source for task in row.tasks]
    if "FAILED" in states:
        return "failed"
    if rows:
        return worst_state(rows)
    if any(row.state in ("PAUSED", "STOPPED") for row in source):
        return "paused"
    return "idle" if any(row.state == "RUNNING" for row in source) else UNKNOWN


def _worst(rows: Sequence[PartitionRow]) -> tuple[WorstPartition | None, float | None]:
    """The partition with the largest lag that is known, and the lag of all others."""
    known = sorted(
        (row for row in rows if row.seconds_behind is not None),
        key=lambda row: (-(row.seconds_behind or 0.0), row.topic, row.partition),
    )
    if not known:
        return None, None
    first = known[0]
    worst = WorstPartition(
        first.flow, first.topic, first.partition, first.seconds_behind or 0.0, first.records_behind
    )
    return worst, known[1].seconds_behind if len(known) > 1 else None


def _rate(picture: Picture, flow: str, rows: Sequence[PartitionRow]) -> FlowSpeed:
    if not rows:
        return ZERO
    found = ZERO
    for topic in {row.topic for row in rows if row.state != UNKNOWN}:
        found = found.plus(picture.rates.topics.get((flow, topic), NOTHING_YET))
    return found


def _latency(picture: Picture, flow: str) -> FlowLatency | None:
    found = picture.rates.latency.get(flow)
    if found is None:
        return None
    slowest = max(picture.latency_max_ms.get(flow, 0.0), found.p50)
    # The largest that was measured bounds what is read off buckets.
    return FlowLatency(
        round(min(found.p50, slowest), 1), round(min(found.p99, slowest), 1), round(slowest, 1)
    )


def _heartbeat(watch: FlowWatch, now_ms: int) -> tuple[float | None, str, str]:
    """Age of the newest heartbeat, else why it is not known, else why there is none."""
    if watch.no_heartbeat:
        return None, "", watch.no_heartbeat
    known = watch.heartbeat
    if known.value is None or known.value < 0:
        return None, known.error or "no heartbeat has arrived yet", ""
    if known.error:
        return None, known.error, ""
    return round(max(0, now_ms - known.value) / 1000, 3), "", ""


def _catch_up(
    picture: Picture,
    flow: str,
    state: str,
    behind: int | None,
    rows: Sequence[PartitionRow],
) -> CatchUp:
    """An estimate only after the backlog has fallen for 10 s."""
    change = picture.rates.change.get(flow)
    if behind is None:
        text = "the backlog is not known" if rows else NO_PARTITIONS
        return CatchUp(UNKNOWN, text, change_per_second=change)
    late = [row for row in rows if (row.seconds_behind or 0.0) > LIVE_SECONDS]
    if state in ("live", "idle") and not late:
        since = picture.caught_up_ms.get(flow)
        text = "caught up" if since is None else f"since {clock(since, picture.at_ms)}"
        return CatchUp("done", text, since_ms=since, change_per_second=change)
    if state == "stuck":
        return CatchUp("waiting", "for a cluster", change_per_second=change)
    if change is None:
        return CatchUp(UNKNOWN, TOO_SHORT)
    if change < 0 and state not in ("failed", "paused"):
        seconds = behind / -change
        at = picture.at_ms + round(seconds * 1000)
        text = f"at about {clock(at, picture.at_ms)}"
        return CatchUp("about", text, round(seconds, 1), at, None, change)
    text = f"grows by {count(change)} records/s" if change > 0 else "the backlog does not fall"
    return CatchUp("not by itself", text, change_per_second=change)
