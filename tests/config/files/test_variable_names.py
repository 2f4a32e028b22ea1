"""Names of variables and the keys that they set, as Confluent's images have them."""

from __future__ import annotations

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.files.variable_names import beside, key_of, shown, variable_of
from sparkmirror.config.worker.worker_file import KEY_NAMES


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("CONNECT_OFFSET_FLUSH_INTERVAL_MS", "offset.flush.interval.ms"),
        ("CONNECT_A__B", "a_b"),
        ("CONNECT_TOPIC_A___B", "topic.a-b"),
        ("CONNECT_A_B__C___D_E", "a.b_c-d.e"),
        ("CONNECT_CONNECT_PROTOCOL", "connect.protocol"),
        ("CONNECT_group_Id", "group.id"),
        # "Undefined" to Confluent: what its program makes of them.
        ("CONNECT_A____B", "a-_b"),
        ("CONNECT_A_____B", "a-_b"),
    ],
)
def test_underscores(name: str, key: str) -> None:
    assert key_of(name) == key


@pytest.mark.parametrize("key", [*KEY_NAMES, "a-b.c_d"])
def test_there_and_back(key: str) -> None:
    assert key_of(variable_of(key)) == key


@pytest.mark.parametrize(
    ("servers_key", "key"),
    [
        ("bootstrap.servers", "security.protocol"),
        ("a.bootstrap.servers", "a.security.protocol"),
        (
            shown("bootstrap.servers"),
            "CONNECT_SECURITY_PROTOCOL (security.protocol)",
        ),
        (
            shown("bootstrap.servers", "BOOTSTRAP_SERVERS"),
            "CONNECT_SECURITY_PROTOCOL (security.protocol)",
        ),
        (
            shown("producer.bootstrap.servers"),
            "CONNECT_PRODUCER_SECURITY_PROTOCOL (producer.security.protocol)",
        ),
    ],
)
def test_another_key_of_the_same_client(servers_key: str, key: str) -> None:
    client = ClientConfig("worker", ("h:1",), servers_key=servers_key)
    assert client.key("security.protocol") == key
    assert beside(servers_key, "bootstrap.servers", "security.protocol") == key
