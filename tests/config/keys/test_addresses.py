"""Broker addresses."""

from __future__ import annotations

import pytest

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.keys.client_keys import parse_address, parse_addresses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kafka1:9092", "kafka1:9092"),
        ("10.0.0.1:9092", "10.0.0.1:9092"),
        ("[::1]:9092", "[::1]:9092"),
        ("PLAINTEXT://kafka1:9092", "kafka1:9092"),
        ("a-b.c_d:1", "a-b.c_d:1"),
    ],
)
def test_address_is_host_and_port(text: str, expected: str) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    ("text", "reason", "remedy"),
    [
        ("kafka1", "'kafka1' is not host:port", "write kafka1:9092, with the port of the broker"),
        (":9092", "':9092' is not host:port", "write for example kafka1:9092"),
        ("kafka1:", "'kafka1:' is not host:port", "write for example kafka1:9092"),
        ("kafka1:x", "'kafka1:x' is not host:port", "write for example kafka1:9092"),
        ("::1:9092", "'::1:9092' is not host:port", "write for example kafka1:9092"),
        ("a b:9092", "'a b:9092' is not host:port", "write for example kafka1:9092"),
        ("kafka1:0", "'kafka1:0' has no valid port", "use a port from 1 to 65535"),
        ("kafka1:65536", "'kafka1:65536' has no valid port", "use a port from 1 to 65535"),
    ],
)
def test_bad_address_is_rejected(text: str, reason: str, remedy: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_addresses(["good:9092", text])
    assert (caught.value.reason, caught.value.remedy) == (reason, remedy)
