"""Keys of a worker's file for its log."""

from __future__ import annotations

import enum

from sparkmirror.config.config_def import Definition, Key, Type


class LogFormat(enum.StrEnum):
    """How the log is written."""

    TEXT = "text"
    JSON = "json"


LOG_FORMAT = "sparkmirror.log.format"
LOG_KEYS = Definition(
    Key(
        name=LOG_FORMAT,
        type=Type.STRING,
        default=LogFormat.TEXT.value,
        one_of=tuple(each.value for each in LogFormat),
        doc="The form of the log: lines for people, or one JSON object per line. `--log-format` "
        "and the variable `SPARKMIRROR_LOG_FORMAT` override it.",
    )
)
