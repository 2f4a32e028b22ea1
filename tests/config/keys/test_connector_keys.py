"""The connector tables beside what a real Connect worker says of its connectors."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import pytest

from sparkmirror.config.config_def import REQUIRED, Key, Secret
from sparkmirror.config.keys.connector_keys import TOPIC_FILTER_KEYS
from sparkmirror.config.mirror_configs import (
    CONNECTOR_KEYS,
    CheckpointConfig,
    HeartbeatConfig,
    SourceConfig,
)

KINDS = {
    "S": "MirrorSourceConnector",
    "C": "MirrorCheckpointConnector",
    "H": "MirrorHeartbeatConnector",
}


class Row(NamedTuple):
    """One key of Kafka's."""

    name: str
    type: str
    default: str
    importance: str
    kinds: str


def kafka_rows() -> list[Row]:
    text = Path(__file__).with_name("connector_definitions.tsv").read_text("ascii")
    return [Row(*line.split("\t")) for line in text.splitlines() if not line.startswith("#")]


def shown_default(key: Key) -> str:
    if key.default is REQUIRED:
        return "required"
    if key.default is None:
        return "-"
    if isinstance(key.default, tuple):
        return ",".join(key.default) or '""'
    return str(key.default).lower() if isinstance(key.default, bool) else str(key.default)


@pytest.mark.parametrize("row", kafka_rows(), ids=lambda row: row.name)
def test_key_is_kafkas(row: Row) -> None:
    for letter in row.kinds:
        key = CONNECTOR_KEYS[KINDS[letter]][row.name]
        found = Row(key.name, key.type, shown_default(key), key.importance, row.kinds)
        assert found == row


@pytest.mark.parametrize("letter", KINDS)
def test_connector_has_no_key_that_kafka_lacks(letter: str) -> None:
    kafka = {row.name for row in kafka_rows() if letter in row.kinds}
    # Read by MirrorMaker 2's property filter, which has its own definition.
    assert set(CONNECTOR_KEYS[KINDS[letter]].names) - kafka == {"use.defaults.from"}


@pytest.mark.parametrize("kind", CONNECTOR_KEYS)
def test_default_is_a_value_that_the_key_takes(kind: str) -> None:
    for key in CONNECTOR_KEYS[kind]:
        if key.default not in (REQUIRED, None):
            assert key.parse(shown_default(key).replace('""', "")) == key.default


CLIENTS = {"source_client", "target_client", "producer"}
SETTINGS = {"settings"}


@pytest.mark.parametrize(
    ("config", "kind", "made"),
    [
        (
            SourceConfig,
            "MirrorSourceConnector",
            CLIENTS | SETTINGS | {"consumer", "offset_syncs_producer"},
        ),
        (
            CheckpointConfig,
            "MirrorCheckpointConnector",
            CLIENTS
            | SETTINGS
            | {"checkpoints_reader", "offset_syncs_reader"}
            | {key.field for key in TOPIC_FILTER_KEYS},
        ),
        (HeartbeatConfig, "MirrorHeartbeatConnector", CLIENTS - {"source_client"} | SETTINGS),
    ],
    ids=["source", "checkpoint", "heartbeat"],
)
def test_every_setting_comes_from_a_key(config: type, kind: str, made: set[str]) -> None:
    fields = {key.field for key in CONNECTOR_KEYS[kind]}
    assert {field.name for field in dataclasses.fields(config)} - fields == made


def test_passwords_have_the_type_password() -> None:
    keys = CONNECTOR_KEYS["MirrorSourceConnector"]
    assert isinstance(keys["sasl.jaas.config"].parse("x"), Secret)
    assert isinstance(keys["ssl.key.password"].parse("x"), Secret)
