"""What one worker of a group knows of its own tasks, as it tells the other workers.

Runs on: worker. Pure. Another worker's answer is foreign JSON: what does not fit is an error with a
reason, and the figures of that worker are missing.
"""

from __future__ import annotations

import dataclasses
import math
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
_PARTITION_TYPES: Final = {each.name: str(each.type) for each in dataclasses.fields(PartitionLag)}
_EVENT_TYPES: Final = {each.name: str(each.type) for each in dataclasses.fields(Event)}
_INT_LIMIT: Final = 2**63


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
        names, event_names = list(data["partition_fields"]), list(data["event_fields"])
        return WorkerFigures(
            id=_value(data, "id", "str"),
            url=_value(data, "url", "str"),
            at_ms=_value(data, "at_ms", "int"),
            leads=_value(data, "leads", "bool"),
            partitions=[
                _partition(dict(zip(names, row, strict=True))) for row in data["partitions"]
            ],
            rates=[_rate(dict(zip(_FLOW, row, strict=True))) for row in data["rates"]],
            events=[_event(dict(zip(event_names, row, strict=True))) for row in data["events"]],
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise OddFigures(f"its figures cannot be read: {type(error).__name__}: {error}") from error


def _partition(row: Mapping[str, Any]) -> PartitionLag:
    known = {name: _value(row, name, _PARTITION_TYPES[name]) for name in _PARTITION if name in row}
    known["state"] = PartitionState(row["state"])
    return PartitionLag(
        source=TopicPartition(_value(row, "source", "str"), _value(row, "number", "int")),
        target=TopicPartition(_value(row, "target", "str"), _value(row, "target_number", "int")),
        latency=Window(most=float(_value(row, "slowest_ms", "float"))),
        **known,
    )


def _rate(row: Mapping[str, Any]) -> FlowRate:
    buckets = [_value({"count": each}, "count", "int") for each in row["latency_buckets"]]
    return FlowRate(
        _value(row, "flow", "str"),
        _value(row, "connector", "str"),
        _value(row, "records_per_second", "float | None"),
        _value(row, "bytes_per_second", "float | None"),
        buckets,
    )


def _event(row: Mapping[str, Any]) -> Event:
    known = {name: _value(row, name, _EVENT_TYPES[name]) for name in _EVENT if name in row}
    return replace(Event(**known), kind=EventKind(row["kind"]))


def _value(row: Mapping[str, Any], name: str, wanted: str) -> Any:
    """A value of the type that a field is declared with. Raises ValueError."""
    value, kinds = row[name], wanted.replace(" ", "").split("|")
    if value is None:
        fits = "None" in kinds
    elif isinstance(value, bool):
        fits = "bool" in kinds
    elif isinstance(value, int):
        fits = ("int" in kinds or "float" in kinds) and abs(value) < _INT_LIMIT
    elif isinstance(value, float):
        fits = "float" in kinds and math.isfinite(value)
    else:
        # Enumerations are checked where they are made.
        fits = isinstance(value, str) and not {"int", "float", "bool"} & set(kinds)
    if not fits:
        raise ValueError(f"{name} is {str(value)[:100]!r}, not {wanted}")
    return value
