"""`sparkmirror run FILE`: dedicated mode, as connect-mirror-maker.sh runs it."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated, TextIO

import typer

from sparkmirror.cli.flow_display import FlowDisplay
from sparkmirror.config.mm2 import MirrorMakerConfig, load_mm2
from sparkmirror.connect.dedicated import DedicatedMirror

log = logging.getLogger("sparkmirror")

EXIT_UNCLEAN = 1
EXIT_INTERRUPTED_AGAIN = 130
LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"
STATUS_SECONDS = 1.0


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what stderr is at the moment: the live display puts log lines above its own."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        """Fixed by the property."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(
    file: Annotated[Path, typer.Argument(help="An mm2.properties file.", metavar="FILE")],
    clusters: Annotated[
        list[str] | None,
        typer.Option("--clusters", help="Only flows into this cluster; may be given again."),
    ] = None,
    log_level: Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
) -> None:
    """Mirror the flows of FILE until SIGTERM or Ctrl-C."""
    config = load_mm2(file, tuple(clusters or ()))
    _set_up_log(log_level)
    stop = _stop_on_signals()
    clean = mirror(config, stop)
    if not clean:
        raise typer.Exit(EXIT_UNCLEAN)


def mirror(config: MirrorMakerConfig, stop: threading.Event) -> bool:
    """Run the flows until `stop`; tells whether everything was committed."""
    for warning in config.warnings:
        log.warning("%s", warning)
    log.info("flows: %s", ", ".join(str(flow.name) for flow in config.flows))
    dedicated = DedicatedMirror(config)
    try:
        dedicated.start()
        with FlowDisplay(
            dedicated.connectors,
            sys.stderr.isatty(),
            worker_side=dedicated.worker_connectors,
        ) as display:
            while not stop.wait(STATUS_SECONDS):
                display.update()
                dedicated.check_slots()
    finally:
        clean = dedicated.stop()
    log.info("stopped%s", "" if clean else ", but not all positions could be stored")
    return clean


def _set_up_log(level: str) -> None:
    names = logging.getLevelNamesMapping()
    if level.upper() not in names:
        raise typer.BadParameter(f"{level}: use one of DEBUG, INFO, WARNING, ERROR")
    logging.basicConfig(handlers=[StderrHandler()], format=LOG_FORMAT, level=logging.WARNING)
    logging.getLogger("sparkmirror").setLevel(names[level.upper()])


def _stop_on_signals() -> threading.Event:
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
