"""Logs which groups have partitions without a checkpoint, and why. Runs on: worker."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkmirror.connect.checkpoint.checkpoint_places import REPORTED
from sparkmirror.connect.naming import some_names
from sparkmirror.mirror.checkpoints import NoCheckpoint
from sparkmirror.types import FlowName, TopicPartition

log = logging.getLogger(__name__)


class SkippedPartitions:
    """The skipped partitions of one flow. Owned by one thread."""

    def __init__(self, flow: FlowName) -> None:
        self._flow = flow
        self._logged = ""

    def report(self, skipped: Mapping[str, Mapping[TopicPartition, NoCheckpoint]]) -> None:
        """Log the groups that could not be translated; again when they change."""
        lines = []
        for reason in REPORTED:
            groups = {group for group, found in skipped.items() if reason in found.values()}
            if groups:
                lines.append(f"{reason.value} ({some_names(groups)})")
        text = "; ".join(lines)
        if text and text != self._logged:
            log.info("[%s] partitions without a checkpoint: %s", self._flow, text)
        self._logged = text
