"""Log and signal handling of long-running commands. One of the places that read the environment."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from types import FrameType
from typing import Annotated

import typer

from sparkmirror.config.worker.log_keys import LogFormat
from sparkmirror.logs.log_handler import formatter_for, install, own_handler, writes_json

log = logging.getLogger("sparkmirror")

EXIT_UNCLEAN = 1
EXIT_INTERRUPTED_AGAIN = 130
LOG_FORMAT_VARIABLE = "SPARKMIRROR_LOG_FORMAT"
LogFormatOption = Annotated[
    LogFormat | None,
    typer.Option(
        "--log-format",
        envvar=LOG_FORMAT_VARIABLE,
        help="text (default), or json: one JSON object per line.",
        show_envvar=True,
    ),
]


def set_up_log(level: str, log_format: LogFormat | None = None) -> None:
    """Log our own lines from `level` on, and only warnings of libraries."""
    names = logging.getLevelNamesMapping()
    if level.upper() not in names:
        raise typer.BadParameter(f"{level}: use one of DEBUG, INFO, WARNING, ERROR")
    install(names[level.upper()], formatter_for(log_format or LogFormat.TEXT, os.environ))


def change_format(log_format: LogFormat) -> None:
    """What a file asks for, if the command line says nothing."""
    handler = own_handler()
    if handler is not None:
        handler.setFormatter(formatter_for(log_format, os.environ))


def may_show_live() -> bool:
    """Whether lines may be replaced: for people at a terminal, not for programs."""
    return sys.stderr.isatty() and not writes_json()


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
