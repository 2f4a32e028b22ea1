"""A reserved port can be listened on, and no other process takes it by accident."""

from __future__ import annotations

import socket

import pytest

from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.errors import MissingPart


def test_listener_shares_a_reserved_port_again_and_again() -> None:
    with ReservedPort() as port:
        for _ in range(2):
            with (
                socket.create_server((HOST, port.number)) as server,
                socket.create_connection((HOST, port.number)) as client,
            ):
                assert client.getpeername() == server.getsockname()


def test_connection_to_an_idle_reserved_port_is_rejected() -> None:
    with ReservedPort() as port, pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port.number))


def test_port_in_use_is_named() -> None:
    with socket.create_server((HOST, 0)) as server:
        number = server.getsockname()[1]
        with pytest.raises(MissingPart, match=f"port {number} of {HOST} cannot be used"):
            ReservedPort(number)


def test_port_is_free_after_close() -> None:
    with ReservedPort() as port:
        number = port.number
    with ReservedPort(number) as again:
        assert again.number == number
