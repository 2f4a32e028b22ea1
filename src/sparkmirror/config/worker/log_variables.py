"""Log levels from the variables of Confluent's and Debezium's images.

Decides which logger gets which level; `connect/runtime/loggers.py` maps Connect's loggers to ours.
Runs on: worker, once, at the start.

    CONNECT_LOG4J_ROOT_LOGLEVEL=WARN                               Confluent
    CONNECT_LOG4J_LOGGERS=org.apache.kafka.connect=DEBUG,org.reflections=ERROR
    CONNECT_LOG4J_LOGGERS=INFO, stdout                             Debezium: log4j's root logger
    CONNECT_LOG4J_LOGGER_ORG_APACHE_KAFKA_CONNECT=DEBUG            Debezium
    LOG_LEVEL=DEBUG                                                Debezium
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sparkmirror.config.files.variable_names import key_of
from sparkmirror.config.findings import Findings

# Connect's words, as PUT /admin/loggers takes them.
LEVELS = ("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL")
ROOT = "root"
ROOT_LEVEL = "CONNECT_LOG4J_ROOT_LOGLEVEL"
LOGGERS = "CONNECT_LOG4J_LOGGERS"
ONE_LOGGER = "CONNECT_LOG4J_LOGGER_"
DEBEZIUM_LEVEL = "LOG_LEVEL"


class LevelVariable(NamedTuple):
    """A logger, under Connect's name, and its level."""

    logger: str
    level: str


def is_log_level(name: str) -> bool:
    """Whether the variable, with Connect's prefix, sets levels."""
    return name in (ROOT_LEVEL, LOGGERS) or (name.startswith(ONE_LOGGER) and name != ONE_LOGGER)


def log_levels(
    environ: Mapping[str, str], findings: Findings, *, is_debezium: bool
) -> tuple[LevelVariable, ...]:
    """The levels in the order to set them: the root's first, because it applies to all."""
    names = [DEBEZIUM_LEVEL] if is_debezium else []
    names += sorted(filter(is_log_level, environ))
    found = [
        level
        for name in names
        for level in _levels(name, _bare(environ.get(name, "")))
        if _is_known(level, name, findings)
    ]
    return tuple(sorted(found, key=lambda each: each.logger != ROOT))


def _levels(name: str, text: str) -> Iterator[LevelVariable]:
    """The levels in one variable; of words without a logger, the first is a level."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    pairs = [part.rpartition("=") for part in parts]
    words = [word for _, equals, word in pairs if not equals]
    if words:
        logger = key_of(name.removeprefix(ONE_LOGGER)) if name.startswith(ONE_LOGGER) else ROOT
        yield LevelVariable(logger, words[0].upper())
    for logger, equals, level in pairs:
        if equals:
            yield LevelVariable(logger.strip(), level.strip().upper())


def _is_known(given: LevelVariable, name: str, findings: Findings) -> bool:
    if given.level in LEVELS:
        return True
    about = "" if given.logger == ROOT else f" for {given.logger}"
    reason = f"'{given.level}'{about} is not a log level"
    findings.error(name, None, reason, f"use one of {', '.join(LEVELS)}")
    return False


def _bare(text: str) -> str:
    """The value without the quotes that compose files may leave around it."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
