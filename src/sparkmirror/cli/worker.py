"""`sparkmirror worker FILE`: Connect mode, as connect-distributed.sh runs it."""

from __future__ import annotations

import logging
import socket
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from sparkmirror.cli.service import EXIT_UNCLEAN, set_up_log, stop_on_signals
from sparkmirror.config.rest_keys import Listener
from sparkmirror.config.worker_file import WorkerFile, load_worker
from sparkmirror.connect.distributed import DistributedWorker
from sparkmirror.rest.app import make_app
from sparkmirror.rest.calls import RestOptions
from sparkmirror.rest.server import RestServer

log = logging.getLogger("sparkmirror")

READY_SECONDS = 0.1
LOOK_SECONDS = 1.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker")(worker)


def worker(
    file: Annotated[
        Path, typer.Argument(help="A connect-distributed.properties file.", metavar="FILE")
    ],
    log_level: Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
) -> None:
    """Run a Connect worker with the three Mirror connectors until SIGTERM or Ctrl-C."""
    config = load_worker(file)
    set_up_log(log_level)
    stop = stop_on_signals()
    if not serve(config, stop):
        raise typer.Exit(EXIT_UNCLEAN)


def serve(config: WorkerFile, stop: threading.Event) -> bool:
    """Run the worker until `stop`; tells whether everything was committed."""
    for warning in config.warnings:
        log.warning("%s", warning)
    began = time.monotonic()
    servers = _servers(config)
    try:
        own_url = _own_url(config, servers[0][0].bind().ports[0])
        distributed = DistributedWorker(config, own_url)
        try:
            for server, options in servers:
                server.start(make_app(distributed.herder, options))
            distributed.start()
            _wait_until_ready(distributed, stop)
            log.info(
                "worker of group %s is ready at %s after %.1f s",
                config.group.group_id,
                own_url,
                time.monotonic() - began,
            )
            while not stop.wait(LOOK_SECONDS):
                distributed.check_alive()
        finally:
            clean = distributed.stop()
    finally:
        for server, _ in servers:
            server.stop()
    log.info("stopped%s", "" if clean else ", but not all positions could be stored")
    return clean


def _wait_until_ready(distributed: DistributedWorker, stop: threading.Event) -> None:
    """Until somebody leads the group, which may be this worker: then GET /health says so too."""
    while not distributed.membership.leader_url and not stop.wait(READY_SECONDS):
        distributed.check_alive()


def _servers(config: WorkerFile) -> list[tuple[RestServer, RestOptions]]:
    """The public one, and one for /admin if that is elsewhere."""
    rest = config.rest
    admin = rest.admin_listeners
    servers = [(_server(rest.listeners), _options(config, main=True, admin=admin is None))]
    if admin:
        servers.append((_server(admin), _options(config, main=False, admin=True)))
    return servers


def _server(listeners: tuple[Listener, ...]) -> RestServer:
    return RestServer([(listener.host, listener.port) for listener in listeners])


def _options(config: WorkerFile, *, main: bool, admin: bool) -> RestOptions:
    return RestOptions(
        main=main,
        admin=admin,
        topic_tracking=config.topic_tracking,
        topic_tracking_reset=config.topic_tracking_reset,
        allow_origin=config.rest.allow_origin,
        allow_methods=config.rest.allow_methods,
        response_headers=config.rest.response_headers,
    )


def _own_url(config: WorkerFile, port: int) -> str:
    """Where other workers and users find this one."""
    told = config.rest.advertised(socket.gethostname(), port)
    host = f"[{told.host}]" if ":" in told.host else told.host
    return f"{told.scheme}://{host}:{told.port}/"
