"""Server-sent events: the overview once a second, as long as it changes.

Runs on: worker, in the event loop of the REST server. All streams of one role share what is sent,
so many open pages cost hardly more than one.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.views.rows.common import Requester

MOST_STREAMS = 64
RETRY_AFTER_SECONDS = 10
_LOOK_SECONDS = 1.0
_STOP_LOOK_SECONDS = 0.25
_HEARTBEAT_SECONDS = 5.0
# Without a change; so that the page can tell that its data is of now.
_REPEAT_SECONDS = 10.0
# Change with every answer although nothing has happened.
_CLOCKS = ("now_ms",)

MakeOverview = Callable[[Requester], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Message:
    """`essence` is what it says apart from the time."""

    id: int
    essence: str
    data: bytes


class EventStreams:
    """All streams of one listener; in one event loop only."""

    def __init__(self, overview: MakeOverview, is_stopping: Callable[[], bool]) -> None:
        self._overview = overview
        self._is_stopping = is_stopping
        self._open = 0
        self._newest: dict[Requester, tuple[float, _Message]] = {}
        self._locks: dict[Requester, asyncio.Lock] = {}

    @property
    def is_full(self) -> bool:
        """Whether no more may begin."""
        return self._open >= MOST_STREAMS

    async def stream(self, requester: Requester) -> AsyncIterator[bytes]:
        """What one page reads, until it leaves or the worker stops."""
        self._open += 1
        try:
            yield b"retry: 2000\n\n"
            async for part in self._parts(requester):
                yield part
        finally:
            self._open -= 1

    async def _parts(self, requester: Requester) -> AsyncIterator[bytes]:
        essence = ""
        sent_at = heard_at = float("-inf")
        while not self._is_stopping():
            message = await self._message(requester)
            now = time.monotonic()
            if message.essence != essence or now - sent_at >= _REPEAT_SECONDS:
                essence, sent_at, heard_at = message.essence, now, now
                yield message.data
            elif now - heard_at >= _HEARTBEAT_SECONDS:
                heard_at = now
                yield b": heartbeat\n\n"
            await self._rest()

    async def _rest(self) -> None:
        until = time.monotonic() + _LOOK_SECONDS
        while time.monotonic() < until and not self._is_stopping():
            await asyncio.sleep(_STOP_LOOK_SECONDS)

    async def _message(self, requester: Requester) -> _Message:
        lock = self._locks.setdefault(requester, asyncio.Lock())
        async with lock:
            at, message = self._newest.get(requester, (float("-inf"), None))
            if message is None or time.monotonic() - at >= _LOOK_SECONDS / 2:
                message = await anyio.to_thread.run_sync(self._make, requester)
                self._newest[requester] = time.monotonic(), message
            return message

    def _make(self, requester: Requester) -> _Message:
        try:
            answer = self._overview(requester)
            event = "overview"
        except MirrorError as error:
            answer = {"now_ms": time.time_ns() // 1_000_000, "message": str(error)}
            event = "problem"
        stamp = int(answer["now_ms"])
        essence = {key: value for key, value in answer.items() if key not in _CLOCKS}
        text = json.dumps(answer, separators=(",", ":"))
        data = f"id: {stamp}\nevent: {event}\ndata: {text}\n\n".encode()
        return _Message(stamp, json.dumps(essence), data)
