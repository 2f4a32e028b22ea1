"""Requests of a connection that have no response yet, or have not left.

Runs on: executor and worker, on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sparkmirror.batches.header import Buffer
from sparkmirror.errors import KafkaError
from sparkmirror.wire.net.buffer_pool import PooledBuffer

OnResponse = Callable[[memoryview, PooledBuffer | None], None]


class Waiting(NamedTuple):
    """A request that has no response yet."""

    correlation: int
    sent_at: float
    timeout: float
    keep: bool
    on_response: OnResponse
    on_failure: Callable[[KafkaError], None]


class Held(NamedTuple):
    """A request that is kept back; the fields are those of `Connection.send`."""

    api: tuple[int, int]
    body: Sequence[Buffer]
    on_response: OnResponse
    on_failure: Callable[[KafkaError], None]
    timeout: float
    flexible: bool
    keep: bool
