"""Spark's start is waited for by those who need it, and by nobody who stops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sparkmirror.connect.runtime import worker as spark_host
from sparkmirror.connect.runtime.worker import Worker
from sparkmirror.errors import MirrorError
from tests.clusters import wait_for


class FakeEngine:
    """Starts when the test lets it."""

    may_start = threading.Event()
    is_local = True
    error: MirrorError | None = None
    alive = 0
    most = 0
    master = "local"
    link_address = ("127.0.0.1", 0)

    def __init__(self, *_: object) -> None:
        type(self).alive += 1
        type(self).most = max(self.most, self.alive)
        self.may_start.wait()
        if self.error is not None:
            type(self).alive -= 1
            raise self.error

    def warm_up(self) -> None:
        """There is nothing to load."""

    def stop(self) -> None:
        type(self).alive -= 1

    def close(self) -> None:
        """As a link server."""


class FakeLinks:
    """Nobody calls in."""

    def __init__(self, *_: object) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    kind = type("Engine", (FakeEngine,), {"may_start": threading.Event()})
    monkeypatch.setattr(spark_host, "SparkEngine", kind)
    monkeypatch.setattr(spark_host, "LinkServer", FakeLinks)
    yield kind
    kind.may_start.set()  # type: ignore[attr-defined]


def wait_until(done: Any) -> None:
    wait_for(done, within=10.0, describe=lambda: "Spark's start")


def test_all_who_ask_get_the_same_spark(engine: Any) -> None:
    host = Worker({})
    engine.may_start.set()
    assert host.get() is host.get()
    host.close()
    assert engine.alive == 0


def test_whoever_waits_is_told_when_it_is_given_up(engine: Any) -> None:
    host = Worker({})
    errors: list[str] = []

    def ask() -> None:
        try:
            host.get()
        except MirrorError as error:
            errors.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: engine.alive == 1)
    host.give_up_start()
    thread.join(10.0)
    assert errors == ["Spark is not started: this process stops"]
    # What still starts ends as soon as it is up.
    engine.may_start.set()
    wait_until(lambda: engine.alive == 0)


def test_a_new_start_waits_for_the_end_of_the_one_before(engine: Any) -> None:
    host = Worker({})
    host.begin()
    wait_until(lambda: engine.alive == 1)
    host.close()
    host.begin()
    engine.may_start.set()
    host.get()
    assert engine.most == 1
    host.close()


def test_a_start_that_failed_is_told_and_tried_again(engine: Any) -> None:
    host = Worker({})
    engine.may_start.set()
    engine.error = MirrorError("no Java")
    with pytest.raises(MirrorError, match="no Java"):
        host.get()
    engine.error = None
    host.get()
    host.close()


def test_a_failure_is_noticed_by_those_who_do_not_wait(engine: Any) -> None:
    host = Worker({})
    engine.may_start.set()
    engine.error = MirrorError("no Java")
    host.raise_failure()
    start = host.begin()
    start.thread.join(10.0)
    with pytest.raises(MirrorError, match="no Java"):
        host.raise_failure()


@pytest.mark.parametrize("is_local", [True, False])
def test_only_executors_elsewhere_are_given_back(engine: Any, is_local: bool) -> None:
    host = Worker({})
    engine.may_start.set()
    engine.is_local = is_local
    host.get()
    host.close_if_elsewhere()
    assert engine.alive == int(is_local)
    host.close()


def test_slots_of_a_cluster_come_with_its_executors(engine: Any) -> None:
    assert Worker({}).slots == 256
    host = Worker({"spark.master": "spark://h:7077"}, 8)
    engine.is_local, engine.has_dynamic_executors, engine.slots = False, False, 3
    assert host.slots == 0
    engine.may_start.set()
    host.get()
    assert host.slots == 3
    engine.has_dynamic_executors = True
    assert host.slots == 8
    host.close()
