"""Log lines that are events, kept for page, REST and CLI."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from sparkmirror.config import masking
from sparkmirror.events import EventKind, event
from sparkmirror.monitoring import event_log
from sparkmirror.monitoring.event_log import FOLD_MS, EventLog, Where

log = logging.getLogger("sparkmirror.test_event_log")


class Kept(EventLog):
    """With a clock of its own."""

    def __init__(self) -> None:
        super().__init__(lambda: self.now)
        self.now = 1000

    def texts(self) -> list[str]:
        return [each.text for each in self.events()]


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler, logger = Kept(), logging.getLogger("sparkmirror")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_an_event_has_the_words_of_its_line(kept: Kept) -> None:
    log.info("no event")
    mark = event(EventKind.CREATED, flow="a->b", topic="a.t", connector="c", user="eve")
    log.info("created topic '%s' on '%s'", "a.t", "b", extra=mark)
    (found,) = kept.events()
    assert found.text == "created topic 'a.t' on 'b'"
    assert (found.id, found.time_ms, found.kind) == (1, 1000, EventKind.CREATED)
    assert (found.flow, found.topic, found.connector, found.user) == ("a->b", "a.t", "c", "eve")
    assert (found.lasts, found.ended_ms, found.count, found.cause_id) == (False, None, 1, None)
    assert found.level == logging.INFO


def test_secrets_are_masked(kept: Kept) -> None:
    with masking.owned_by("test"):
        masking.remember("hunter2-hunter2")
    log.warning("no login with hunter2-hunter2", extra=event(EventKind.FAILED))
    masking.forget_owner("test")
    assert "hunter2" not in kept.texts()[0]


def test_later_events_are_asked_for_by_id(kept: Kept) -> None:
    for name in "abc":
        log.info("%s", name, extra=event(EventKind.CREATED, topic=name))
    assert [each.text for each in kept.events(since_id=1)] == ["b", "c"]
    assert kept.events(since_id=3) == []


def test_repeats_are_one_event_with_a_count(kept: Kept) -> None:
    for _ in range(3):
        log.warning("skipped", extra=event(EventKind.SKIPPED, topic="t"))
        kept.now += 1000
    log.warning("skipped", extra=event(EventKind.SKIPPED, topic="u"))
    first, second = kept.events()
    assert (first.count, first.time_ms, first.last_ms) == (3, 1000, 3000)
    assert (second.topic, second.count) == ("u", 1)
    kept.now += FOLD_MS + 1000
    log.warning("skipped", extra=event(EventKind.SKIPPED, topic="t"))
    assert [each.count for each in kept.events()] == [3, 1, 1]


def test_what_lasts_is_ended_by_a_later_event(kept: Kept) -> None:
    log.warning("t-0 waits", extra=event(EventKind.STUCK, key="task waiting"))
    log.warning("t-1 waits", extra=event(EventKind.STUCK, key="task waiting"))
    log.warning("other", extra=event(EventKind.STUCK, key="other waiting"))
    assert [each.lasts for each in kept.events()] == [True] * 3
    kept.now = 5000
    log.warning("over", extra=event(EventKind.RECOVERED, key="task waiting", ends=True))
    assert [each.ended_ms for each in kept.events()] == [5000, 5000, None, None]
    assert not kept.events()[-1].lasts
    log.warning("t-0 waits", extra=event(EventKind.STUCK, key="task waiting"))
    again = kept.events()[-1]
    assert (again.id, again.count, again.ended_ms) == (5, 1, None)


def test_an_effect_names_its_cause(kept: Kept) -> None:
    log.error("failed", extra=event(EventKind.FAILED, key="task 0"))
    log.info("moved", extra=event(EventKind.REBALANCED, cause="task 0"))
    log.info("alone", extra=event(EventKind.REBALANCED, cause="task 1"))
    assert [each.cause_id for each in kept.events()] == [None, 1, None]


def test_the_oldest_are_dropped(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "KEPT", 3)
    for number in range(20):
        log.info("%d", number, extra=event(EventKind.CREATED, key=f"key {number}"))
    assert kept.texts() == ["17", "18", "19"]
    assert len(kept._same) <= 6
    assert len(kept._by_key) <= 7
    log.info("end", extra=event(EventKind.GONE, key="key 1", ends=True))
    log.info("effect", extra=event(EventKind.GONE, cause="key 1"))
    assert kept.events()[-1].cause_id is None


def test_a_stream_asks_for_what_has_changed(kept: Kept) -> None:
    log.warning("a", extra=event(EventKind.STUCK, key="k"))
    log.warning("b", extra=event(EventKind.STUCK, topic="t"))
    version = kept.changed(0)[-1].version
    assert kept.changed(version) == []
    log.warning("over", extra=event(EventKind.RECOVERED, key="k", ends=True))
    assert [each.text for each in kept.changed(version)] == ["a", "over"]


def test_of_thousands_at_once_the_first_have_an_event_each(kept: Kept) -> None:
    for number in range(2000):
        log.info("topic %d", number, extra=event(EventKind.CREATED, topic=f"t{number}"))
    assert len(kept.events()) == event_log.MOST_ALIKE + 1
    last = kept.events()[-1]
    assert (last.text, last.count) == ("1950 more, the last: topic 1999", 1950)
    log.info("another flow", extra=event(EventKind.CREATED, flow="a->c"))
    kept.now += event_log.BURST_MS + 1
    log.info("later", extra=event(EventKind.CREATED, topic="later"))
    assert kept.texts()[-2:] == ["another flow", "later"]


def test_the_thread_tells_what_a_mark_leaves_open() -> None:
    handler = EventLog(lambda: 5, lambda: Where("a->b", "c", "1"))
    logger = logging.getLogger("sparkmirror")
    logger.addHandler(handler)
    try:
        log.warning("x", extra=event(EventKind.FAILED, connector="d"))
    finally:
        logger.removeHandler(handler)
    (found,) = handler.events()
    assert (found.flow, found.connector, found.task) == ("a->b", "d", "1")
