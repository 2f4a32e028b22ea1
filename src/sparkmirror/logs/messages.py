"""What lines of the log mean and what to do about them; docs/operations.md has the same table.

Pure. A row quotes the words of the code that makes the line: a test looks for them there, so that
whoever changes a message changes its row. `<...>` in a line stands for a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sparkmirror.logs.message_rows import (
    cluster_rows,
    copy_rows,
    group_rows,
    process_rows,
    topic_rows,
)
from sparkmirror.logs.message_types import Message


class MessageSection(NamedTuple):
    """Messages about one subject."""

    title: str
    messages: tuple[Message, ...]


SECTIONS = (
    MessageSection("Clusters and network", cluster_rows.MESSAGES),
    MessageSection("Records and partitions", copy_rows.MESSAGES),
    MessageSection("Topics, settings and permissions", topic_rows.MESSAGES),
    MessageSection("Consumer groups and checkpoints", group_rows.MESSAGES),
    MessageSection("Tasks, Spark and workers", process_rows.MESSAGES),
)


def all_messages() -> Iterator[Message]:
    """The rows of all sections."""
    for section in SECTIONS:
        yield from section.messages
