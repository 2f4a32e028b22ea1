"""Runs a worker whose settings have been read: listens, joins its group, copies.

Imported when the worker starts, not for its help, because it imports Spark and the REST server.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sparkmirror.cli.flow_display import FlowLog
from sparkmirror.cli.watching.monitoring import MetricsServer, Monitoring
from sparkmirror.config.mm2 import MirrorMakerConfig
from sparkmirror.config.worker.rest_keys import Listener, RestConfig
from sparkmirror.config.worker.rest_security import RestTls
from sparkmirror.config.worker.worker_file import WorkerFile
from sparkmirror.connect.background import Background
from sparkmirror.connect.dedicated.mirror_maker import MirrorMaker
from sparkmirror.connect.flow_status import running_flows
from sparkmirror.connect.runtime.connect_distributed import ConnectDistributed
from sparkmirror.monitoring.monitored import MonitoredGroup
from sparkmirror.rest.connect_api import make_app
from sparkmirror.rest.mirror_api import MirrorApi
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.rest_server import RestServer
from sparkmirror.rest.security.login_config import users_path
from sparkmirror.rest.security.tls import client_contexts, listener_context
from sparkmirror.rest.security.users import Users
from sparkmirror.rest.signatures import RequestSigner

log = logging.getLogger("sparkmirror")

OPEN = (
    "%s has no authentication: anyone who can connect can read and change every connector. Bind it "
    "to 127.0.0.1, or set up passwords or TLS client certificates (docs/security.md)"
)
# Kafka Connect's exact words: operators' scripts search for them with `grep Herder`.
HERDER = "[Worker clientId=connect-1, groupId=%s] Herder %s"
READY_SECONDS = 0.1
LOOK_SECONDS = 1.0

Servers = list[tuple[RestServer, RestOptions]]


def serve(config: WorkerFile, stop: threading.Event) -> bool:
    """Run the worker until `stop`; returns whether everything was committed."""
    for warning in config.warnings:
        log.warning("%s", warning)
    warn_open(config.rest)
    users = users_of(config.rest)
    servers = _servers(config, users)
    metrics_server = MetricsServer(config.metrics, config.rest)
    try:
        metrics_server.bind()
        own_url = own_url_of(config.rest, servers[0][0].bind().ports)
        made = Background(lambda: ConnectDistributed(config, own_url))
        if not made.wait(stop):
            log.info("stopped")
            return True
        distributed = made.result
        with _monitoring(distributed, config) as monitoring:
            metrics_server.start(monitoring.options(options_of(config.rest, users)))
            clean = _run(distributed, config, servers, stop, monitoring)
    finally:
        metrics_server.stop()
        for server, _ in servers:
            server.stop()
    log.info("stopped%s", "" if clean else ", but not all positions could be stored")
    return clean


@contextmanager
def serve_node(
    config: MirrorMakerConfig, rest: RestConfig, *, resume_only: bool
) -> Iterator[MirrorMaker]:
    """A node of dedicated mode that is not started yet, with its REST API, which responds."""
    warn_open(rest)
    options = options_of(rest, users_of(rest))
    server, metrics_server = (
        server_of(rest.listeners, rest.tls),
        MetricsServer(config.metrics, rest),
    )
    try:
        metrics_server.bind()
        own_url = own_url_of(rest, server.bind().ports) if rest.listeners else ""
        mirror_maker = MirrorMaker(config, resume_only=resume_only, url=own_url)
        with Monitoring(lambda: _pairs(mirror_maker), config.metrics, rest) as monitoring:
            metrics_server.start(monitoring.options(options))
            if own_url:
                options = monitoring.options(options)
                server.start(MirrorApi(mirror_maker.herders, options))
                log.info("REST API at %s<source>/<target>/", own_url)
            yield mirror_maker
    finally:
        metrics_server.stop()
        server.stop()


def _pairs(mirror_maker: MirrorMaker) -> list[MonitoredGroup]:
    return [
        MonitoredGroup(f"/{each.name.source}/{each.name.target}", each.worker, each.herder)
        for each in mirror_maker.herders
    ]


def _monitoring(distributed: ConnectDistributed, config: WorkerFile) -> Monitoring:
    group = MonitoredGroup("", distributed.cluster, distributed.herder)
    return Monitoring(lambda: [group], config.metrics, config.rest)


def _run(
    distributed: ConnectDistributed,
    config: WorkerFile,
    servers: Servers,
    stop: threading.Event,
    monitoring: Monitoring,
) -> bool:
    """Start, serve until `stop`, and stop; returns whether everything was committed."""
    began = time.monotonic()
    is_started = False
    try:
        signer = RequestSigner(config.inter_worker, distributed.cluster.configs.session_keys)
        for server, unsigned in servers:
            shown = monitoring.options(unsigned) if unsigned.main else unsigned
            options = replace(shown, signer=signer)
            server.start(make_app(distributed.herder, options))
        log.info(HERDER, config.group.group_id, "starting")
        is_started = Background(distributed.start).wait(stop)
        if is_started:
            _wait_until_ready(distributed, stop)
            log.info(HERDER, config.group.group_id, "started")
            log.info(
                "worker of group %s is ready at %s after %.1f s",
                config.group.group_id,
                distributed.cluster.member.own_url,
                time.monotonic() - began,
            )
            _watch(distributed, stop)
    finally:
        # Before it has started, it runs no connectors and may be waiting for a silent cluster.
        clean = not is_started or distributed.stop()
    return clean


def _watch(distributed: ConnectDistributed, stop: threading.Event) -> None:
    flow_log = FlowLog()
    while not stop.wait(LOOK_SECONDS):
        distributed.check_alive()
        _show(distributed, flow_log)


def _show(distributed: ConnectDistributed, flow_log: FlowLog) -> None:
    """Log what runs on this worker; other workers may run the rest."""
    tasks = distributed.cluster.loop.tasks()
    flows = running_flows(distributed.cluster.loop.connectors(), tasks)
    others = {task.name: task for name, each in tasks.items() if name not in flows for task in each}
    flow_log.update(flows, others)


def _wait_until_ready(distributed: ConnectDistributed, stop: threading.Event) -> None:
    """Wait until the group has a leader, perhaps this worker; then GET /health succeeds too."""
    while not distributed.cluster.member.leader_url and not stop.wait(READY_SECONDS):
        distributed.check_alive()


def warn_open(rest: RestConfig) -> None:
    """Log a warning for each listener without authentication."""
    for listener in rest.open_listeners:
        log.warning(OPEN, listener)


def users_of(rest: RestConfig) -> Users | None:
    path = users_path(rest, os.environ.get("KAFKA_OPTS", ""))
    return None if path is None else Users(path, rest.read_only_users)


def _servers(config: WorkerFile, users: Users | None) -> Servers:
    """The public server, and one for /admin if that has its own listeners."""
    rest = config.rest
    admin = rest.admin_listeners
    options = replace(
        options_of(config.rest, users),
        topic_tracking=config.topic_tracking,
        topic_tracking_reset=config.topic_tracking_reset,
    )
    servers = [(server_of(rest.listeners, rest.tls), replace(options, admin=admin is None))]
    if admin:
        # As in Connect, pages of other sites may not use /admin.
        options = replace(options, main=False, allow_origin="")
        servers.append((server_of(admin, rest.admin_tls), options))
    return servers


def server_of(listeners: tuple[Listener, ...], tls: RestTls) -> RestServer:
    context = listener_context(tls) if any(each.is_https for each in listeners) else None
    return RestServer(
        [(each.host, each.port) for each in listeners],
        [context if each.is_https else None for each in listeners],
    )


def options_of(rest: RestConfig, users: Users | None) -> RestOptions:
    """What the file says of the REST API."""
    return RestOptions(
        allow_origin=rest.allow_origin,
        allow_methods=rest.allow_methods,
        response_headers=rest.response_headers,
        max_body_bytes=rest.max_request_bytes,
        max_requests_per_second=rest.max_requests_per_second,
        users=users,
        client_tls=client_contexts(rest.tls),
    )


def own_url_of(rest: RestConfig, ports: Sequence[int]) -> str:
    """The URL of this worker, for other workers and users."""
    address = rest.advertised(socket.gethostname(), ports[rest.listeners.index(rest.public)])
    return f"{address}/"
