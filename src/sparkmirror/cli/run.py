"""`sparkmirror run FILE`: dedicated mode, as connect-mirror-maker.sh runs it."""

from __future__ import annotations

import importlib
import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparkmirror.cli.cluster_words import ClustersCommand
from sparkmirror.cli.service import (
    EXIT_UNCLEAN,
    LogFormatOption,
    may_show_live,
    set_up_log,
    stop_on_signals,
)
from sparkmirror.config.mm2 import MirrorMakerConfig, load_mm2
from sparkmirror.config.worker.image_variables import jvm_warnings
from sparkmirror.connect.background import Background
from sparkmirror.spark.machine import java_program

if TYPE_CHECKING:
    from sparkmirror.connect.dedicated.mirror_maker import MirrorMaker

log = logging.getLogger("sparkmirror")

LOOK_SECONDS = 0.5


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", cls=ClustersCommand)(run)


def run(
    file: Annotated[Path, typer.Argument(help="An mm2.properties file.", metavar="FILE")],
    clusters: Annotated[
        list[str] | None,
        typer.Option(
            "--clusters",
            metavar="ALIAS...",
            help="Run only the flows into these clusters; other nodes run the others.",
        ),
    ] = None,
    resume_only: Annotated[
        bool,
        typer.Option(
            "--resume-only",
            help="Start only if every partition resumes at a stored position; otherwise list the "
            "others.",
        ),
    ] = False,
    log_level: Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    log_format: LogFormatOption = None,
) -> None:
    """Mirror the flows of FILE until SIGTERM or Ctrl-C."""
    set_up_log(log_level, log_format)
    config = load_mm2(file, tuple(clusters or ()))
    for warning in jvm_warnings(os.environ):
        log.warning("%s", warning)
    stop = stop_on_signals()
    _check_java(stop)
    clean = mirror(config, stop, resume_only=resume_only)
    if not clean:
        raise typer.Exit(EXIT_UNCLEAN)


def _check_java(stop: threading.Event) -> None:
    """Spark needs it, and would miss it only after topics were created.

    Asking Java for its version takes as long as a part of the imports, so both happen at once.
    """
    check = Background(java_program)
    importlib.import_module("sparkmirror.connect.dedicated.mirror_maker")
    check.wait(stop)


def mirror(config: MirrorMakerConfig, stop: threading.Event, *, resume_only: bool = False) -> bool:
    """Run the flows until `stop`; tells whether everything was committed."""
    from sparkmirror.connect.dedicated.mirror_maker import MirrorMaker

    for warning in config.warnings:
        log.warning("%s", warning)
    log.info("flows: %s", ", ".join(str(flow.name) for flow in config.flows))
    has_metrics = bool(config.metrics.listeners or config.metrics.otlp_endpoint)
    if config.rest is None and not has_metrics:
        return run_until(stop, MirrorMaker(config, resume_only=resume_only))
    from sparkmirror.cli.serving import serve_node
    from sparkmirror.config.worker.rest_keys import RestConfig

    rest = config.rest or RestConfig(())
    with serve_node(config, rest, resume_only=resume_only) as mirror_maker:
        return run_until(stop, mirror_maker)


def run_until(stop: threading.Event, dedicated: MirrorMaker) -> bool:
    """The same of a mirror that is not started."""
    from sparkmirror.cli.flow_display import FlowDisplay

    try:
        dedicated.start(stop)
        with FlowDisplay(
            dedicated.flows,
            may_show_live(),
            worker_side=lambda: dedicated.thread_tasks,
        ) as display:
            while not stop.wait(LOOK_SECONDS):
                dedicated.look()
                display.update()
    finally:
        clean = dedicated.stop()
    log.info("stopped%s", "" if clean else ", but not all positions could be stored")
    return clean
