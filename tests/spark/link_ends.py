"""Both ends of a control link, for tests: what the worker has for a task, and the task."""

from __future__ import annotations

import queue
from collections.abc import Callable

from sparkmirror.errors import KafkaError
from sparkmirror.spark.link.client import LinkClient, open_link
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.server import LinkServer, TaskConnection
from sparkmirror.wire.net.event_loop import EventLoop

WAIT_SECONDS = 20.0


class Peer:
    """The worker's side of one task id; records what it receives."""

    def __init__(self) -> None:
        self.links: queue.Queue[TaskConnection] = queue.Queue()
        self.messages: queue.Queue[LinkMessage] = queue.Queue()
        self.gone: queue.Queue[TaskConnection] = queue.Queue()
        self.failure: KafkaError | None = None

    def on_hello(self, link: TaskConnection) -> None:
        if self.failure is not None:
            raise self.failure
        link.send({"type": "start", "number": self.links.qsize()})
        self.links.put(link)

    def on_message(self, link: TaskConnection, message: LinkMessage) -> None:
        self.messages.put(message)

    def on_gone(self, link: TaskConnection) -> None:
        self.gone.put(link)


class Task:
    """The task's end, on a loop of its own."""

    def __init__(self, server: LinkServer, name: str = "t") -> None:
        self.loop = EventLoop()
        self.messages: list[LinkMessage] = []
        self.lost: list[KafkaError] = []
        self.link = LinkClient(open_link(server.token("127.0.0.1", name)))

    def begin(self) -> LinkMessage:
        """Get the start message, then use the loop."""
        start_message = self.link.wait_for_start()
        self.link.attach(self.loop, self.messages.append, self.lost.append)
        return start_message

    def run_until(self, done: Callable[[], bool]) -> None:
        assert self.loop.run_until(done, WAIT_SECONDS)

    def close(self) -> None:
        self.link.close()
        self.loop.close()
