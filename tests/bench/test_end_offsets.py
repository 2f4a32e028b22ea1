"""ListOffsets by hand: golden bytes, taken from the protocol's definition."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.end_offsets import EndOffsets, decode_response, encode_request
from bench.starting import drop_copied
from sparkmirror.errors import BrokerError
from sparkmirror.types import TopicPartition


def answer(code: int) -> bytes:
    return bytes.fromhex(
        "00000000"  # correlation id
        "00000002"  # topics
        "0001 61 00000002"
        "00000000 0000 ffffffffffffffff 0000000000000005"
        "00000001 0000 ffffffffffffffff 0000000100000000"
        "0002 6263 00000001"
        f"00000007 {code:04x} ffffffffffffffff 0000000000000003"
    )


def test_request_groups_partitions_by_topic() -> None:
    partitions = [TopicPartition("a", 0), TopicPartition("bc", 7), TopicPartition("a", 1)]
    assert encode_request(partitions) == bytes.fromhex(
        "0002 0001 00000000 0005 62656e6368"  # ListOffsets v1, correlation id, "bench"
        "ffffffff 00000002"
        "0001 61 00000002 00000000 ffffffffffffffff 00000001 ffffffffffffffff"
        "0002 6263 00000001 00000007 ffffffffffffffff"
    )


@pytest.fixture
def broker() -> Iterator[tuple[str, int]]:
    """Answers one request, in two pieces."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve_one, args=(server,))
        thread.start()
        yield server.getsockname()
        thread.join()


def serve_one(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(1000)
        data = answer(0)
        connection.sendall(len(data).to_bytes(4) + data[:9])
        connection.sendall(data[9:])


def test_duplicates_in_one_partition_do_not_make_up_for_another(broker: tuple[str, int]) -> None:
    with EndOffsets(*broker) as target:
        assert target.record_count([TopicPartition("a", 0)], each=4) == 4 + 4 + 3


def test_partitions_are_asked_of_every_broker_and_dropped_when_they_are_copied() -> None:
    """The first broker leads none of bc-7, the second all; each answers two requests."""
    led, other = TopicPartition("a", 0), TopicPartition("bc", 7)
    with (
        serving(answer(6), answer(6)) as first,
        serving(answer(0), answer(0)) as second,
        EndOffsets("127.0.0.1", first, second) as target,
    ):
        assert target.end_offsets([other])[other] == 3
        missing = [led, other]
        assert not drop_copied(missing, target, each=4)
        assert missing == [other]


@contextmanager
def serving(*responses: bytes) -> Iterator[int]:
    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            for data in responses:
                connection.recv(1000)
                connection.sendall(len(data).to_bytes(4) + data)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_response_gives_every_end_offset() -> None:
    assert dict(decode_response(answer(0))) == {
        TopicPartition("a", 0): 5,
        TopicPartition("a", 1): 1 << 32,
        TopicPartition("bc", 7): 3,
    }


@pytest.mark.parametrize("code", [3, 5, 6])
def test_partition_that_is_not_there_yet_has_no_end(code: int) -> None:
    assert dict(decode_response(answer(code)))[TopicPartition("bc", 7)] is None


def test_other_errors_are_raised() -> None:
    with pytest.raises(BrokerError, match="list offsets of bc-7: error code 29"):
        list(decode_response(answer(29)))
