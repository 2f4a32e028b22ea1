"""Connect's and MirrorMaker 2's checks of several settings together, in their words.

Mirrors: org.apache.kafka.connect.runtime.distributed.DistributedHerder,
org.apache.kafka.connect.mirror.{MirrorSourceConnector,MirrorCheckpointConfig} (4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Props = Mapping[str, str | None]
EXACTLY_ONCE = "exactly.once.support"
BOUNDARY = "transaction.boundary"
EMIT_OFFSET_SYNCS = "emit.offset-syncs.enabled"
EMIT_CHECKPOINTS = "emit.checkpoints.enabled"
ISOLATION_LEVEL = "isolation.level"


@dataclass(slots=True)
class Checked:
    """One value, and its errors."""

    name: str
    value: str | None = None
    errors: list[str] = field(default_factory=list)
    visible: bool = True

    def info(self) -> dict[str, Any]:
        """As Connect shows it."""
        return {
            "name": self.name,
            "value": self.value,
            "recommended_values": [],
            "errors": self.errors,
            "visible": self.visible,
        }


def check_exactly_once(
    kind: str, base: Mapping[str, Checked], props: Props, *, enabled: bool
) -> None:
    """Connect's checks; `enabled`: the worker can write exactly once."""
    level, boundary = base[EXACTLY_ONCE], base[BOUNDARY]
    if not level.errors and (level.value or "").lower() == "required":
        if not enabled:
            level.errors.append("This worker does not have exactly-once source support enabled.")
        if kind != "MirrorSourceConnector":
            level.errors.append(
                "The connector does not implement the API required for preflight validation of "
                "exactly-once source support. Please consult the documentation for the connector "
                "to determine whether it supports exactly-once semantics, and then consider "
                'reconfiguring the connector to use the value "requested" for this property '
                "(which will disable this preflight check and allow the connector to be created)."
            )
        elif not _reads_committed(props):
            level.errors.append(
                "The connector does not support exactly-once semantics with the provided "
                "configuration."
            )
    if not boundary.errors and (boundary.value or "").lower() == "connector":
        boundary.errors.append(
            "The connector does not support connector-defined transaction boundaries with the "
            "given configuration. Please reconfigure it to use a different transaction boundary "
            "definition."
        )


def _reads_committed(props: Props) -> bool:
    level = None
    for prefix in ("consumer.", "source.consumer."):
        level = props.get(f"{prefix}{ISOLATION_LEVEL}", level)
    return level == "read_committed"


def check_connector(kind: str, own: dict[str, Checked], props: Props) -> None:
    """The checks of MirrorMaker 2's connectors."""
    syncs_off = props.get(EMIT_OFFSET_SYNCS) == "false"
    if kind == "MirrorSourceConnector":
        if props.get(EXACTLY_ONCE) == "required" and not _reads_committed(props):
            _add(
                own,
                EXACTLY_ONCE,
                "MirrorSourceConnector can only provide exactly-once guarantees when its source "
                "consumer is configured with isolation.level set to 'read_committed'; otherwise, "
                "records from aborted and uncommitted transactions will be replicated from the "
                "source cluster to the target cluster.",
            )
        about = any(key.startswith(("offset-syncs-", "offset-syncs.topic.")) for key in props)
        if syncs_off and about:
            _add(
                own,
                EMIT_OFFSET_SYNCS,
                "MirrorSourceConnector can't setup offset-syncs feature while "
                f"{EMIT_OFFSET_SYNCS} set to false",
            )
    if kind == "MirrorCheckpointConnector" and props.get("enabled", "true") != "false":
        if props.get(EMIT_CHECKPOINTS) == "false":
            text = f"MirrorCheckpointConnector can't run with {EMIT_CHECKPOINTS} set to false"
            _add(own, EMIT_CHECKPOINTS, text)
        if syncs_off:
            text = "MirrorCheckpointConnector can't run without offset syncs"
            _add(own, EMIT_OFFSET_SYNCS, text)


def _add(own: dict[str, Checked], key: str, text: str) -> None:
    own.setdefault(key, Checked(key)).errors.append(text)
