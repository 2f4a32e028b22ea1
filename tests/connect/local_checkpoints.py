"""A checkpoint task that finds its groups by itself, without a connector beside it."""

from __future__ import annotations

from typing import Any

from sparkmirror.config.mm2 import FlowConfig
from sparkmirror.connect.checkpoint.mirror_checkpoint_task import MirrorCheckpointTask


class LocalCheckpoints(MirrorCheckpointTask):
    """The task of a flow that looks for its groups by itself."""

    def __init__(self, flow: FlowConfig, **options: Any) -> None:
        super().__init__(flow.spec(flow.checkpoint), **options)

    @property
    def groups(self) -> tuple[str, ...]:
        """Those that are followed."""
        return self._groups.names

    def refresh(self) -> None:
        """Find the groups that are followed: those with offsets in topics of the flow."""
        self._groups.refresh(self._source)

    def start(self) -> None:
        config, scheduler = self._config, self._scheduler
        job = scheduler.repeat(
            "refreshing groups",
            config.refresh_groups_interval_seconds,
            self.refresh,
            enabled=config.refresh_groups_enabled,
        )
        scheduler.run_soon(job)
        super().start()
