"""Who leads each partition, and who is notified of changes.

Runs on: executor and worker, on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple, Protocol

from sparkmirror.types import TopicPartition


class Leader(NamedTuple):
    """Who leads a partition."""

    node: int
    epoch: int


class MetadataListener(Protocol):
    """Is notified of changes, on the loop's thread."""

    def on_connected(self, node: int) -> None:
        """A connection to `node` is ready for requests."""

    def on_metadata(self) -> None:
        """Leaders may have moved: those of the topics in the cluster's `news`."""


def merge_leaders(
    known: Mapping[TopicPartition, Leader],
    found: Mapping[TopicPartition, tuple[int, int]],
    topics: Set[str],
) -> dict[TopicPartition, Leader]:
    """Replace what is known of these topics by what was found of them."""
    merged = {tp: leader for tp, leader in known.items() if tp.topic not in topics}
    for tp, (node, epoch) in found.items():
        if tp.topic in topics:
            merged[tp] = Leader(node, epoch)
    return merged
