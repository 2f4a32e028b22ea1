"""`sparkmirror worker [FILE]`: Connect mode, as connect-distributed.sh runs it.

Without a file it replaces the images of Confluent and Debezium: CONNECT_* variables are its
settings. One of the places that read the environment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.service import (
    EXIT_UNCLEAN,
    LogFormatOption,
    change_format,
    set_up_log,
    stop_on_signals,
)
from sparkmirror.config.worker.environment import connect_names, remove_variables
from sparkmirror.config.worker.image_variables import jvm_warnings
from sparkmirror.config.worker.log_variables import ROOT, LevelVariable
from sparkmirror.config.worker.worker_file import WorkerFile, load_worker, load_worker_variables
from sparkmirror.connect.runtime.loggers import WorkerLoggers
from sparkmirror.spark.machine import java_program

LOG_LEVEL = "INFO"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker")(worker)


def worker(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A connect-distributed.properties file; default: the environment variables "
            "CONNECT_*.",
            metavar="FILE",
        ),
    ] = None,
    log_level: Annotated[
        str | None,
        typer.Option(
            help="DEBUG, INFO, WARNING or ERROR; default: INFO, or CONNECT_LOG4J_ROOT_LOGLEVEL "
            "without FILE."
        ),
    ] = None,
    log_format: LogFormatOption = None,
) -> None:
    """Run a Connect worker with the three Mirror connectors until SIGTERM or Ctrl-C."""
    set_up_log(log_level or LOG_LEVEL, log_format)
    config = _load(file)
    if log_format is None:
        _use_format_of(config)
    _set_levels(config.log_levels, except_root=log_level is not None)
    java_program()  # checked now: Spark would fail without it only when a connector starts
    stop = stop_on_signals()
    from sparkmirror.cli.serving import serve

    if not serve(config, stop):
        raise typer.Exit(EXIT_UNCLEAN)


def _load(file: Path | None) -> WorkerFile:
    """Read the settings and remove them from the environment, which Spark inherits."""
    if file is None:
        config = load_worker_variables(os.environ)
    else:
        config = _warn_ignored(load_worker(file), connect_names(os.environ))
        config = replace(config, warnings=(*config.warnings, *jvm_warnings(os.environ)))
    remove_variables(os.environ)
    return config


def _warn_ignored(config: WorkerFile, names: Sequence[str]) -> WorkerFile:
    if not names:
        return config
    text = f"only {config.path} is used; these variables are ignored: {', '.join(names)}"
    return replace(config, warnings=(text, *config.warnings))


def _use_format_of(config: WorkerFile) -> None:
    change_format(config.log_format)


def _set_levels(levels: Sequence[LevelVariable], *, except_root: bool) -> None:
    loggers = WorkerLoggers()
    for logger, level in levels:
        if logger != ROOT or not except_root:
            loggers.change(logger, level)
