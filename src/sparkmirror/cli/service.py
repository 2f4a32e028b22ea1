"""What commands have in common that run until they are told to stop: their log, and signals."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Generic, TextIO, TypeVar

import typer

from sparkmirror.config.masking import MaskingFormatter

log = logging.getLogger("sparkmirror")

EXIT_UNCLEAN = 1
EXIT_INTERRUPTED_AGAIN = 130
# How soon a stop is noticed while something starts.
LOOK_SECONDS = 0.1
LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"

T = TypeVar("T")


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what stderr is at the moment: the live display puts log lines above its own."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        """Fixed by the property."""


def set_up_log(level: str) -> None:
    """Our own lines from `level` on, of others only warnings."""
    names = logging.getLevelNamesMapping()
    if level.upper() not in names:
        raise typer.BadParameter(f"{level}: use one of DEBUG, INFO, WARNING, ERROR")
    handler = StderrHandler()
    handler.setFormatter(MaskingFormatter(LOG_FORMAT))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("sparkmirror").setLevel(names[level.upper()])


class Background(Generic[T]):
    """Work on a thread of its own, which a process that is told to stop does not wait for."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name="start", daemon=True)
        self._thread.start()

    def wait(self, stop: threading.Event) -> T | None:
        """The result, or None when `stop` came first; raises what the work raised."""
        while self._thread.is_alive():
            self._thread.join(LOOK_SECONDS)
            if stop.is_set():
                return None
        for error in self._errors:
            raise error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised on the thread that waits
            self._errors.append(error)


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
