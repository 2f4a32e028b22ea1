"""Whether a cluster can be reached, and if not, why: asked once before anything else is.

Runs on: worker. kafka-python would try until its time is over and then say that nobody answered;
the event loop's connections know whether it was the name, the port, TLS or the login.
"""

from __future__ import annotations

import socket
from dataclasses import replace

from sparkmirror.config.clients import ClientConfig
from sparkmirror.errors import AuthenticationError, KafkaError, TransportError
from sparkmirror.wire.buffers import BufferPool
from sparkmirror.wire.cluster import BOOTSTRAP, Cluster
from sparkmirror.wire.loop import Loop

REACH_SECONDS = 5.0
# A broker that is starting may drop the first connections.
MOST_FAILURES = 3


def check_reachable(config: ClientConfig) -> None:
    """Return if some bootstrap server lets us in, or at least listens and says nothing.

    Raises:
        AuthenticationError: certificates or login; names cluster, address, cause and remedy.
        TransportError: names every address and what is wrong with it.
    """
    unreachable, refused = [], []
    for server in config.bootstrap_servers:
        try:
            _check_listening(server)
            _check_answering(replace(config, bootstrap_servers=(server,)))
        except OSError as error:
            unreachable.append(f"{server}: {error.strerror or error}")
        except KafkaError as error:
            refused.append(error)
        else:
            return
    if refused:
        raise refused[0]
    raise TransportError(
        f"cluster '{config.alias}' cannot be reached ({'; '.join(unreachable)}); check "
        f"{config.alias}.bootstrap.servers and that its brokers are up"
    )


def _check_listening(server: str) -> None:
    host, _, port = server.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()


def _check_answering(config: ClientConfig) -> None:
    loop = Loop()
    cluster = Cluster(loop, config, BufferPool(keep_bytes=0), is_trial=True)
    try:
        loop.run_until(lambda: _is_decided(cluster), REACH_SECONDS)
        if cluster.last_error is not None:
            raise cluster.last_error
    finally:
        cluster.close()
        loop.close()


def _is_decided(cluster: Cluster) -> bool:
    is_refused = isinstance(cluster.last_error, AuthenticationError)
    has_failed = cluster.failures(BOOTSTRAP) >= MOST_FAILURES
    return is_refused or has_failed or cluster.any_connection() is not None
