"""Keys of the offsets topic, with Java's bytes."""

from __future__ import annotations

import pytest

from sparkmirror.connect.storage.stored_offsets import encode_connector_key, encode_json, java_order
from sparkmirror.mirror.records import (
    encode_checkpoint_offset_key,
    encode_heartbeat_offset_key,
    encode_offset_key,
)


@pytest.mark.parametrize(
    ("partition", "key"),
    [
        (
            {"topic": "t", "partition": 3, "cluster": "a"},
            encode_offset_key("c", "a", "t", 3),
        ),
        (
            {"topic": "t", "group": "g", "partition": 3},
            encode_checkpoint_offset_key("c", "g", "t", 3),
        ),
        (
            {"targetClusterAlias": "b", "sourceClusterAlias": "a"},
            encode_heartbeat_offset_key("c", "a", "b"),
        ),
    ],
    ids=["source", "checkpoint", "heartbeat"],
)
def test_keys_are_those_the_tasks_write(partition: dict[str, object], key: bytes) -> None:
    assert encode_connector_key("c", partition) == key


def test_order_does_not_depend_on_the_request() -> None:
    names = ["partition", "topic", "cluster"]
    assert java_order(names) == java_order(reversed(names)) == ["cluster", "partition", "topic"]


def test_the_order_that_a_genuine_worker_wrote() -> None:
    assert java_order(["topic", "some", "cluster", "x"]) == ["some", "cluster", "x", "topic"]


def test_more_keys_than_the_first_table_holds() -> None:
    # What `new HashMap<>(Map.of(...)).keySet()` prints: single letters lie by their code.
    letters = [chr(code) for code in range(ord("z"), ord("a") - 1, -1)]
    assert java_order(letters) == sorted(letters, key=lambda letter: ord(letter) % 64)


def test_values_of_every_kind() -> None:
    assert (
        encode_json({"a": None, "b": [True, 1.5, "\u00e4\n"]})
        == '{"a":null,"b":[true,1.5,"\u00e4\\n"]}'
    )
