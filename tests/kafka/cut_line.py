"""A line to a broker that can be cut and stalled: a TCP relay in front of it."""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType
from typing import Self

_PIECE_BYTES = 16 * 1024
# Close with a reset: what is under way is lost, as when a router forgets a connection.
_RESET = struct.pack("ii", 1, 0)


class CutLine:
    """Relays connections to `target_port`, which may be set later; lives in a `with` block."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target_port = 0
        self.cuts = 0
        self._flowing = threading.Event()
        self._flowing.set()
        # How many bytes of the broker's may pass before the connection that carries them falls
        # silent; None: all. And whether one has.
        self._left: int | None = None
        self.has_stopped = threading.Event()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name=f"line {self.port}", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.resume()
        self._over.set()
        _wake(self._listener)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Reset all connections, wherever they are in a request."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        self.cuts += len(sockets)
        for sock in sockets:
            _wake(sock, reset=True)

    def stall(self) -> None:
        """Nothing comes through in either direction; connections stay open."""
        self._flowing.clear()

    def resume(self) -> None:
        """End of the stall; what was sent meanwhile comes through."""
        self._flowing.set()

    def stop_after(self, size: int) -> None:
        """Let `size` bytes of the broker's pass; the connection then says nothing more.

        It stays open, and others, also later ones, are not touched.
        """
        with self._lock:
            self._left = size

    def _stops_within(self, piece: bytes) -> int | None:
        """How many bytes of a piece pass if it is the last of its connection; None: it is not."""
        with self._lock:
            if self._left is None:
                return None
            left, self._left = self._left, self._left - len(piece)
            if self._left > 0:
                return None
            self._left = None
        return left

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target_port), 10.0)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                self._sockets |= {near, far}
            for way in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._relay, args=way, name="line", daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, is_of_broker: bool) -> None:
        try:
            while piece := source.recv(_PIECE_BYTES):
                self._flowing.wait()
                last = self._stops_within(piece) if is_of_broker else None
                target.sendall(piece if last is None else piece[:last])
                if last is not None:
                    self.has_stopped.set()
                    self._over.wait()
        except OSError:
            pass  # cut, or closed by the other direction's thread
        with self._lock:
            self._sockets -= {source, target}
        for sock in (source, target):
            _wake(sock)
            sock.close()


def _wake(sock: socket.socket, *, reset: bool = False) -> None:
    """Let the thread that waits for this socket go on; it closes it."""
    try:
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # closed already
