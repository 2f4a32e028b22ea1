"""A line to a real broker that asks for an IAM login as AWS's do: TLS outside, plain inside.

Requests of the login are answered here, all others go to the broker and back.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from sparkmirror.embedded.ports import HOST
from tests.wire.fake_login import AUTHENTICATE, HANDSHAKE, Door, Guard

_MOST_BYTES = 1 << 20


class IamLine:
    """In a `with` block; `lead_to` a broker before clients come."""

    def __init__(self, door: Door) -> None:
        self._target_port = 0
        self.door = door
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="IAM line", daemon=True)
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """Where clients come to."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def lead_to(self, port: int, key_and_certificate: Path) -> None:
        """Requests go to this port of a broker, in whose name the line speaks."""
        self._target_port = port
        self._context.load_cert_chain(key_and_certificate)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._begin, HOST, 0, ssl=self._context)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        talks = list(self._talks)
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await asyncio.sleep(0.1)  # transports close in the next rounds of the loop

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = self._loop.create_task(self._serve(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker_reader, broker_writer = await asyncio.open_connection(HOST, self._target_port)
        back = self._loop.create_task(_copy(broker_reader, writer))
        try:
            await _forward(self.door.guard(), reader, writer, broker_writer)
        except (OSError, asyncio.IncompleteReadError):
            return  # one of the two has hung up
        finally:
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            for each in (writer, broker_writer):
                each.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_MOST_BYTES):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


async def _forward(
    guard: Guard,
    reader: asyncio.StreamReader,
    client: asyncio.StreamWriter,
    broker: asyncio.StreamWriter,
) -> None:
    while True:
        head = await reader.readexactly(4)
        frame = await reader.readexactly(struct.unpack(">i", head)[0])
        api, version, correlation, name_size = struct.unpack_from(">hhih", frame)
        if api in (HANDSHAKE, AUTHENTICATE):
            text = guard.respond(api, version, frame[10 + max(name_size, 0) :])
            client.write(struct.pack(">ii", 4 + len(text), correlation) + text)
            await client.drain()
        elif guard.lets_pass(api):
            broker.write(head + frame)
            await broker.drain()
        else:
            return
