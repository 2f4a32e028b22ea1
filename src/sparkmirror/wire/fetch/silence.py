"""Brokers that owe a response and send nothing, named long before the deadline ends the wait.

Runs on: executor, on the event loop's thread. A request may wait for request.timeout.ms without
a byte of progress; operators should not have to wait as long to learn that it does.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.errors import KafkaError
from sparkmirror.types import TopicPartition
from sparkmirror.wire.client.network_client import NetworkClient
from sparkmirror.wire.fetch.fetch_session import FetchSession
from sparkmirror.wire.net.outages import SilentError, named

# Slow disks, full request queues and elections keep a broker busy for a second or two.
SILENT_SECONDS = 5.0


def silence(
    cluster: NetworkClient, node: int, connection_index: int = 0, allowed: float = 0.0
) -> KafkaError | None:
    """The error of a `node` that owes a response and has sent nothing for a while.

    `allowed` is how long the request lets the broker wait on purpose.
    """
    connection = cluster.connection(node, connection_index)
    if connection is None:
        return None
    seconds = connection.silent_seconds(cluster.loop.clock())
    if seconds <= SILENT_SECONDS + allowed:
        return None
    where = ", in the middle of a response" if connection.has_begun_response else ""
    text = (
        f"cluster '{cluster.config.alias}', broker {connection.address}: no byte for "
        f"{seconds:.0f} s{where}; the connection is replaced when its deadline passes"
    )
    return SilentError(text, seconds, connection.address, named(cluster.config))


def silent_partitions(
    cluster: NetworkClient, sessions: Iterable[FetchSession], allowed: float
) -> dict[TopicPartition, KafkaError]:
    """Find the partitions whose broker is silent or cannot be connected, and why."""
    found: dict[TopicPartition, KafkaError] = {}
    for session in sessions:
        if not session.wanted:
            continue
        if session.in_flight:
            error = silence(cluster, session.node, allowed=allowed)
        else:
            error = cluster.last_error if cluster.is_failing(session.node) else None
        if error is not None:
            found.update(dict.fromkeys(session.wanted, error))
    return found
