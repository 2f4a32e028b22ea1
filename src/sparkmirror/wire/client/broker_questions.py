"""Collects questions about partitions for one turn of the loop, and asks each broker once.

Runs on: executor and worker, on the event loop's thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from sparkmirror.errors import KafkaError
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.net.connection import Connection

Question = TypeVar("Question")


class BrokerQuestions(ABC, Generic[Question]):
    """One kind of question. The subclass sends one request for all questions to one broker."""

    def __init__(self, cluster: NetworkClient) -> None:
        self._cluster = cluster
        self._asked: dict[int, list[Question]] = {}
        self._scheduled = False

    def ask(self, question: Question, leader: int) -> None:
        """Ask with the next turn of the loop."""
        self._asked.setdefault(leader, []).append(question)
        if not self._scheduled:
            self._scheduled = True
            self._cluster.loop.call_later(0.0, self._turn)

    def send_ready(self) -> None:
        """A connection became ready: ask what is still to be asked."""
        for node in list(self._asked):
            connection = self._cluster.connection(node)
            if connection is not None:
                self._send(node, connection, self._asked.pop(node))

    @abstractmethod
    def _send(self, node: int, connection: Connection, questions: list[Question]) -> None:
        """Send one request; each question gets a response or an error."""

    @abstractmethod
    def _failed(self, question: Question, error: KafkaError) -> None:
        """The broker could not be asked."""

    def _turn(self) -> None:
        self._scheduled = False
        self.send_ready()
        # A broker that cannot be reached may have lost its leadership: its callers look again.
        if any(self._asked.values()):
            self._cluster.loop.call_later(1.0, self._fail_unreachable)

    def _fail_unreachable(self) -> None:
        for node in list(self._asked):
            if self._cluster.connection(node) is None:
                error = self._cluster.last_error or KafkaError(f"no connection to broker {node}")
                for question in self._asked.pop(node):
                    self._failed(question, error)
        self.send_ready()
