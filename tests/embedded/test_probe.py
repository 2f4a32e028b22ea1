"""The probe reads a broker's response, and distinguishes garbage from silence."""

from __future__ import annotations

import struct

import pytest

from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.probe import ProbeResponse, ask, decode_response
from sparkmirror.errors import RemoteProtocolError, TransportError


def answer_bytes(nodes: list[tuple[int, bytes | None]], controller_id: int) -> bytes:
    brokers = b"".join(
        struct.pack(">ih", node_id, 4)
        + b"host"
        + struct.pack(">ih", 9092, -1 if rack is None else len(rack))
        + (rack or b"")
        for node_id, rack in nodes
    )
    return struct.pack(">ii", 0, len(nodes)) + brokers + struct.pack(">ii", controller_id, 0)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(answer_bytes([(1, None)], 1), ProbeResponse((1,), 1), id="one"),
        pytest.param(
            answer_bytes([(3, b"r"), (1, None)], 3), ProbeResponse((1, 3), 3), id="with rack"
        ),
        pytest.param(answer_bytes([], -1), ProbeResponse((), -1), id="not ready"),
    ],
)
def test_response_is_decoded(body: bytes, expected: ProbeResponse) -> None:
    assert decode_response(body) == expected


@pytest.mark.parametrize("size", [0, 7, 12, 20, 23])
def test_truncated_response_is_an_error(size: int) -> None:
    body = answer_bytes([(1, None)], 1)
    with pytest.raises(RemoteProtocolError, match="Metadata v1"):
        decode_response(body[:size])


def test_missing_controller_is_reported() -> None:
    assert not ProbeResponse((1,), -1).has_controller
    assert ProbeResponse((1,), 1).has_controller


def test_silence_is_a_transport_error() -> None:
    with ReservedPort() as port, pytest.raises(TransportError, match=f"ask {HOST}:{port.number}"):
        ask(HOST, port.number)
