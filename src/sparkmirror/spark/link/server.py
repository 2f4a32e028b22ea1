"""The worker's end of the control links: tasks connect, authenticate, and get their start message.

Runs on: worker. One thread accepts, one thread per connected task reads. A task id has at most one
live link: a newer attempt of the same task cuts off the older one, which then commits and ends.

The server remembers until when each task may write. A task that was revoked may start elsewhere
when its Spark job has ended, or when that time is over: an executor that is cut off still runs, and
the worker cannot see its end.
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

from sparkmirror.errors import KafkaError, MirrorError, TransportError
from sparkmirror.logs.places import NOWHERE, enter_place, place_of_label
from sparkmirror.retry import Backoff, RetryPolicy
from sparkmirror.spark.link.callers import Caller, Callers
from sparkmirror.spark.link.certificate import make_identity
from sparkmirror.spark.link.frames import (
    REFUSED,
    LinkMessage,
    authenticate_task,
    new_secret,
    receive_message,
    send_message,
    task_secret,
)
from sparkmirror.spark.link.lease import RENEW, Lender, boot_clock, for_ever, renewal_response
from sparkmirror.spark.link.task_token import TaskToken
from sparkmirror.spark.link.tls import TlsSocket, accept_tls

log = logging.getLogger(__name__)

HELLO_SECONDS = 10.0
# Tasks report every second. One that has not for this long hangs, or its machine is gone.
SILENCE_SECONDS = 30.0
# Accepting fails when the process has no descriptors left: others may be closed soon.
ACCEPT_AGAIN = RetryPolicy.every(1.0)
# What a task has sent until the end of its lease may still be on its way to a broker.
ON_ITS_WAY_SECONDS = 1.0


class TaskPeer(Protocol):
    """The worker's object for one task id; called on the link's reader thread."""

    def on_hello(self, link: TaskConnection) -> None:
        """The task runs and waits for its start message."""

    def on_message(self, link: TaskConnection, message: LinkMessage) -> None:
        """The task sent a message."""

    def on_gone(self, link: TaskConnection) -> None:
        """The link is closed, by whichever side."""


class TaskConnection:
    """One connected task."""

    def __init__(self, channel: TlsSocket, peer: str) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self.peer = peer
        self.was_silent = False
        self._message_at = time.monotonic()

    def send(self, message: LinkMessage) -> None:
        """Send to the task; TransportError when it is gone."""
        with self._lock:
            send_message(self._channel, message)

    def receive(self) -> LinkMessage:
        """Wait for the next message; TransportError when the task is gone or silent."""
        try:
            message = receive_message(self._channel)
        except TransportError as error:
            self.was_silent = isinstance(error.__cause__, TimeoutError)
            raise
        self._message_at = time.monotonic()
        return message

    @property
    def silent_seconds(self) -> float:
        """Seconds since the task's last message."""
        return time.monotonic() - self._message_at

    def close(self) -> None:
        """Cut it off; its reader thread notices."""
        try:
            self._channel.hang_up()
        except OSError:
            log.debug("control link to %s was closed already", self.peer)
        self._channel.close()


class LinkServer:
    """Listens for tasks."""

    def __init__(
        self,
        bind: str,
        port: int = 0,
        lend: Callable[[], Lender] = lambda: for_ever,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        """`lend` makes the lease of each task: how many more seconds it may write.

        `clock` is that of `released_at`.
        """
        self._secret = new_secret()
        self._identity = make_identity()
        self._lend = lend
        self._clock = clock
        self._listener = _listen_on(bind, port)
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._peers: dict[str, TaskPeer] = {}
        self._leases: dict[str, Lender] = {}
        # When the last lease of each task ends; also of tasks that may not connect any more.
        self._lease_ends: dict[str, float] = {}
        self._links: dict[str, TaskConnection] = {}
        self._callers = Callers(lambda: len(self._peers))
        self._closed = False
        threading.Thread(target=self._accept, name="control-link", daemon=True).start()

    def token(self, host: str, task: str) -> TaskToken:
        """With it, `task` finds this worker, which executors reach as `host`."""
        secret = self._secret_of(task)
        return TaskToken(host, self.port, secret, self._identity.fingerprint, task)

    def expect(self, task: str, peer: TaskPeer, lease: Lender | None = None) -> None:
        """From now on `task` may connect; `lease` replaces the server's."""
        with self._lock:
            self._drop_ended_leases()
            self._peers[task] = peer
            self._leases[task] = lease or self._lend()

    def forget(self, task: str) -> None:
        """`task` may not connect any more; its link is cut."""
        with self._lock:
            self._peers.pop(task, None)
            self._leases.pop(task, None)
            link = self._links.pop(task, None)
        if link is not None:
            link.close()

    def released_at(self, task: str) -> float:
        """When nothing that `task` has sent can arrive any more, by `clock`; -inf if none could.

        It counts from the end of its last lease. It is final only after `forget`.
        """
        with self._lock:
            return self._lease_ends.get(task, -math.inf) + ON_ITS_WAY_SECONDS

    def has_released(self, task: str) -> bool:
        """Whether `released_at` has passed. An unlimited lease has no successor elsewhere."""
        end = self.released_at(task)
        return end == math.inf or self._clock() >= end

    def close(self) -> None:
        """Cut all links."""
        self._closed = True
        with contextlib.suppress(OSError):  # wakes the thread in accept(); refused by some systems
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for task in list(self._links):
            self.forget(task)

    def _accept(self) -> None:
        backoff = Backoff(ACCEPT_AGAIN)
        while not self._closed:
            try:
                sock, address = self._listener.accept()
                caller = self._callers.add(sock, address[0])
            except OSError as error:
                if not self._closed:
                    log.error("control link: no task can connect: %s", error)  # noqa: TRY400
                    time.sleep(backoff.failed())
                continue
            backoff.succeeded()
            peer = f"{address[0]}:{address[1]}"
            threading.Thread(
                target=self._serve,
                args=(sock, peer, caller),
                name=f"control-link-{peer}",
                daemon=True,
            ).start()

    def _serve(self, sock: socket.socket, address: str, caller: Caller) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            channel, task = self._authenticate(sock)
        except (KafkaError, OSError) as error:
            sock.close()
            self._callers.log_rejected(address, error)
            return
        finally:
            caller.close()
        channel.deadline, channel.seconds = None, SILENCE_SECONDS
        link = TaskConnection(channel, address)
        peer = self._admit(task, link)
        if peer is None:
            self._callers.log_rejected(address, f"this worker does not run task {task}")
            link.close()
            return
        enter_place(place_of_label(task) or NOWHERE)
        self._serve_messages(task, link, peer)

    def _authenticate(self, sock: socket.socket) -> tuple[TlsSocket, str]:
        """Find out who connects, within a time limit."""
        channel = accept_tls(sock, self._identity.context, HELLO_SECONDS)
        try:
            return channel, authenticate_task(channel, self._secret_of)
        except KafkaError:
            channel.close()
            raise

    def _secret_of(self, task: str) -> str:
        return task_secret(self._secret, task)

    def _admit(self, task: str, link: TaskConnection) -> TaskPeer | None:
        with self._lock:
            peer = self._peers.get(task)
            older = self._links.get(task)
            if peer is not None:
                self._links[task] = link
        if peer is not None and older is not None:
            log.warning("task %s runs again on %s; the older attempt is cut off", task, link.peer)
            older.close()
        return peer

    def _serve_messages(self, task: str, link: TaskConnection, peer: TaskPeer) -> None:
        try:
            if self._has_started(task, link, peer):
                while True:
                    self._take(task, link, peer, link.receive())
        except KafkaError as error:
            log.debug("control link of task %s ended: %s", task, error)
        finally:
            with self._lock:
                if self._links.get(task) is link:
                    del self._links[task]
            link.close()
            peer.on_gone(link)

    def _take(self, task: str, link: TaskConnection, peer: TaskPeer, message: LinkMessage) -> None:
        if message.get("type") == RENEW:
            link.send(renewal_response(message, self._lend_to(task)))
        else:
            peer.on_message(link, message)

    def _lend_to(self, task: str) -> float | None:
        """How many seconds it may write; the end is remembered before the task can know of it.

        The task counts from its request, which it sent before now.
        """
        with self._lock:
            seconds = self._leases.get(task, lambda: 0.0)()
            end = math.inf if seconds is None else self._clock() + seconds
            if seconds != 0.0:
                self._lease_ends[task] = max(end, self._lease_ends.get(task, end))
        return seconds

    def _drop_ended_leases(self) -> None:
        limit = self._clock() - ON_ITS_WAY_SECONDS
        self._lease_ends = {task: end for task, end in self._lease_ends.items() if end > limit}

    @staticmethod
    def _has_started(task: str, link: TaskConnection, peer: TaskPeer) -> bool:
        """Send the start message; without one, the task gets the reason and fails with it."""
        try:
            peer.on_hello(link)
        except MirrorError as error:
            log.warning("[%s] has no start message: %s", task, error)
            link.send({"type": REFUSED, "reason": str(error)})
            return False
        return True


def _listen_on(bind: str, port: int) -> socket.socket:
    try:
        return socket.create_server((bind, port), family=socket.AF_INET, backlog=128)
    except OSError as error:
        text = f"listen for tasks on {bind}:{port}: {error}; choose another address or port"
        raise TransportError(text) from error
