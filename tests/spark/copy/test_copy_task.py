"""What a task reveals when it fails or warns: Spark and the worker's log show it to all users."""

from __future__ import annotations

import base64
import logging
import queue
from collections.abc import Iterator

import pytest

from sparkmirror.config.masking import HIDDEN, remember
from sparkmirror.errors import KafkaError, MirrorError, RefusedError
from sparkmirror.spark.copy import copy_task
from sparkmirror.spark.copy.copy_task import copy_until_stopped
from sparkmirror.spark.link.client import LinkClient
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.server import LinkServer, TaskConnection
from sparkmirror.spark.task_config import CopyTaskConfig, parse_start
from sparkmirror.wire import secret_files

WAIT_SECONDS = 20.0
PLANTED = "planted-in-a-task-1"


class Worker:
    """Sends the task `t` this start message; keeps what the task sends."""

    def __init__(self, start_message: LinkMessage) -> None:
        self.received: queue.Queue[LinkMessage] = queue.Queue()
        self._start_message = start_message

    def on_hello(self, link: TaskConnection) -> None:
        link.send(self._start_message)

    def on_message(self, link: TaskConnection, message: LinkMessage) -> None:
        self.received.put(message)

    def on_gone(self, link: TaskConnection) -> None:
        """Nothing to do."""


@pytest.fixture
def server() -> Iterator[LinkServer]:
    remember(PLANTED)
    server = LinkServer("127.0.0.1")
    yield server
    server.close()
    secret_files.forget_provided()


@pytest.fixture
def worker(server: LinkServer) -> Worker:
    worker = Worker({"type": "start"})
    server.expect("t", worker)
    return worker


def run(server: LinkServer, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A task that warns, and then fails like that."""

    def fail(_: LinkClient) -> None:
        logging.getLogger("sparkmirror.spark").warning("a warning with %s", PLANTED)
        raise error

    monkeypatch.setattr(copy_task, "CopyTask", fail)
    copy_until_stopped(server.token("127.0.0.1", "t"))


def test_an_error_with_a_secret_ends_the_task_without_it(
    server: LinkServer, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MirrorError) as caught:
        run(server, monkeypatch, ValueError(f"cannot parse {PLANTED}"))
    assert str(caught.value) == f"ValueError: cannot parse {HIDDEN}"
    assert caught.value.__suppress_context__


def test_a_secret_of_an_earlier_error_is_not_shown_either(
    server: LinkServer, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = KafkaError("log in")
    error.__cause__ = ValueError(PLANTED)
    with pytest.raises(MirrorError, match=r"^KafkaError: log in$") as caught:
        run(server, monkeypatch, error)
    assert caught.value.__cause__ is None


def test_any_other_error_is_as_it_is(
    server: LinkServer, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RefusedError, match="offsets 1 to 2"):
        run(server, monkeypatch, RefusedError("offsets 1 to 2"))


def test_a_warning_reaches_the_worker_without_the_secret(
    server: LinkServer, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RefusedError):
        run(server, monkeypatch, RefusedError("the end"))
    received = worker.received.get(timeout=WAIT_SECONDS)
    assert received == {
        "type": "log",
        "level": logging.WARNING,
        "text": f"a warning with {HIDDEN}",
        "template": "a warning with %s",
        "logger": "sparkmirror.spark",
    }


def test_files_of_the_start_message_exist_as_long_as_the_task(
    server: LinkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bytes] = []

    def read_settings(message: LinkMessage) -> CopyTaskConfig:
        found.append(secret_files.read_file("/no/such.jks"))
        return parse_start(message)

    monkeypatch.setattr(copy_task, "parse_start", read_settings)
    data = base64.b64encode(b"a store").decode()
    server.expect("t", Worker({"type": "start", "files": {"/no/such.jks": data}}))
    with pytest.raises(KeyError, match="worker"):  # this start message has no settings
        copy_until_stopped(server.token("127.0.0.1", "t"))
    assert found == [b"a store"]
    assert secret_files.stamp("/no/such.jks") is None
