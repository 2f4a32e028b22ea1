"""Our settings as kafka-python's admin client gets them."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from kafka.net.manager import KafkaConnectionManager

from sparkmirror.config.clients import ClientConfig
from sparkmirror.wire.admin import admin_client
from sparkmirror.wire.admin.admin_client import AdminClient, client_options
from sparkmirror.wire.net.stream import SOCKET_OPTIONS

CONFIG = ClientConfig("a", ("h:1",))


def options(**settings: Any) -> dict[str, Any]:
    return client_options(ClientConfig("a", ("h:1",), **settings), 5000)


def test_every_setting_has_its_place() -> None:
    found = options(
        client_id="me",
        request_timeout_ms=1,
        metadata_max_age_ms=2,
        reconnect_backoff_ms=3,
        reconnect_backoff_max_ms=4,
        retry_backoff_ms=5,
        connections_max_idle_ms=6000,
        socket_connection_setup_timeout_ms=7,
        socket_connection_setup_timeout_max_ms=8,
        send_buffer_bytes=9,
        receive_buffer_bytes=10,
    )
    sockets = found.pop("socket_options")
    assert (socket.SOL_SOCKET, socket.SO_SNDBUF, 9) in sockets
    assert (socket.SOL_SOCKET, socket.SO_RCVBUF, 10) in sockets
    assert found == {
        "bootstrap_servers": ["h:1"],
        "client_id": "me",
        "request_timeout_ms": 1,
        "bootstrap_timeout_ms": 5000,
        "metadata_max_age_ms": 2,
        "reconnect_backoff_ms": 3,
        "reconnect_backoff_max_ms": 4,
        "retry_backoff_ms": 5,
        "connections_max_idle_ms": 6000,
        "socket_connection_setup_timeout_ms": 7,
        "socket_connection_setup_timeout_max_ms": 8,
        "security_protocol": "PLAINTEXT",
    }


@pytest.mark.parametrize(("given", "passed"), [(-1, 2**31 - 1), (0, 1000), (5000, 5000)])
def test_idle_times_that_kafka_python_does_not_know(given: int, passed: int) -> None:
    assert options(connections_max_idle_ms=given)["connections_max_idle_ms"] == passed


def test_buffers_are_the_systems_unless_set() -> None:
    assert options()["socket_options"] == SOCKET_OPTIONS


@pytest.mark.parametrize(("admin_ms", "api_ms", "used"), [(9, 5, 5), (4, 5, 4)])
def test_a_call_has_the_shorter_of_two_times(
    monkeypatch: pytest.MonkeyPatch, admin_ms: int, api_ms: int, used: int
) -> None:
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(admin_client, "check_reachable", lambda _: None)
    monkeypatch.setattr(admin_client, "_AdminClient", lambda **options: made.append(options))
    AdminClient(ClientConfig("a", ("h:1",), default_api_timeout_ms=api_ms), admin_ms)
    assert made[0]["bootstrap_timeout_ms"] == used


def test_kafka_pythons_connections_know_all_of_them() -> None:
    known = admin_client._AdminClient.DEFAULT_CONFIG
    assert options().keys() - known.keys() == set()
    used = {"socket_connection_setup_timeout_ms", "connections_max_idle_ms", "socket_options"}
    assert used <= KafkaConnectionManager.DEFAULT_CONFIG.keys()
