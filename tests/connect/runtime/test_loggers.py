"""Levels of loggers, by our names and by Connect's."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from sparkmirror.connect.runtime.loggers import ALIASES, LIBRARIES, WorkerLoggers

MIRROR = "org.apache.kafka.connect.mirror"


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """All as they were, afterwards."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("sparkmirror")]
    touched = (None, MIRROR, *LIBRARIES, *names, *ALIASES.values())
    found = [logging.getLogger(name) for name in touched]
    before = [(logger, logger.level) for logger in found]
    yield
    for logger, level in before:
        logger.setLevel(level)


def test_a_package_is_set_with_all_below_it() -> None:
    loggers = WorkerLoggers()
    changed = loggers.change(MIRROR, "DEBUG")
    assert changed == sorted({MIRROR, *(name for name in ALIASES if name.startswith(MIRROR))})
    assert (
        logging.getLogger("sparkmirror.connect.source.mirror_source_connector").level
        == logging.DEBUG
    )
    levels = {name: level.level for name, level in loggers.all().items() if name in changed}
    assert set(levels.values()) == {"DEBUG"}


def test_root_is_everything() -> None:
    loggers = WorkerLoggers()
    changed = loggers.change("root", "OFF")
    assert {"root", *ALIASES} <= set(changed)
    assert logging.getLogger().level > logging.CRITICAL


@pytest.mark.parametrize("name", ["root", "kafka", "py4j", "py4j.java_gateway", "httpcore"])
def test_libraries_do_not_write_down_what_they_send(name: str) -> None:
    loggers = WorkerLoggers()
    for level in ("TRACE", "DEBUG", "INFO"):
        loggers.change(name, level)
        logger = logging.getLogger(None if name == "root" else name)
        assert logger.level == logging.WARNING
    assert logging.getLogger("kafka.conn").getEffectiveLevel() >= logging.WARNING


def test_root_at_debug_shows_our_own_lines() -> None:
    WorkerLoggers().change("root", "DEBUG")
    assert logging.getLogger("sparkmirror").getEffectiveLevel() == logging.DEBUG


def test_nobody_has_changed_what_nobody_set() -> None:
    logging.getLogger("sparkmirror.wire").setLevel(logging.INFO)
    level = WorkerLoggers().get("org.apache.kafka.clients")
    assert level is not None
    assert (level.level, level.last_modified) == ("INFO", None)


def test_the_root_is_as_loud_as_our_own_lines() -> None:
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("sparkmirror").setLevel(logging.INFO)
    level = WorkerLoggers().get("root")
    assert level is not None
    assert level.level == "INFO"


def test_a_logger_that_was_set_is_there_and_no_other() -> None:
    loggers = WorkerLoggers()
    assert loggers.get("sparkmirror.some.thing") is None
    assert loggers.change("sparkmirror.some.thing", "ERROR") == ["sparkmirror.some.thing"]
    level = loggers.get("sparkmirror.some.thing")
    assert level is not None
    assert level.level == "ERROR"
