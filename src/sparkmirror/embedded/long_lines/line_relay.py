"""The process of a long line: relays connections with delay and windows, and fails on command.

Runs on: a separate process, so that it takes no time from the processes that use the line.
long_line starts it and sends the commands, one text line each. line_pairs delays connections.
"""

from __future__ import annotations

import heapq
import itertools
import json
import resource
import selectors
import socket
import sys
import time
from collections.abc import Callable

from sparkmirror.embedded.long_lines.line_pairs import PIECE_BYTES, RESET, End, Half, Pair
from sparkmirror.embedded.ports import HOST

# Sleeping is accurate to some 0.1 ms, waiting for sockets only to a millisecond. And while bytes
# flow, one turn per time slice costs less than one per packet.
TICK_SECONDS = 0.0005
BACKLOG = 1024
# Connections that fill a queue of length 0, and how long an attempt may take until it is full.
MOST_DUMMIES = 8
DUMMY_SECONDS = 0.15


class Relay:
    """Listens on one port and relays to another; executes commands."""

    def __init__(self, port: int, control_port: int, server_host: str) -> None:
        self.delay = 0.0
        self.window = 0
        self.is_stalled = False
        self._port = port
        self._server_host, self._server_port = server_host, 0
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Half]] = []
        self._serial = itertools.count()
        self._pairs: set[Pair] = set()
        self._buffers: list[bytearray] = []
        self._counts = {"accepted": 0, "refused": 0, "up": 0, "down": 0, "most_in_flight": 0}
        self._dummies: dict[int, socket.socket] = {}
        self._listener: socket.socket | None = None
        self._control = socket.create_server((HOST, control_port))
        self._selector.register(self._control, selectors.EVENT_READ, self._accept_control)

    def run(self) -> None:
        """Relay until the process is ended."""
        while True:
            now = time.monotonic()
            for key, events in self._selector.select(self._wait_seconds(now)):
                if isinstance(key.data, End):
                    key.data.on_ready(events, time.monotonic())
                else:
                    key.data()
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                _, _, half = heapq.heappop(self._timers)
                if not half.is_done:
                    half.run(now)
            self._watch()

    def call_at(self, due: float, half: Half) -> None:
        """Run a half at this time."""
        heapq.heappush(self._timers, (due, next(self._serial), half))

    def take_buffer(self) -> bytearray:
        """A buffer for one read."""
        return self._buffers.pop() if self._buffers else bytearray(PIECE_BYTES)

    def give_buffer(self, buffer: bytearray) -> None:
        """Return a buffer."""
        self._buffers.append(buffer)

    def forget(self, pair: Pair) -> None:
        """Forget a connection that is being closed, but keep its counts."""
        self._add_counts(self._counts, pair)
        self._pairs.discard(pair)
        for end in pair.ends:
            if end.watched:
                self._selector.unregister(end.socket)
                end.watched = 0

    def _wait_seconds(self, now: float) -> float | None:
        """How long to wait for sockets; rests first if bytes are in flight."""
        if not self._timers:
            return None
        left = self._timers[0][0] - now
        if left > 0:
            time.sleep(min(left, TICK_SECONDS))
        # Rounded down to milliseconds; the rest is slept in ticks.
        return max(0.0, int((left - TICK_SECONDS) * 1000) / 1000)

    def _watch(self) -> None:
        for pair in self._pairs:
            for end in pair.ends:
                wanted = end.wanted
                if wanted == end.watched:
                    continue
                if not end.watched:
                    self._selector.register(end.socket, wanted, end)
                elif wanted:
                    self._selector.modify(end.socket, wanted, end)
                else:
                    self._selector.unregister(end.socket)
                end.watched = wanted

    # -- connections -------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._listener = socket.create_server((HOST, self._port), backlog=BACKLOG)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            client, (_, port) = self._listener.accept()
        except OSError:
            return  # gone again
        dummy = self._dummies.pop(port, None)
        if dummy is not None:
            dummy.close()
            client.close()
            return
        try:
            server = socket.create_connection((self._server_host, self._server_port))
        except OSError:
            self._counts["refused"] += 1
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            client.close()
            return
        self._counts["accepted"] += 1
        self._pairs.add(Pair(self, client, server))

    def _drop_syns(self) -> None:
        """Fill the queue of connections to accept, so that the kernel ignores further ones."""
        if self._listener is None:
            return
        self._selector.unregister(self._listener)
        self._listener.listen(0)
        for _ in range(MOST_DUMMIES):
            try:
                dummy = socket.create_connection((HOST, self._port), DUMMY_SECONDS)
            except TimeoutError:
                return
            self._dummies[dummy.getsockname()[1]] = dummy

    # -- commands ----------------------------------------------------------------------------------

    def _accept_control(self) -> None:
        control, _ = self._control.accept()
        lines = control.makefile("r")

        def execute() -> None:
            line = lines.readline()
            if not line:
                self._selector.unregister(control)
                control.close()
                return
            control.sendall(json.dumps(self._execute(*line.split())).encode() + b"\n")

        self._selector.register(control, selectors.EVENT_READ, execute)

    def _execute(self, word: str, value: str = "0") -> object:
        if word == "stats":
            return self._stats()
        commands: dict[str, Callable[[float], None]] = {
            "to": self._open,
            "delay": self._set_delay,
            "window": self._set_window,
            "stall": self._stall,
            "resume": self._resume,
            "cut": self._cut,
            "mend": self._mend,
            "freeze": self._freeze,
            "thaw": self._thaw,
        }
        commands[word](float(value))
        now = time.monotonic()
        for pair in list(self._pairs):
            pair.wake(now)
        return "done"

    def _open(self, port: float) -> None:
        self._server_port = int(port)
        if self._listener is None:
            self._listen()

    def _set_delay(self, seconds: float) -> None:
        self.delay = seconds

    def _set_window(self, size: float) -> None:
        self.window = int(size)

    def _stall(self, _: float) -> None:
        if not self.is_stalled:
            self.is_stalled = True
            self._drop_syns()

    def _resume(self, _: float) -> None:
        if self.is_stalled and self._listener is not None:
            self._listener.listen(BACKLOG)
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self.is_stalled = False

    def _cut(self, _: float) -> None:
        if self._listener is not None:
            if not self.is_stalled:
                self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
        for pair in list(self._pairs):
            pair.reset()

    def _mend(self, _: float) -> None:
        if self._listener is None:
            self._listen()

    def _freeze(self, size: float) -> None:
        for pair in self._pairs:
            pair.left = int(size)

    def _thaw(self, _: float) -> None:
        for pair in self._pairs:
            pair.left = None

    def _stats(self) -> dict[str, float]:
        counts = dict(self._counts)
        for pair in self._pairs:
            self._add_counts(counts, pair)
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            **counts,
            "open": len(self._pairs),
            "frozen": sum(pair.is_frozen for pair in self._pairs),
            "cpu_seconds": used.ru_utime + used.ru_stime,
        }

    @staticmethod
    def _add_counts(counts: dict[str, int], pair: Pair) -> None:
        counts["up"] += pair.up.bytes
        counts["down"] += pair.down.bytes
        seen = max(pair.up.most_in_flight, pair.down.most_in_flight)
        counts["most_in_flight"] = max(counts["most_in_flight"], seen)


if __name__ == "__main__":
    Relay(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]).run()
