"""Definitions of keys, beside those of a genuine Connect worker. Only their words are our own."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config.keys.plugins import UnknownPlugin, UnknownVersion
from sparkmirror.config.validation.definitions import plugin_definitions
from tests.golden_rest.exchange import load_exchange

CONNECTORS = {
    9: "MirrorSourceConnector",
    10: "MirrorCheckpointConnector",
    11: "MirrorHeartbeatConnector",
}


def without_words(definitions: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By name, for their order means nothing."""
    return {row["name"]: row | {"documentation": ""} for row in definitions}


@pytest.mark.parametrize(("number", "plugin"), CONNECTORS.items(), ids=CONNECTORS.values())
def test_definitions_are_connects(number: int, plugin: str) -> None:
    golden = load_exchange(number).json
    ours = plugin_definitions(plugin)
    assert without_words(ours) == without_words(golden)
    assert len(ours) == len(golden)
    assert ours[0].keys() == golden[0].keys()


@pytest.mark.parametrize("plugin", CONNECTORS.values())
def test_words_are_our_own_and_none_are_missing(plugin: str) -> None:
    golden = {row["documentation"] for number in CONNECTORS for row in load_exchange(number).json}
    ours = [row["documentation"] for row in plugin_definitions(plugin)]
    assert all(ours)
    assert not golden.intersection(ours)


@pytest.mark.parametrize("version", [None, "latest", "4.3.1", "[4.0,5.0)", "(,4.3.1]", "[4.3.1]"])
def test_the_one_version_can_be_requested(version: str | None) -> None:
    assert plugin_definitions("MirrorSource", version) == plugin_definitions("MirrorSource")


def test_unknown_plugin_is_rejected_with_connects_words() -> None:
    with pytest.raises(UnknownPlugin) as raised:
        plugin_definitions("NoSuch")
    assert str(raised.value) == load_exchange(12).json["message"]


def test_unknown_version_is_rejected_with_connects_words() -> None:
    with pytest.raises(UnknownVersion) as raised:
        plugin_definitions("MirrorSource", "1.0")
    assert str(raised.value) == (
        "Plugin org.apache.kafka.connect.mirror.MirrorSourceConnector not found that matches the "
        "version range [1.0,1.0], available versions: [4.3.1]"
    )


@pytest.mark.parametrize(
    ("plugin", "keys"),
    [("ByteArray", 1), ("JsonConverter", 6), ("StringConverter", 2), ("SimpleHeader", 0)],
)
def test_converters_have_definitions_too(plugin: str, keys: int) -> None:
    assert len(plugin_definitions(plugin)) == keys
