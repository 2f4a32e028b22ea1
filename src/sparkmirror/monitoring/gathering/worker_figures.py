"""What one worker of a group knows of its own tasks, as it tells the other workers.

Runs on: worker. Pure. Another worker's answer is foreign JSON: what does not fit is an error with a
reason, and the figures of that worker are missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sparkmirror.errors import MirrorError
from sparkmirror.events import EventKind
from sparkmirror.foreign_json import parse_json
from sparkmirror.monitoring.event_log import Event
from sparkmirror.monitoring.lag.partition_lag import PartitionLag, PartitionState
from sparkmirror.spark.figures import Window
from sparkmirror.types import TopicPartition

# Another version of a worker may have others: a rolling upgrade shows only those in common.
_PARTITION: Final = tuple(
    each.name
    for each in dataclasses.fields(PartitionLag)
    if each.name not in ("source", "target", "age", "latency")
)
_FLOW: Final = ("flow", "connector", "records_per_second", "bytes_per_second", "latency_buckets")
_EVENT: Final = tuple(each.name for each in dataclasses.fields(Event))


class OddFigures(MirrorError):
    """Another worker's answer cannot be read. Operator action: run one version everywhere."""


@dataclass(frozen=True, slots=True)
class FlowRate:
    """What one worker copies of a flow, per second over the last 10 s; None: not known yet.

    `latency_buckets` count records acknowledged since its tasks began, see `LATENCY_BOUNDS_MS`.
    """

    flow: str
    connector: str
    records_per_second: float | None = None
    bytes_per_second: float | None = None
    latency_buckets: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """One worker. `id` is how statuses name it; `at_ms`: when it said this."""

    id: str
    url: str
    at_ms: int
    leads: bool = False
    partitions: Sequence[PartitionLag] = ()
    rates: Sequence[FlowRate] = ()
    events: Sequence[Event] = ()


def encode_figures(figures: WorkerFigures) -> dict[str, Any]:
    """For the other workers; one list per row, because there may be 10,000."""
    return {
        "id": figures.id,
        "url": figures.url,
        "at_ms": figures.at_ms,
        "leads": figures.leads,
        "partition_fields": [
            "source",
            "number",
            "target",
            "target_number",
            "slowest_ms",
            *_PARTITION,
        ],
        "partitions": [
            [
                *lag.source,
                *lag.target,
                lag.latency.most,
                *(getattr(lag, name) for name in _PARTITION),
            ]
            for lag in figures.partitions
        ],
        "rates": [[getattr(rate, name) for name in _FLOW] for rate in figures.rates],
        "event_fields": _EVENT,
        "events": [[getattr(event, name) for name in _EVENT] for event in figures.events],
    }


def decode_figures(text: bytes) -> WorkerFigures:
    """What another worker has sent. Raises OddFigures."""
    try:
        data = parse_json(text)
        names = data["partition_fields"]
        return WorkerFigures(
            id=str(data["id"]),
            url=str(data["url"]),
            at_ms=int(data["at_ms"]),
            leads=bool(data["leads"]),
            partitions=[
                _partition(dict(zip(names, row, strict=True))) for row in data["partitions"]
            ],
            rates=[FlowRate(**dict(zip(_FLOW, row, strict=True))) for row in data["rates"]],
            events=[
                _event(dict(zip(data["event_fields"], row, strict=True))) for row in data["events"]
            ],
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise OddFigures(f"its figures cannot be read: {type(error).__name__}: {error}") from error


def _partition(row: Mapping[str, Any]) -> PartitionLag:
    known = {name: row[name] for name in _PARTITION if name in row}
    known["state"] = PartitionState(row["state"])
    return PartitionLag(
        source=TopicPartition(str(row["source"]), int(row["number"])),
        target=TopicPartition(str(row["target"]), int(row["target_number"])),
        latency=Window(most=float(row.get("slowest_ms", 0.0))),
        **known,
    )


def _event(row: Mapping[str, Any]) -> Event:
    known = {name: row[name] for name in _EVENT if name in row}
    return replace(Event(**known), kind=EventKind(row["kind"]))
