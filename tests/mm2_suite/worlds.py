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
from tests.certificates import PASSWORD, Certificates
from tests.mm2_suite.flows import (
    DEFAULT,
    IDENTITY,
    OFFSET_SYNCS_COPIES,
    Flow,
    make_mirror,
    write_file,
)

POLICIES = {"default": DEFAULT, "identity": IDENTITY}
SSL_LISTENER = "TLS"
# The reruns of the whole class: with the other policy, and with TLS to the backup cluster.
SSL = "ssl"
RERUNS = {**POLICIES, SSL: DEFAULT}
LAG_MAX = 10


@dataclass(frozen=True, slots=True)
class Clusters:
    """Two clusters of one broker each. The backup's other listener is for TLS only."""

    primary: KafkaCluster
    backup: KafkaCluster
    certificates: Certificates

    def ssl_to_backup(self, alias: str) -> dict[str, str]:
        """Lines of a file that lead a mirror to the backup over TLS, under this alias."""
        return {
            f"{alias}.bootstrap.servers": self.backup.servers_of(SSL_LISTENER),
            f"{alias}.security.protocol": "SSL",
            f"{alias}.ssl.truststore.type": "PKCS12",
            f"{alias}.ssl.truststore.location": str(self.certificates.trust_pkcs12),
            f"{alias}.ssl.truststore.password": PASSWORD,
        }


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


def make_world(folder: Path, clusters: Clusters, rerun: str) -> World:
    """A mirror that is not started."""
    mirror = make_mirror(folder)
    primary, backup = clusters.primary, clusters.backup

    def to_backup(alias: str, purpose: str) -> Flow:
        class_name, prefix = RERUNS[rerun], f"{rerun}-{purpose}"
        return Flow(mirror, primary, backup, alias, "backup", class_name, prefix)

    back = Flow(mirror, backup, primary, "backup", "primary", DEFAULT, f"{rerun}-back")
    world = World(
        mirror,
        to_backup("primary", "forth"),
        None if rerun == "identity" else back,
        to_backup("synced", "synced"),
        to_backup("often", "often"),
    )
    sources = dict.fromkeys(("primary", "synced", "often"), primary)
    lines = _lines(world)
    if rerun == SSL:
        lines |= clusters.ssl_to_backup("backup")
    write_file(folder, sources | {"backup": backup}, lines)
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
