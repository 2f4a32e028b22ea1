"""Names of plugins, beside those of a genuine Connect worker."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config.keys.plugins import (
    NoConnectorClass,
    UnknownConnectorClass,
    WrongPlugin,
    check_plugin,
    connector_class,
    converter_class,
    plugins,
    require_class,
)
from tests.golden_rest.exchange import load_exchange

SOURCE = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


def rows(listed: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return sorted((plugin["class"], plugin["type"], plugin["version"]) for plugin in listed)


@pytest.mark.parametrize(("number", "connectors_only"), [(6, True), (7, True), (8, False)])
def test_plugins_are_connects(number: int, connectors_only: bool) -> None:
    listed = plugins(connectors_only=connectors_only)
    assert rows(listed) == rows(load_exchange(number).json)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SOURCE, SOURCE),
        ("MirrorSourceConnector", SOURCE),
        ("MirrorSource", SOURCE),
        ("Source", None),
        ("mirrorsource", None),
        ("org.apache.kafka.connect.mirror.MirrorSource", None),
        ("org.apache.kafka.connect.file.FileStreamSourceConnector", None),
        ("", None),
    ],
)
def test_connector_is_known_by_three_names(text: str, expected: str | None) -> None:
    assert connector_class(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ByteArray", "org.apache.kafka.connect.converters.ByteArrayConverter"),
        ("JsonConverter", "org.apache.kafka.connect.json.JsonConverter"),
        ("org.apache.kafka.connect.converters.NoConverter", None),
    ],
)
def test_converter_is_known_by_three_names(text: str, expected: str | None) -> None:
    assert converter_class(text) == expected


def test_unknown_class_is_rejected_with_connects_words() -> None:
    with pytest.raises(UnknownConnectorClass) as raised:
        require_class({"connector.class": "NoSuch"})
    prefix = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "
    assert prefix + str(raised.value) == load_exchange(19).json["message"]
    prefix = "org.apache.kafka.connect.errors.ConnectException: "
    assert prefix + str(raised.value) == load_exchange(27).json["message"]


def test_missing_class_is_rejected_with_connects_words() -> None:
    with pytest.raises(NoConnectorClass) as raised:
        require_class({"name": "x1"})
    assert str(raised.value) == load_exchange(28).json["message"]
    with pytest.raises(NoConnectorClass) as raised:
        require_class({})
    assert load_exchange(20).json["message"].endswith(f": {raised.value}")


def test_missing_class_does_not_show_secrets() -> None:
    with pytest.raises(NoConnectorClass, match=r"\{a=null, sasl.jaas.config=\[hidden\]\}"):
        require_class({"a": None, "sasl.jaas.config": "password"})


def test_other_connector_than_the_requests_is_rejected() -> None:
    exchange = load_exchange(18)
    with pytest.raises(WrongPlugin) as raised:
        check_plugin("MirrorHeartbeatConnector", exchange.request_json)
    assert str(raised.value) == exchange.json["message"]


@pytest.mark.parametrize("plugin", [SOURCE, "MirrorSourceConnector", "MirrorSource", "Source"])
def test_end_of_the_class_is_enough(plugin: str) -> None:
    check_plugin(plugin, {"connector.class": SOURCE})
    assert require_class({"connector.class": SOURCE}) == SOURCE
