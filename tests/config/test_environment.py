"""A worker without a file: settings from CONNECT_* variables, as Confluent's images take them."""

from __future__ import annotations

import pytest

from sparkmirror.config.environment import WHERE, connect_properties
from sparkmirror.config.worker_file import parse_worker_file
from sparkmirror.errors import ConfigError, ConfigErrors

# C, with the quotes that a compose file leaves in place.
QUICKSTART = {
    "CONNECT_BOOTSTRAP_SERVERS": "source:9092",
    "CONNECT_REST_PORT": "28082",
    "CONNECT_GROUP_ID": '"quickstart"',
    "CONNECT_CONFIG_STORAGE_TOPIC": "quickstart-config",
    "CONNECT_OFFSET_STORAGE_TOPIC": "quickstart-offsets",
    "CONNECT_STATUS_STORAGE_TOPIC": "quickstart-status",
    "CONNECT_KEY_CONVERTER": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "CONNECT_REST_ADVERTISED_HOST_NAME": '"localhost"',
    "CONNECT_CONNECTOR_CLIENT_CONFIG_OVERRIDE_POLICY": "All",
    "PATH": "/bin",
    "KAFKA_CONNECT_X": "y",
}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("CONNECT_OFFSET_FLUSH_INTERVAL_MS", "offset.flush.interval.ms"),
        ("CONNECT_A__B", "a_b"),
        ("CONNECT_TOPIC_A___B", "topic.a-b"),
        ("CONNECT_A____B", "a____b"),
        ("CONNECT_CONNECT_PROTOCOL", "connect.protocol"),
    ],
)
def test_names(name: str, key: str) -> None:
    assert connect_properties({name: "v"}) == {key: "v"}


def test_a_worker_of_variables_alone() -> None:
    file = parse_worker_file(connect_properties(QUICKSTART), WHERE)
    assert file.worker.client.bootstrap_servers == ("source:9092",)
    assert file.group.group_id == '"quickstart"'
    assert str(file.rest.advertised("own")) == "http://localhost:28082"
    assert file.override.allows("bootstrap.servers")
    quotes = [text for text in file.warnings if "quotes" in text]
    assert [text.removeprefix(f"{WHERE}: ") for text in quotes] == [
        'group.id: the quotes are part of the value, as in Java: "quickstart"',
        'rest.advertised.host.name: the quotes are left out, no host has any: "localhost"',
    ]


def test_errors_name_the_place() -> None:
    few = {"CONNECT_BOOTSTRAP_SERVERS": "here"}
    with pytest.raises(ConfigErrors, match=r"environment variables CONNECT_\*: group.id: "):
        parse_worker_file(connect_properties(few), WHERE)
    with pytest.raises(ConfigError, match="no environment variable begins with CONNECT_"):
        connect_properties({"PATH": "/bin"})
