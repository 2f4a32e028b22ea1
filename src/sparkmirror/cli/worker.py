"""`sparkmirror worker [FILE]`: Connect mode, as connect-distributed.sh runs it.

Without a file it replaces the images of Confluent and Debezium: CONNECT_* variables are its
settings. One of the places that read the environment.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.flow_display import FlowLog
from sparkmirror.cli.service import EXIT_UNCLEAN, set_up_log, stop_on_signals
from sparkmirror.config.worker.environment import connect_names, take_away
from sparkmirror.config.worker.image_variables import jvm_warnings
from sparkmirror.config.worker.log_variables import ROOT, LevelVariable
from sparkmirror.config.worker.rest_keys import Listener, RestConfig
from sparkmirror.config.worker.rest_security import RestTls
from sparkmirror.config.worker.worker_file import WorkerFile, load_worker, load_worker_variables
from sparkmirror.connect.background import Background
from sparkmirror.connect.runtime.connect_distributed import ConnectDistributed
from sparkmirror.connect.runtime.loggers import WorkerLoggers
from sparkmirror.connect.runtime.running import RunningCheckpoint, RunningHeartbeat, RunningSource
from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.security.login_config import users_path
from sparkmirror.rest.security.tls import client_contexts, listener_context
from sparkmirror.rest.security.users import Users
from sparkmirror.rest.signatures import RequestSigner
from sparkmirror.spark.machine import java_program

log = logging.getLogger("sparkmirror")

OPEN = (
    "%s has no authentication: anyone who can connect can read and change every connector. Bind it "
    "to 127.0.0.1, or set up passwords or TLS client certificates (docs/security.md)"
)
# Word for word as Kafka Connect says it: operators' scripts look for it with `grep Herder`.
HERDER = "[Worker clientId=connect-1, groupId=%s] Herder %s"
LOG_LEVEL = "INFO"
READY_SECONDS = 0.1
LOOK_SECONDS = 1.0

Servers = list[tuple[RestServer, RestOptions]]


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
) -> None:
    """Run a Connect worker with the three Mirror connectors until SIGTERM or Ctrl-C."""
    config = _load(file)
    set_up_log(log_level or LOG_LEVEL)
    _set_levels(config.log_levels, but_root=log_level is not None)
    java_program()  # Spark needs it, and would miss it only when a connector starts
    stop = stop_on_signals()
    if not serve(config, stop):
        raise typer.Exit(EXIT_UNCLEAN)


def _load(file: Path | None) -> WorkerFile:
    """Read the settings and remove them from the environment, which Spark inherits."""
    if file is None:
        config = load_worker_variables(os.environ)
    else:
        config = _beside_variables(load_worker(file), connect_names(os.environ))
        config = replace(config, warnings=(*config.warnings, *jvm_warnings(os.environ)))
    take_away(os.environ)
    return config


def _beside_variables(config: WorkerFile, names: Sequence[str]) -> WorkerFile:
    if not names:
        return config
    text = f"only {config.path} is used; these variables are ignored: {', '.join(names)}"
    return replace(config, warnings=(text, *config.warnings))


def _set_levels(levels: Sequence[LevelVariable], *, but_root: bool) -> None:
    loggers = WorkerLoggers()
    for logger, level in levels:
        if logger != ROOT or not but_root:
            loggers.change(logger, level)


def serve(config: WorkerFile, stop: threading.Event) -> bool:
    """Run the worker until `stop`; returns whether everything was committed."""
    for warning in config.warnings:
        log.warning("%s", warning)
    for listener in config.rest.open_listeners:
        log.warning(OPEN, listener)
    servers = _servers(config, _users(config.rest))
    try:
        own_url = _own_url(config, servers[0][0].bind().ports)
        made = Background(lambda: ConnectDistributed(config, own_url))
        clean = not made.wait(stop) or _run(made.result, config, servers, stop)
    finally:
        for server, _ in servers:
            server.stop()
    log.info("stopped%s", "" if clean else ", but not all positions could be stored")
    return clean


def _run(
    distributed: ConnectDistributed, config: WorkerFile, servers: Servers, stop: threading.Event
) -> bool:
    """Start, serve until `stop`, and stop; returns whether everything was committed."""
    began = time.monotonic()
    is_started = False
    try:
        signer = RequestSigner(config.inter_worker, distributed.configs.session_keys)
        for server, unsigned in servers:
            server.start(make_app(distributed.herder, replace(unsigned, signer=signer)))
        log.info(HERDER, config.group.group_id, "starting")
        is_started = Background(distributed.start).wait(stop)
        if is_started:
            _wait_until_ready(distributed, stop)
            log.info(HERDER, config.group.group_id, "started")
            log.info(
                "worker of group %s is ready at %s after %.1f s",
                config.group.group_id,
                distributed.membership.own_url,
                time.monotonic() - began,
            )
            _look_after(distributed, stop)
    finally:
        # Until it has started it runs no connectors, and may wait for a silent cluster.
        clean = not is_started or distributed.stop()
    return clean


def _look_after(distributed: ConnectDistributed, stop: threading.Event) -> None:
    flow_log = FlowLog()
    while not stop.wait(LOOK_SECONDS):
        distributed.check_alive()
        _show(distributed, flow_log)


def _show(distributed: ConnectDistributed, flow_log: FlowLog) -> None:
    """Only the leader runs connectors; the others have nothing to show."""
    running = distributed.crew.running()
    sources = {name: r.connector for name, r in running.items() if isinstance(r, RunningSource)}
    others = {
        name: r.connector
        for name, r in running.items()
        if isinstance(r, RunningCheckpoint | RunningHeartbeat)
    }
    flow_log.update(sources, others)


def _wait_until_ready(distributed: ConnectDistributed, stop: threading.Event) -> None:
    """Wait until the group has a leader, possibly this worker; then GET /health returns 200."""
    while not distributed.membership.leader_url and not stop.wait(READY_SECONDS):
        distributed.check_alive()


def _users(rest: RestConfig) -> Users | None:
    path = users_path(rest, os.environ.get("KAFKA_OPTS", ""))
    return None if path is None else Users(path, rest.read_only_users)


def _servers(config: WorkerFile, users: Users | None) -> Servers:
    """The public one, and one for /admin if that is elsewhere."""
    rest = config.rest
    admin = rest.admin_listeners
    options = _options(config, users)
    servers = [(_server(rest.listeners, rest.tls), replace(options, admin=admin is None))]
    if admin:
        # As in Connect, pages of other sites must not change log levels.
        options = replace(options, main=False, allow_origin="")
        servers.append((_server(admin, rest.admin_tls), options))
    return servers


def _server(listeners: tuple[Listener, ...], tls: RestTls) -> RestServer:
    context = listener_context(tls) if any(each.is_https for each in listeners) else None
    return RestServer(
        [(each.host, each.port) for each in listeners],
        [context if each.is_https else None for each in listeners],
    )


def _options(config: WorkerFile, users: Users | None) -> RestOptions:
    rest = config.rest
    return RestOptions(
        topic_tracking=config.topic_tracking,
        topic_tracking_reset=config.topic_tracking_reset,
        allow_origin=rest.allow_origin,
        allow_methods=rest.allow_methods,
        response_headers=rest.response_headers,
        max_body_bytes=rest.max_request_bytes,
        max_requests_per_second=rest.max_requests_per_second,
        users=users,
        client_tls=client_contexts(rest.tls),
    )


def _own_url(config: WorkerFile, ports: Sequence[int]) -> str:
    """The address of this worker for other workers and users."""
    rest = config.rest
    told = rest.advertised(socket.gethostname(), ports[rest.listeners.index(rest.public)])
    host = f"[{told.host}]" if ":" in told.host else told.host
    return f"{told.scheme}://{host}:{told.port}/"
