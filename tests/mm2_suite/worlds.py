"""The mirror that most tests share: several flows of one policy in one process.

    primary <-> backup    both ways, heartbeats, no group sync (identity: one way, or it would loop)
    synced   -> backup    groups are synced, a sync at least every LAG_MAX records
    often    -> backup    groups are synced, a sync for every record; source's defaults are copied

All three sources are the same brokers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sparkmirror.demo.mirror_process import MirrorProcess
from sparkmirror.embedded import KafkaCluster
from tests.mm2_suite.flows import (
    DEFAULT,
    IDENTITY,
    OFFSET_SYNCS_COPIES,
    Flow,
    make_mirror,
    write_file,
)

POLICIES = {"default": DEFAULT, "identity": IDENTITY}
LAG_MAX = 10


@dataclass(frozen=True, slots=True)
class Clusters:
    """Two clusters of one broker each."""

    primary: KafkaCluster
    backup: KafkaCluster


@dataclass(frozen=True, slots=True)
class World:
    """A running mirror and its flows; `back` only where topics get another name."""

    mirror: MirrorProcess
    forth: Flow
    back: Flow | None
    synced: Flow
    often: Flow

    @property
    def mutual(self) -> list[Flow]:
        """The flows between primary and backup."""
        return [self.forth] if self.back is None else [self.forth, self.back]

    def restart(self) -> None:
        """Stop in an orderly way and start again."""
        self.mirror.stop()
        self.mirror.start()


def make_world(folder: Path, clusters: Clusters, policy: str) -> World:
    """A mirror that is not started."""
    mirror = make_mirror(folder)
    primary, backup = clusters.primary, clusters.backup

    def to_backup(alias: str, purpose: str) -> Flow:
        class_name, prefix = POLICIES[policy], f"{policy}-{purpose}"
        return Flow(mirror, primary, backup, alias, "backup", class_name, prefix)

    back = Flow(mirror, backup, primary, "backup", "primary", DEFAULT, f"{policy}-back")
    world = World(
        mirror,
        to_backup("primary", "forth"),
        None if policy == "identity" else back,
        to_backup("synced", "synced"),
        to_backup("often", "often"),
    )
    sources = dict.fromkeys(("primary", "synced", "often"), primary)
    write_file(folder, sources | {"backup": backup}, _lines(world))
    return world


def _lines(world: World) -> dict[str, str]:
    syncing = {"sync_group_offsets_enabled": "true", "heartbeats_replication_enabled": "false"}
    lines = {
        OFFSET_SYNCS_COPIES: "1",
        "backup->primary.emit.heartbeats.enabled": "true",
        "primary->backup.emit.heartbeats.enabled": "true",
        "offset.lag.max": str(LAG_MAX),
        **world.synced.settings(**syncing),
        **world.often.settings(**syncing, offset_lag_max="0", use_defaults_from="source"),
    }
    for flow in world.mutual:
        lines |= flow.settings()
    return lines
