"""The group that the workers of one cluster, or the processes of one flow, join."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.config.config_def import Definition, Key, Type
from sparkmirror.config.findings import Findings

SESSION_TIMEOUT, HEARTBEAT_INTERVAL = "session.timeout.ms", "heartbeat.interval.ms"

GROUP_KEYS = Definition(
    Key(
        name=SESSION_TIMEOUT,
        type=Type.INT,
        default=10000,
        at_least=1,
        doc="The group removes a worker that sends no heartbeat for this long; if it led, another "
        "worker takes over.",
    ),
    Key(
        name=HEARTBEAT_INTERVAL,
        type=Type.INT,
        default=3000,
        at_least=1,
        doc="How often a worker sends a heartbeat; should be at most a third of the session "
        "timeout. More than 500 counts as 500, so that the others soon learn of a lost worker.",
    ),
    Key(
        name="rebalance.timeout.ms",
        type=Type.INT,
        default=60000,
        at_least=1,
        doc="How long workers may take to rejoin when the group changes.",
    ),
)


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The group of workers, and how it detects lost members."""

    group_id: str
    session_timeout_ms: int = 10000
    heartbeat_interval_ms: int = 3000
    rebalance_timeout_ms: int = 60000


def check_group(group: GroupConfig, findings: Findings) -> None:
    """A member must send at least one heartbeat per session."""
    if group.heartbeat_interval_ms >= group.session_timeout_ms:
        findings.error(
            HEARTBEAT_INTERVAL,
            group.heartbeat_interval_ms,
            f"not less than {SESSION_TIMEOUT} ({group.session_timeout_ms})",
            "use a third of that",
        )
