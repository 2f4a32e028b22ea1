"""Which clients a login reaches, for every place where users may write it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.config.clients import ClientConfig
from sparkmirror.config.config_def import Secret
from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.worker.worker_file import parse_worker_file

LINE = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";'
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": LINE,
    "ssl.truststore.location": "/etc/trust.jks",
}
# Short names of clients: S, C and H are the connectors.
SOURCE_SIDE = {
    "S.consumer.client", "S.source_client", "S.offset_syncs_producer.client",
    "C.source_client", "C.offset_syncs_reader",
}  # fmt: skip
TARGET_SIDE = {"S.target_client", "C.target_client", "C.checkpoints_reader", "H.target_client"}
RECORDS = {"S.producer.client", "C.producer.client", "H.producer.client"}
WORKER = {"W.client", "W.producer.client"}
SOURCE_ADMINS = {"S.source_client", "C.source_client"}
TARGET_ADMINS = {"S.target_client", "C.target_client", "H.target_client"}
SOURCE_CONSUMERS = {"S.consumer.client", "C.offset_syncs_reader"}
SYNCS = {"S.offset_syncs_producer.client"}


def with_prefix(prefix: str) -> dict[str, str]:
    return {f"{prefix}{key}": value for key, value in LOGIN.items()}


def clients(part: object, path: str) -> Iterator[tuple[str, ClientConfig]]:
    """All clients in a configuration, by the names of the fields that lead there."""
    if isinstance(part, ClientConfig):
        yield path, part
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from clients(getattr(part, field.name), f"{path}.{field.name}")


def logged_in(parts: dict[str, object]) -> set[str]:
    """Those that have all of the login; none may have a part of it."""
    found = set()
    for name, part in parts.items():
        for path, client in clients(part, name):
            own = {key: _plain(value) for key, value in client.security.items()}
            assert own in (LOGIN, {"security.protocol": "PLAINTEXT"})
            if own == LOGIN:
                found.add(path)
    return found


def _plain(value: Any) -> Any:
    return value.reveal() if isinstance(value, Secret) else value


MM2 = {
    "": SOURCE_SIDE | TARGET_SIDE | RECORDS | WORKER,
    "A.": SOURCE_SIDE,
    "B.": TARGET_SIDE | RECORDS | WORKER,
    "A.consumer.": SOURCE_CONSUMERS,
    "A.admin.": SOURCE_ADMINS,
    "A.producer.": SYNCS,
    "B.consumer.": {"C.checkpoints_reader"},
    "B.admin.": TARGET_ADMINS,
    "B.producer.": RECORDS | {"W.producer.client"},
    "A->B.source.cluster.": SOURCE_SIDE,
    "A->B.target.cluster.": TARGET_SIDE,
    "A->B.consumer.": SOURCE_CONSUMERS | {"C.checkpoints_reader"},
    "A->B.source.consumer.": SOURCE_CONSUMERS,
    "A->B.source.admin.": SOURCE_ADMINS,
    "A->B.target.admin.": TARGET_ADMINS,
    "A->B.producer.override.": RECORDS,
}


@pytest.mark.parametrize("prefix", MM2)
def test_mm2_file(prefix: str, tmp_path: Path) -> None:
    lines = {
        "clusters": "A, B",
        "A.bootstrap.servers": "a:1",
        "B.bootstrap.servers": "b:1",
        "A->B.enabled": "true",
        **with_prefix(prefix),
    }
    path = tmp_path / "mm2.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    (flow,) = load_mm2(path).flows
    parts = {"W": flow.worker, "S": flow.source, "C": flow.checkpoint, "H": flow.heartbeat}
    assert logged_in(parts) == MM2[prefix]


WORKER_FILE = {
    "bootstrap.servers": "w:1",
    "group.id": "g",
    "offset.storage.topic": "o",
    "config.storage.topic": "c",
    "status.storage.topic": "s",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
CONNECTOR = {
    "name": "n",
    "source.cluster.alias": "a",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
KINDS = {"S": "Source", "C": "Checkpoint", "H": "Heartbeat"}


def parts_of(worker_lines: dict[str, str], connector_lines: dict[str, str]) -> dict[str, object]:
    file = parse_worker_file({**WORKER_FILE, **worker_lines}, Path("worker.properties"))
    parts: dict[str, object] = {"W": file.worker}
    for short, kind in KINDS.items():
        name = f"org.apache.kafka.connect.mirror.Mirror{kind}Connector"
        props = {**CONNECTOR, "connector.class": name, **connector_lines}
        parts[short] = parse_connector(props, file).config
    return parts


# As in Connect: without a prefix only for the worker's own topics and group.
IN_WORKER_FILE = {"": {"W.client"}, "producer.": RECORDS | {"W.producer.client"}}


@pytest.mark.parametrize("prefix", IN_WORKER_FILE)
def test_worker_file(prefix: str) -> None:
    assert logged_in(parts_of(with_prefix(prefix), {})) == IN_WORKER_FILE[prefix]


IN_CONNECTOR: dict[str, set[str]] = {
    "": set(),
    "source.cluster.": SOURCE_SIDE,
    "target.cluster.": TARGET_SIDE,
    "consumer.": SOURCE_CONSUMERS | {"C.checkpoints_reader"},
    "admin.": SOURCE_ADMINS | TARGET_ADMINS,
    "producer.": SYNCS,
    "source.consumer.": SOURCE_CONSUMERS,
    "source.admin.": SOURCE_ADMINS,
    "source.producer.": SYNCS,
    "target.consumer.": {"C.checkpoints_reader"},
    "target.admin.": TARGET_ADMINS,
    "producer.override.": RECORDS,
}


@pytest.mark.parametrize("prefix", IN_CONNECTOR)
def test_connector(prefix: str) -> None:
    assert logged_in(parts_of({}, with_prefix(prefix))) == IN_CONNECTOR[prefix]


def test_the_nearer_one_wins() -> None:
    other = LINE.replace('"u"', '"v"')
    lines = {
        **with_prefix("source.cluster."),
        "consumer.sasl.jaas.config": other,
        "source.admin.sasl.jaas.config": other.replace('"v"', '"w"'),
    }
    parts = parts_of({}, lines)
    found = {
        path: client.security.get("sasl.jaas.config") for path, client in clients(parts["S"], "S")
    }
    assert found["S.consumer.client"] == Secret(other)
    assert found["S.source_client"] == Secret(other.replace('"v"', '"w"'))
    assert found["S.offset_syncs_producer.client"] == Secret(LINE)
