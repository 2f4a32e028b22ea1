"""What repeats is limited, counted and never lost."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import pytest

from sparkmirror.config import masking
from sparkmirror.config.masking import HIDDEN
from sparkmirror.logs.located_text import TEMPLATE
from sparkmirror.logs.log_format import JsonFormatter, LineFormatter
from sparkmirror.logs.log_handler import StderrHandler
from sparkmirror.logs.places import LogPlace, at_place
from sparkmirror.logs.repeats import MOST_A_MINUTE, MOST_KEYS, REPEATED, RepeatLimiter
from tests.clusters import wait_for
from tests.logs.records import make_record

MOST = 3
WARNING, ERROR = logging.WARNING, logging.ERROR


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limiter(clock: Clock) -> RepeatLimiter:
    return RepeatLimiter(clock, MOST)


@pytest.fixture
def quiet() -> Iterator[None]:
    """INFO for the loggers of the tests, whatever other tests have set."""
    logger = logging.getLogger("sparkmirror")
    before = logger.level
    logger.setLevel(logging.INFO)
    yield
    logger.setLevel(before)


pytestmark = pytest.mark.usefixtures("quiet")


def texts(limiter: RepeatLimiter, *records: logging.LogRecord) -> list[str]:
    return [found.getMessage() for record in records for found in limiter.take(record)]


def gone(topic: object, level: int = WARNING) -> logging.LogRecord:
    return make_record("topic '%s' has been deleted", topic, level=level)


def test_more_of_one_template_are_counted(limiter: RepeatLimiter, clock: Clock) -> None:
    assert len(texts(limiter, *map(gone, range(60)))) == MOST
    clock.now += 59.9
    assert texts(limiter, make_record("something else")) == ["something else"]
    clock.now += 0.2
    assert texts(limiter, gone("x")) == [
        "repeated 57 times in the last minute: topic '3' has been deleted",
        "topic 'x' has been deleted",
    ]


def test_places_and_levels_are_counted_apart(limiter: RepeatLimiter) -> None:
    for number in range(3):
        with at_place(LogPlace("mirror", number, "a->b")):
            assert len(texts(limiter, *map(gone, range(9)))) == MOST
    assert len(texts(limiter, *(gone(each, logging.INFO) for each in range(9)))) == MOST


def test_each_error_appears_when_it_is_new(limiter: RepeatLimiter, clock: Clock) -> None:
    errors = [gone(number % 20, ERROR) for number in range(100)]
    shown = texts(limiter, *errors)
    assert {f"topic '{number}' has been deleted" for number in range(20)} <= set(shown)
    clock.now += 60
    (line,) = limiter.due()
    assert line.__dict__[REPEATED] == len(errors) - len(shown)
    assert (line.levelno, line.name) == (ERROR, "sparkmirror.x")


def test_texts_without_words_of_their_own_are_compared_by_shape(limiter: RepeatLimiter) -> None:
    def line(text: str) -> logging.LogRecord:
        return make_record("[%s] %s", "a->b", text, level=WARNING)

    same = [line(f"topic 't{number}' has {number} partitions") for number in range(10)]
    others = [line(word) for word in ("one", "two", "three", "four", "five")]
    assert len(texts(limiter, *same)) == MOST
    assert len(texts(limiter, *others)) == len(others)


def test_lines_of_executors_are_compared_by_their_own_template(limiter: RepeatLimiter) -> None:
    def line(text: str) -> logging.LogRecord:
        extra = {TEMPLATE: "skipped because of %s"}
        return make_record("[%s] %s", "a->b|m-0", text, level=WARNING, extra=extra)

    assert len(texts(limiter, *(line(f"skipped because of {w}") for w in "abcdef"))) == MOST


def test_debug_shows_everything(limiter: RepeatLimiter) -> None:
    logging.getLogger("sparkmirror").setLevel(logging.DEBUG)
    assert len(texts(limiter, *map(gone, range(100)))) == 100


def test_memory_is_bounded_and_nothing_uncounted(limiter: RepeatLimiter, clock: Clock) -> None:
    choose = random.Random(7)
    shown = counted = 0
    for _ in range(20_000):
        number = int(choose.paretovariate(0.4)) % (3 * MOST_KEYS)
        clock.now += 0.001
        for found in limiter.take(make_record(f"template with words {number * '.'} %s", 1)):
            times = found.__dict__.get(REPEATED)
            shown, counted = (shown + 1, counted) if times is None else (shown, counted + times)
        assert len(limiter._windows) <= MOST_KEYS
    counted += sum(found.__dict__[REPEATED] for found in limiter.end())
    assert shown + counted == 20_000
    assert list(limiter.end()) == []


def test_a_secret_that_is_forgotten_stays_hidden(limiter: RepeatLimiter, clock: Clock) -> None:
    owner = object()
    with masking.owned_by(owner):
        masking.remember("planted-word-9")
    texts(limiter, *(gone("planted-word-9") for _ in range(5)))
    masking.forget_owner(owner)
    clock.now += 61
    (line,) = limiter.due()
    assert line.getMessage() == (
        f"repeated 2 times in the last minute: topic '{HIDDEN}' has been deleted"
    )


def test_counts_keep_their_place(limiter: RepeatLimiter, clock: Clock) -> None:
    with at_place(LogPlace("mirror", 0, "a->b")):
        texts(limiter, *(make_record("[%s] has no leader", "a->b|mirror-0") for _ in range(4)))
    clock.now += 60
    (line,) = limiter.due()
    text = "repeated once more in the last minute: has no leader"
    assert LineFormatter().format(line).endswith(f" INFO [mirror|task-0] a->b: {text}")
    assert '"task": 0' in JsonFormatter().format(line)
    assert '"repeated": 1' in JsonFormatter().format(line)


def test_a_storm_ends_with_its_count(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    handler = StderrHandler(RepeatLimiter(clock, MOST))
    for number in range(10):
        handler.handle(gone(number))
    handler.close()
    *lines, last = capsys.readouterr().err.splitlines()
    assert len(lines) == MOST
    assert last == "repeated 7 times in the last minute: topic '3' has been deleted"


def test_counts_come_when_no_other_line_does(
    capsys: pytest.CaptureFixture[str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkmirror.logs.repeats.WINDOW_SECONDS", 0.05)
    handler = StderrHandler(RepeatLimiter(most_a_minute=MOST))
    for number in range(10):
        handler.handle(gone(number))
    said = ""

    def has_count() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return "repeated " in said

    wait_for(has_count, within=10)
    handler.close()


def test_a_line_a_second_is_no_storm() -> None:
    assert MOST_A_MINUTE >= 60
