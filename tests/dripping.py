"""A web server that is alive and never gets to an end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def dripping(*, start: bytes) -> Iterator[str]:
    """A server that says `start`, then a byte now and then, without end."""
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        line, _ = listener.accept()
        with line:
            line.recv(65536)
            try:
                line.sendall(start)
                while not ended.wait(0.02):
                    line.sendall(b"x")
            except OSError:
                return  # the other side has hung up, as it should

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
        thread.join()
