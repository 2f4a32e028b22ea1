"""Checkpoints of one flow in one process: dedicated mode finds and follows groups on one thread.

Runs on: worker.
"""

from __future__ import annotations

from sparkmirror.connect.checkpoint.mirror_checkpoint_task import MirrorCheckpointTask


class LocalCheckpoints(MirrorCheckpointTask):
    """The task of a flow that looks for its groups by itself."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Those that are followed."""
        return self._groups.names

    def refresh(self) -> None:
        """Find the groups that are followed: those with offsets in topics of the flow."""
        self._groups.refresh(self._source)

    def _schedule_groups(self) -> None:
        config, ticker = self._config, self._ticker
        job = ticker.repeat(
            "refreshing groups",
            config.refresh_groups_interval_seconds,
            self.refresh,
            enabled=config.refresh_groups_enabled,
        )
        ticker.run_soon(job)
