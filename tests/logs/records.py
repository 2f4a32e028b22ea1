"""Log records as calls of loggers make them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkmirror.events import FIELD


def make_record(
    template: str,
    *values: object,
    level: int = logging.INFO,
    name: str = "sparkmirror.x",
    extra: Mapping[str, object] | None = None,
) -> logging.LogRecord:
    found = logging.LogRecord(name, level, "x.py", 1, template, values, None)
    found.__dict__.update(extra or {})
    return found


def marked(template: str, *values: object, mark: Mapping[str, object]) -> logging.LogRecord:
    assert list(mark) == [FIELD]
    return make_record(template, *values, extra=mark)
