"""Features of MirrorMaker 2 and Connect that this version lacks, and settings that request them.

No such setting is silently ignored. One that would change the data on the target is rejected; one
that adds something gets a warning. A version that adds a feature deletes its rows; documentation
and checks derive from the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.config.config_def import Key, KeySupport
from sparkmirror.config.findings import Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A setting, the values that request the feature, and what happens instead."""

    key: str
    asks: Callable[[Any], bool]
    reason: str
    remedy: str
    refused: bool = False


def _is(*values: object) -> Callable[[Any], bool]:
    return lambda value: value in values


@dataclass(frozen=True, slots=True)
class Absent:
    """A feature, under its name in all documents, and what there is instead."""

    name: str
    instead: str


ABSENT = (
    Absent("exactly once", "records are copied at least once; retries are idempotent"),
    Absent("transformations and predicates", "records are copied unchanged"),
    Absent(
        "metrics over JMX",
        "`/metrics` in Prometheus's format, under the names that Strimzi's rules give those of "
        "JMX; OpenTelemetry ([metrics.md](metrics.md))",
    ),
    Absent("standalone Connect workers", "`sparkmirror worker` with a distributed worker's file"),
    Absent(
        "Java plugins",
        "replication policies, filters and forwarding admins are Python classes; the config "
        "providers for files, directories and the environment, and basic authentication of the "
        "REST API, are built in",
    ),
    Absent("connectors other than MirrorMaker 2's three", "Kafka Connect"),
)

NOT_YET = (
    Lacking(
        key="exactly.once.source.support",
        asks=_is("enabled"),
        reason="exactly once is not in this version yet; records are copied at least once",
        remedy="set it to disabled",
        refused=True,
    ),
    Lacking(
        key="exactly.once.source.support",
        asks=_is("preparing"),
        reason="exactly once is not in this version yet, so there is nothing to prepare; records "
        "are copied at least once",
        remedy="set it to disabled to acknowledge this",
    ),
    Lacking(
        key="exactly.once.support",
        asks=_is("required"),
        reason="exactly once is not in this version yet; records are copied at least once",
        remedy="set it to requested",
        refused=True,
    ),
    Lacking(
        key="transforms",
        asks=bool,
        reason="transformations are not in this version yet; records are copied unchanged",
        remedy="remove it",
        refused=True,
    ),
)


def check_not_yet(values: Mapping[str, Any], findings: Findings) -> None:
    """Report every parsed value that requests a feature that this version lacks."""
    for row in NOT_YET:
        if row.key not in values or not row.asks(values[row.key]):
            continue
        if row.refused:
            findings.error(row.key, values[row.key], row.reason, row.remedy)
        else:
            findings.warn_key(row.key, f"{row.reason}; {row.remedy}")


def status_of(key: Key) -> tuple[KeySupport, str]:
    """What `key` does in this version, and why not more."""
    reasons = [row.reason for row in NOT_YET if row.key == key.name]
    if reasons:
        return KeySupport.NOT_YET, reasons[0]
    return key.status, key.reason
