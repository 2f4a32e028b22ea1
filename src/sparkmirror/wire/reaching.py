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
from sparkmirror.wire.connection import Connection
from sparkmirror.wire.loop import Loop

REACH_SECONDS = 5.0
# A login may wait for a token server or a KDC, which are asked again when they are not well.
LOGIN_SECONDS = 20.0
# A broker that is starting may drop the first connections.
MOST_FAILURES = 3
# Version 1, which every broker knows, about no topic at all.
METADATA, NO_TOPICS = (3, 1), bytes(4)


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
    trial = _Trial(config)
    try:
        trial.run()
    finally:
        trial.close()


class _Trial:
    """Connects, logs in and asks which brokers there are.

    The last is what a broker answers only to those that have logged in, if it wants that.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._loop = Loop()
        self._cluster = Cluster(self._loop, config, BufferPool(keep_bytes=0), is_trial=True)
        self._asked: Connection | None = None
        self._is_answered = False
        self._unanswered: list[KafkaError] = []

    def run(self) -> None:
        """Return when there is an answer, or no news; raise why there will be none."""
        seconds = LOGIN_SECONDS if self._cluster.security.is_sasl else REACH_SECONDS
        self._loop.run_until(self._is_decided, seconds)
        error = self._cluster.last_error
        if error is None and self._unanswered:
            error = self._unanswered[-1]
        if error is not None and not self._is_answered:
            raise error

    def close(self) -> None:
        self._cluster.close()
        self._loop.close()

    def _is_decided(self) -> bool:
        connection = self._cluster.any_connection()
        if connection is not None and connection is not self._asked:
            self._asked = connection
            connection.send(METADATA, [NO_TOPICS], self._answered, self._failed, REACH_SECONDS)
        is_refused = isinstance(self._cluster.last_error, AuthenticationError)
        failures = self._cluster.failures(BOOTSTRAP) + len(self._unanswered)
        return is_refused or failures >= MOST_FAILURES or self._is_answered

    def _answered(self, _: object, __: object) -> None:
        self._is_answered = True

    def _failed(self, error: KafkaError) -> None:
        self._unanswered.append(self._cluster.last_error or error)
