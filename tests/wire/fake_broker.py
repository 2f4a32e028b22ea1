"""Brokers that speak Kafka's protocol over loopback, and fail as a test scripts it.

They know the seven requests of the data path and nothing else. Messages are read and written with
kafka-python's classes, so that a misreading of ours cannot cancel itself out.

    with FakeCluster(nodes=2) as cluster:
        cluster.create_topic("t")
        cluster.intercept(PRODUCE, once(Do(apply=True, drop=True)))
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from kafka.protocol.broker_version_data import BROKER_API_VERSIONS
from kafka.protocol.consumer import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from sparkmirror.types import TopicPartition
from tests.wire.fake_log import FakeLog
from tests.wire.fake_login import AUTHENTICATE, HANDSHAKE, Door, Guard
from tests.wire.fake_responses import (
    API_VERSIONS,
    EPOCH_ENDS,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    Do,
    Partition,
    Request,
    Responses,
    Topic,
)

__all__ = [
    "API_VERSIONS", "EPOCH_ENDS", "FETCH", "INIT_PRODUCER_ID", "LIST_OFFSETS", "METADATA",
    "PRODUCE", "Do", "FakeCluster", "Request", "is_number", "once",
]  # fmt: skip

REQUESTS = {
    PRODUCE: ProduceRequest,
    FETCH: FetchRequest,
    LIST_OFFSETS: ListOffsetsRequest,
    METADATA: MetadataRequest,
    API_VERSIONS: ApiVersionsRequest,
    INIT_PRODUCER_ID: InitProducerIdRequest,
    EPOCH_ENDS: OffsetForLeaderEpochRequest,
}
NEWEST = {
    PRODUCE: 8,
    LIST_OFFSETS: 4,
    METADATA: 12,
    API_VERSIONS: 0,
    INIT_PRODUCER_ID: 1,
    EPOCH_ENDS: 3,
    HANDSHAKE: 1,
    AUTHENTICATE: 1,
}


def versions_of(release: tuple[int, ...]) -> dict[int, int]:
    """The newest version of each request that brokers of a release and the fake speak."""
    spoken = {api: newest for api, (_, newest) in BROKER_API_VERSIONS[release].items()}
    known = {**NEWEST, FETCH: 13}
    return {api: min(known[api], spoken[api]) for api in known if api in spoken}


Interceptor = Callable[[Request], Do | None]


@dataclass(slots=True)
class Once:
    """Does `action` with the first request for which `when` holds."""

    action: Do
    when: Callable[[Request], bool]
    happened: bool = False

    def __call__(self, request: Request) -> Do | None:
        if self.happened or not self.when(request):
            return None
        self.happened = True
        return self.action


def once(action: Do, when: Callable[[Request], bool] = lambda _: True) -> Once:
    """An interceptor for one failure."""
    return Once(action, when)


def is_number(number: int) -> Callable[[Request], bool]:
    """True for the request that is asked about as the `number`th."""
    seen = itertools.count(1)
    return lambda _: next(seen) == number


@dataclass(slots=True)
class Node:
    """One broker's listener and connections."""

    node_id: int
    listener: socket.socket
    connections: set[socket.socket] = field(default_factory=set)


class FakeCluster:
    """Some brokers, numbered from 1. All methods may be called from any thread."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        newest_fetch: int = 13,
        sessions: bool = True,
        compares_epochs: bool = True,
        knows_epoch_ends: bool = True,
        door: Door | None = None,
        release: tuple[int, ...] | None = None,
    ) -> None:
        """A cluster of a `release` speaks what that release does, as far as the fake knows it."""
        self._door = door
        self.requests: list[Request] = []
        self._changed = threading.Condition()
        newest = {**NEWEST, FETCH: newest_fetch}
        if release is not None:
            newest = versions_of(release)
        if not knows_epoch_ends:
            del newest[EPOCH_ENDS]
        self._responses = Responses(self._changed, newest)
        self._responses.compares_epochs = compares_epochs
        self._responses.keeps_sessions = sessions
        self._interceptors: dict[int, list[Interceptor]] = {}
        self._nodes: dict[int, Node] = {}
        self._threads: list[threading.Thread] = []
        for node in range(1, nodes + 1):
            self.start_node(node)

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in list(self._nodes):
            self.stop_node(node)
        for thread in self._threads:
            thread.join(5.0)
            assert not thread.is_alive(), f"{thread.name} does not end"

    def advertise(self, node: int, host: str, port: int) -> None:
        """Let a broker advertise another address than it listens on."""
        self._responses.advertised[node] = (host, port)

    # -- what a test looks at ----------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> tuple[str, ...]:
        """Addresses of all brokers, also of those that are down."""
        return tuple(f"127.0.0.1:{port}" for port in self._responses.ports.values())

    def log(self, topic: str, partition: int = 0) -> FakeLog:
        """To look into, or to change while nothing is under way."""
        return self._partition(TopicPartition(topic, partition)).log

    def sent(self, api: int) -> list[Request]:
        """Requests of this kind so far."""
        with self._changed:
            return [request for request in self.requests if request.api == api]

    # -- what a test does --------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, leader: int = 1) -> None:
        """Create a topic; one that exists is recreated, empty and under another id."""
        with self._changed:
            rows = [Partition(leader) for _ in range(partitions)]
            self._responses.topics[name] = Topic(uuid.uuid4(), rows)
            self._changed.notify_all()

    def delete_topic(self, name: str) -> None:
        """The records are gone too."""
        with self._changed:
            del self._responses.topics[name]
            self._changed.notify_all()

    def write(self, tp: TopicPartition, values: Iterable[bytes]) -> None:
        """Append one batch, and wake the fetches that wait for it."""
        with self._changed:
            self._partition(tp).log.write(values)
            self._changed.notify_all()

    def move_leader(self, tp: TopicPartition, node: int) -> None:
        """Another node leads from now on."""
        with self._changed:
            partition = self._partition(tp)
            partition.leader, partition.epoch = node, partition.epoch + 1
            partition.log.elect(partition.epoch)
            self._changed.notify_all()

    def elect_unclean(
        self, tp: TopicPartition, end_offset: int, values: Iterable[bytes] = (), node: int = 1
    ) -> None:
        """A replica that has only the log up to `end_offset` leads, and gets these records."""
        with self._changed:
            partition = self._partition(tp)
            partition.leader, partition.epoch = node, partition.epoch + 1
            partition.log.truncate(end_offset)
            partition.log.elect(partition.epoch)
            for value in values:
                partition.log.write([value])
            self._changed.notify_all()

    def freeze_metadata(self, node: int) -> None:
        """From now on this node does not learn what becomes of topics."""
        with self._changed:
            self._responses.old_topics[node] = dict(self._responses.topics)

    def forget_topics(self, node: int) -> None:
        """This node knows no topics, as one that its controller has not talked to."""
        with self._changed:
            self._responses.old_topics[node] = {}

    def thaw_metadata(self, node: int) -> None:
        """It learns all of it."""
        with self._changed:
            del self._responses.old_topics[node]

    def prefer(self, tp: TopicPartition, node: int) -> None:
        """The leader sends consumers that name a rack to `node`."""
        with self._changed:
            self._partition(tp).preferred = node

    def forget_sessions(self) -> None:
        """As a broker does when others need the room."""
        with self._changed:
            self._responses.sessions.clear()

    def intercept(self, api: int, interceptor: Interceptor) -> None:
        """Ask `interceptor` first; None lets the request pass. It may block its connection."""
        with self._changed:
            self._interceptors.setdefault(api, []).append(interceptor)

    def start_node(self, node_id: int) -> None:
        """Listen; a node that comes back has its old port."""
        ports = self._responses.ports
        listener = socket.create_server(("127.0.0.1", ports.get(node_id, 0)))
        ports[node_id] = listener.getsockname()[1]
        node = self._nodes[node_id] = Node(node_id, listener)
        self._responses.running.add(node_id)
        self._run(self._accept, node, name=f"fake broker {node_id}")

    def stop_node(self, node_id: int) -> None:
        """Close everything at once, as a crash does."""
        with self._changed:
            self._responses.running.discard(node_id)
            node = self._nodes.pop(node_id)
            for sock in (node.listener, *node.connections):
                _hang_up(sock)
            self._changed.notify_all()

    def upgrade(self, node_id: int, release: tuple[int, ...]) -> None:
        """Restart a node; from now on all nodes speak what this release does."""
        self.stop_node(node_id)
        self.forget_sessions()
        self._responses.newest = versions_of(release)
        self.start_node(node_id)

    def _partition(self, tp: TopicPartition) -> Partition:
        return self._responses.topics[tp.topic].partitions[tp.partition]

    # -- sockets -----------------------------------------------------------------------------------

    def _run(self, target: Callable[..., None], *args: Any, name: str) -> None:
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, node: Node) -> None:
        with node.listener:
            while True:
                try:
                    sock, _ = node.listener.accept()
                except OSError:
                    return
                with self._changed:
                    node.connections.add(sock)
                    if self._nodes.get(node.node_id) is not node:
                        _hang_up(sock)
                self._run(self._serve, node, sock, name=f"fake broker {node.node_id} connection")

    def _serve(self, node: Node, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with sock:
            guard = self._door.guard() if self._door else None
            try:
                while self._serve_one(node, sock, guard):
                    pass
            except OSError:
                return
            finally:
                with self._changed:
                    node.connections.discard(sock)

    def _serve_one(self, node: Node, sock: socket.socket, guard: Guard | None) -> bool:
        (size,) = struct.unpack(">i", _receive(sock, 4))
        frame = _receive(sock, size)
        api, version, correlation, client_size = struct.unpack_from(">hhih", frame)
        if guard is not None and api in (HANDSHAKE, AUTHENTICATE):
            reply = guard.respond(api, version, frame[10 + max(client_size, 0) :])
            sock.sendall(struct.pack(">ii", 4 + len(reply), correlation) + reply)
            return True
        if guard is not None and not guard.lets_pass(api):
            return False
        kind = REQUESTS[api]
        is_flexible = bool(kind.flexible_version_q(version))
        body = kind.decode(frame[10 + max(client_size, 0) + is_flexible :], version=version)
        response = self._respond(node, Request(node.node_id, api, version, body))
        if response is None:
            return False
        tags = b"\0" if is_flexible else b""
        sock.sendall(
            struct.pack(">ii", 4 + len(tags) + len(response), correlation) + tags + response
        )
        return True

    def _respond(self, node: Node, request: Request) -> bytes | None:
        with self._changed:
            self.requests.append(request)
            interceptors = list(self._interceptors.get(request.api, ()))
        actions = (action for each in interceptors if (action := each(request)) is not None)
        action = next(actions, Do(apply=True))
        if action.garbage is not None:
            return action.garbage
        with self._changed:
            if self._nodes.get(node.node_id) is not node:
                return None
            message = self._responses.respond(request, action)
        return None if action.drop else bytes(message.encode(version=request.version))


def _hang_up(sock: socket.socket) -> None:
    """Wake the thread that blocks in it; that one closes it."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was faster


def _receive(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise ConnectionResetError("hung up")
        data += piece
    return bytes(data)
