"""Things to create or change on a cluster, as plain values that need no client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


class ConfigChange(NamedTuple):
    """One change of a topic's settings; `operation` is 0 to set, 1 to delete."""

    name: str
    operation: int
    value: str | None


class AclRule(NamedTuple):
    """One access rule; the numbers are the protocol's codes."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int
