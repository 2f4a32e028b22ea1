"""Servers that give credentials, and those that only seem to."""

from __future__ import annotations

import pytest

from sparkmirror.errors import TransportError
from sparkmirror.wire.sasl.oauth.web import ask
from tests.dripping import dripping

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n"


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"", id="in the status line"),
        pytest.param(HEAD + b"X-Long: ", id="in a header"),
        pytest.param(HEAD + b"\r\n", id="in the body"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", id="in a body of any length"),
        pytest.param(b"HTTP/1.1 500 Error\r\n\r\n", id="in an error"),
    ],
)
def test_a_server_that_sends_a_byte_now_and_then_is_given_up(start: bytes) -> None:
    with dripping(start=start) as url, pytest.raises(TransportError):
        ask("GET", url, {}, timeout=0.1)
