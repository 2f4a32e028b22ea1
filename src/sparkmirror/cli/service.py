"""Log and signal handling of long-running commands."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from types import FrameType
from typing import TextIO

import typer

from sparkmirror.config.masking import MaskingFormatter

log = logging.getLogger("sparkmirror")

EXIT_UNCLEAN = 1
EXIT_INTERRUPTED_AGAIN = 130
LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the current stderr, because the live display replaces it while it is shown."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        """Fixed by the property."""


def set_up_log(level: str) -> None:
    """Log our own lines from `level` on, and only warnings of libraries."""
    names = logging.getLevelNamesMapping()
    if level.upper() not in names:
        raise typer.BadParameter(f"{level}: use one of DEBUG, INFO, WARNING, ERROR")
    handler = StderrHandler()
    handler.setFormatter(MaskingFormatter(LOG_FORMAT))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("sparkmirror").setLevel(names[level.upper()])


def stop_on_signals() -> threading.Event:
    """The first SIGTERM or Ctrl-C stops in order, the second at once."""
    stop = threading.Event()

    def on_signal(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            log.warning("stopping at once")
            sys.exit(EXIT_INTERRUPTED_AGAIN)
        log.info("%s: committing and stopping", signal.Signals(number).name)
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
