"""MirrorMaker 1's work: one flow that keeps topic names, and its consumer group on the source.

Runs on: worker. Of dedicated mode it has the source connector only: no heartbeats, checkpoints,
offset syncs, nor their topics. Several processes with the same group share the work as those of
dedicated mode do: one copies, the others stand by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkmirror.config.legacy.mirror_maker_1 import LegacyConfig
from sparkmirror.config.mm2 import FlowConfig, MirrorMakerConfig
from sparkmirror.connect.legacy.legacy_group import LegacyGroup
from sparkmirror.connect.runtime.flow_group import Connectors
from sparkmirror.connect.runtime.mirror_maker import Member, MirrorMaker
from sparkmirror.connect.source.local_source import LocalSource
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.positions.group_positions import group_name
from sparkmirror.wire.admin.admin import Admin, open_admins

MOST_REPLICAS = 3
# The first release that creates topics with its own default number of replicas (KIP-464).
DEFAULT_REPLICAS = (2, 4)


@dataclass(frozen=True, slots=True)
class LegacyConnectors(Connectors):
    """The same, and the end is clean only if the group has the last positions."""

    groups: Sequence[LegacyGroup]

    def stop(self, seconds: float) -> bool:
        # Not super(): a dataclass with slots is another class than the one that it sees.
        is_clean = Connectors.stop(self, seconds)
        return is_clean and all(group.is_committed for group in self.groups)


class LegacyMirror(MirrorMaker):
    """The flow of one MirrorMaker 1."""

    def __init__(self, config: LegacyConfig, mirror: MirrorMakerConfig) -> None:
        """`mirror` is what `identify` made of `config`."""
        self._config = config
        self._legacy_groups: Sequence[LegacyGroup] = ()
        super().__init__(mirror)

    def look(self) -> None:
        """As in dedicated mode; raises also when MirrorMaker 1 has been started."""
        for group in self._legacy_groups:
            if group.failure is not None:
                raise group.failure
        super().look()

    def make_connectors(self, members: Sequence[Member]) -> Connectors:
        flows = [member for member in members if isinstance(member, FlowConfig)]
        sources = [LocalSource(flow) for flow in flows]
        self._legacy_groups = [
            LegacyGroup(flow, source, self._config.group_id, self._config.commit_interval_ms)
            for flow, source in zip(flows, sources, strict=True)
        ]
        return LegacyConnectors(sources, self._legacy_groups, self._legacy_groups)


def identify(config: LegacyConfig) -> MirrorMakerConfig:
    """Ask both clusters what the flow's settings need to know of them; nothing is changed.

    Raises:
        KafkaError: says of each cluster that cannot be reached why; or both are the same.
    """
    (flow,) = config.mirror.flows
    admins: list[Admin] = []
    try:
        clients = [flow.source.source_client, flow.source.target_client]
        open_admins(Admin, clients, flow.source.admin_timeout_ms, admins)
        source, target = admins
        source_id = source.cluster_id()
        if source_id == target.cluster_id():
            raise KafkaError(
                "both files name the same cluster: topics keep their names, so every record would "
                "be copied back to its own topic, for ever; check bootstrap.servers"
            )
        replicas = min(MOST_REPLICAS, target.broker_count())
        name = group_name(config.group_id, source_id)
        return config.with_identity(name, replicas, has_default=target.release >= DEFAULT_REPLICAS)
    finally:
        for admin in admins:
            admin.close()
