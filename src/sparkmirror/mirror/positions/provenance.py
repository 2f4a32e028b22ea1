"""Which source log a stored position belongs to: headers beside MirrorMaker 2's own record.

Runs on: executor (writes them) and worker (reads them). Pure.

Keys and values in the offsets topic are byte for byte those of MirrorMaker 2, and Connect reads
nothing else of a record. So further facts about a position are in headers of the same record. A
position written by another program has none, and is used unchanged.

    sparkmirror.topic.id        the topic's id, as Kafka's tools print it
    sparkmirror.leader.epochs   3@0,5@120: leader epoch 3 from offset 0 on, 5 from 120 on
    sparkmirror.target.offset   where the target has the position's last record
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from sparkmirror.batches.records import RecordHeaders

TOPIC_ID = "sparkmirror.topic.id"
LEADER_EPOCHS = "sparkmirror.leader.epochs"
TARGET_OFFSET = "sparkmirror.target.offset"

_ID_BYTES = 16
_MAX_NUMBER = (1 << 63) - 1


class Provenance(NamedTuple):
    """The known facts about the log that a position belongs to."""

    topic_id: bytes | None = None
    epochs: tuple[tuple[int, int], ...] = ()
    target_offset: int | None = None

    def encode(self) -> RecordHeaders:
        """Return the headers of a position; there is always one, which marks it as ours."""
        epochs = ",".join(f"{epoch}@{first}" for epoch, first in self.epochs)
        headers: list[tuple[str, bytes | None]] = [(LEADER_EPOCHS, epochs.encode())]
        if self.topic_id is not None:
            headers.append((TOPIC_ID, encode_topic_id(self.topic_id).encode()))
        if self.target_offset is not None:
            headers.append((TARGET_OFFSET, str(self.target_offset).encode()))
        return tuple(headers)


def decode_provenance(headers: RecordHeaders) -> Provenance | None:
    """Read the headers of a position; None if it is not ours. Invalid headers are ignored."""
    found = {name: value for name, value in headers if value is not None}
    if LEADER_EPOCHS not in found:
        return None
    target = _numbers([found.get(TARGET_OFFSET, b"")])
    return Provenance(
        decode_topic_id(found.get(TOPIC_ID, b"").decode("ascii", "replace")),
        _read_epochs(found[LEADER_EPOCHS]),
        target[0] if target else None,
    )


def encode_topic_id(topic_id: bytes) -> str:
    """Return a topic id as Kafka prints it: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def decode_topic_id(text: str) -> bytes | None:
    """The reverse; None for anything else."""
    try:
        topic_id = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return topic_id if len(topic_id) == _ID_BYTES else None


def _read_epochs(value: bytes) -> tuple[tuple[int, int], ...]:
    """All rows, or none if they are invalid: both numbers must increase."""
    rows: list[tuple[int, int]] = []
    for text in value.split(b",") if value else []:
        row = _numbers(text.split(b"@"))
        if len(row) != 2:
            return ()
        rows.append((row[0], row[1]))
    if any(now[0] <= before[0] or now[1] < before[1] for before, now in pairwise(rows)):
        return ()
    return tuple(rows)


def _numbers(texts: Iterable[bytes]) -> tuple[int, ...]:
    """Offsets and epochs; empty if one of them is invalid."""
    found = []
    for text in texts:
        if not text.isdigit() or len(text) > len(str(_MAX_NUMBER)) or int(text) > _MAX_NUMBER:
            return ()
        found.append(int(text))
    return tuple(found)
