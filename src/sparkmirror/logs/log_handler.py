"""Writes the log of this process to standard error. Runs on: worker."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import TextIO

from sparkmirror.config.worker.log_keys import LogFormat
from sparkmirror.logs.log_format import JsonFormatter, LineFormatter
from sparkmirror.logs.repeats import RepeatLimiter

OURS = "sparkmirror"


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the current stderr, because the live display replaces it while it is shown."""

    def __init__(self, limiter: RepeatLimiter | None = None) -> None:
        super().__init__()
        self._limiter = limiter or RepeatLimiter()
        self._timer: threading.Timer | None = None

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        """Fixed by the property."""

    def emit(self, record: logging.LogRecord) -> None:
        """Called by logging, one thread at a time."""
        self._write(self._limiter.take(record))
        self._wait_for_counts()

    def close(self) -> None:
        """Called at the end of the process: nothing that was counted is lost."""
        self.acquire()
        try:
            if self._timer is not None:
                self._timer.cancel()
            self._write(self._limiter.end())
        finally:
            self.release()
        super().close()

    def _write(self, records: Iterable[logging.LogRecord]) -> None:
        for record in records:
            super().emit(record)

    def _wait_for_counts(self) -> None:
        """Report what was left out when its minute is over, also if no further line comes."""
        seconds = None if self._timer is not None else self._limiter.seconds_left
        if seconds is not None:
            self._timer = threading.Timer(seconds, self._on_time)
            self._timer.daemon = True
            self._timer.start()

    def _on_time(self) -> None:
        self.acquire()
        try:
            self._timer = None
            self._write(self._limiter.due())
            self._wait_for_counts()
        finally:
            self.release()


def formatter_for(format_: LogFormat, environ: Mapping[str, str]) -> logging.Formatter:
    """Colours are for terminals, unless their user has set NO_COLOR (no-color.org)."""
    if format_ is LogFormat.JSON:
        return JsonFormatter()
    is_terminal = sys.stderr.isatty()
    has_colours = is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return LineFormatter(is_terminal=is_terminal, has_colours=has_colours)


def install(level: int, formatter: logging.Formatter) -> None:
    """Log our own lines from `level` on, and only warnings of libraries."""
    handler = StderrHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger(OURS).setLevel(level)


def writes_json() -> bool:
    """Whether programs read the log of this process, so that nothing else may appear in it."""
    handler = own_handler()
    return handler is not None and isinstance(handler.formatter, JsonFormatter)


def write_as_json(text: str, error: BaseException | None) -> bool:
    """Write why the process ends, at any log level; False if this log is not for programs."""
    handler = own_handler()
    if handler is None or not writes_json():
        return False
    info = None if error is None else (type(error), error, error.__traceback__)
    handler.handle(logging.LogRecord(OURS, logging.ERROR, "", 0, text, None, info))
    return True


def own_handler() -> StderrHandler | None:
    """The handler that `install` has added; None if this process has none."""
    found = (each for each in logging.getLogger().handlers if isinstance(each, StderrHandler))
    return next(found, None)
