"""Validation of connectors, compared with the responses of a genuine Connect worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.connector_spec import collect_connector
from sparkmirror.config.findings import Findings
from sparkmirror.config.keys.client_keys import CONSUMER_KEYS, PRODUCER_KEYS
from sparkmirror.config.keys.plugins import NoConnectorClass, UnknownConnectorClass, WrongPlugin
from sparkmirror.config.masking import HIDDEN, mask, remember
from sparkmirror.config.validation.connector_validation import error_summary, validate_connector
from sparkmirror.config.validation.definitions import OWN_KEYS
from sparkmirror.config.worker.worker_file import WorkerFile
from tests.config.worker_files import worker_file, worker_with
from tests.golden_rest.exchange import Exchange, load_exchange

SOURCE: dict[str, str | None] = {
    "connector.class": "MirrorSourceConnector",
    "name": "x",
    "source.cluster.alias": "a",
    "source.cluster.bootstrap.servers": "source-kafka:9092",
    "target.cluster.bootstrap.servers": "target-kafka:9092",
}


def plugin_of(exchange: Exchange) -> str:
    return exchange.path.split("/")[2]


def without_words(infos: dict[str, Any]) -> dict[str, Any]:
    """Rows by name, for their order means nothing, and without documentation."""
    rows = {row["value"]["name"]: row for row in infos["configs"]}
    for row in rows.values():
        if row["definition"] is not None:
            row["definition"]["documentation"] = ""
    return {**infos, "configs": rows}


@pytest.mark.parametrize("number", range(13, 18))
def test_response_is_connects(number: int) -> None:
    exchange = load_exchange(number)
    infos = validate_connector(plugin_of(exchange), exchange.request_json, worker_file())
    assert without_words(infos) == without_words(exchange.json)


def recorded() -> list[dict[str, Any]]:
    """Further responses of a Connect 4.3.1 worker: values with every kind of error.

    `values` has [value, errors, visible] of each key that differs from its default.
    """
    path = Path(__file__).with_name("validation_answers.jsonl")
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def remarkable(infos: dict[str, Any]) -> dict[str, list[Any]]:
    found = {}
    for row in infos["configs"]:
        shape, value = row["definition"], row["value"]
        plain = shape is not None and value["value"] == shape["default_value"]
        if value["errors"] or not value["visible"] or not plain:
            found[value["name"]] = [value["value"], value["errors"], value["visible"]]
    return found


@pytest.mark.parametrize("response", recorded(), ids=lambda response: response["case"])
def test_every_wrong_value_is_reported_in_connects_words(response: dict[str, Any]) -> None:
    policy = "None" if response["case"].startswith("none-") else "All"
    worker = worker_file(connector_client_config_override_policy=policy)
    infos = validate_connector(response["plugin"], response["config"], worker)
    assert remarkable(infos) == response["values"]
    assert infos["error_count"] == response["error_count"]
    assert sorted(infos["groups"]) == response["groups"]


@pytest.mark.parametrize(
    ("number", "kind"),
    [(18, WrongPlugin), (19, UnknownConnectorClass), (20, NoConnectorClass)],
)
def test_request_that_cannot_be_validated(number: int, kind: type[Exception]) -> None:
    exchange = load_exchange(number)
    with pytest.raises(kind) as raised:
        validate_connector(plugin_of(exchange), exchange.request_json, worker_file())
    assert exchange.json["message"].endswith(str(raised.value))


def as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize(
    ("number", "name"),
    [(29, "x1"), (30, ""), (31, ""), (85, "a->b.MirrorSourceConnector"), (87, "a->b.hb")],
)
def test_creation_is_rejected_with_connects_words(number: int, name: str) -> None:
    exchange = load_exchange(number)
    given = exchange.request_json.get("config", exchange.request_json)
    props = {key: as_text(value) for key, value in given.items()} | {"name": name}
    infos = validate_connector(None, props, worker_file())
    assert error_summary(infos) == exchange.json["message"]


def test_good_connector_is_not_rejected() -> None:
    assert error_summary(validate_connector(None, SOURCE, worker_file())) is None


def row(infos: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [row for row in infos["configs"] if row["value"]["name"] == name]
    return dict(found)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("transforms", "t", "transformations are not in this version yet"),
    ],
)
def test_what_this_version_lacks_is_reported_before_a_connector_exists(
    key: str, value: str, text: str
) -> None:
    infos = validate_connector(None, SOURCE | {key: value}, worker_file())
    errors = [error for row in infos["configs"] for error in row["value"]["errors"]]
    assert infos["error_count"] == len(errors) == 1
    assert errors[0].startswith(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [("topics", "["), ("source.cluster.bootstrap.servers", "nonsense"), ("producer.acks", "x")],
)
def test_what_connect_only_finds_at_the_start_is_not_reported_here(key: str, value: str) -> None:
    infos = validate_connector(None, SOURCE | {key: value}, worker_file())
    assert infos["error_count"] == 0


def test_override_is_subject_to_the_policy() -> None:
    props = SOURCE | {"producer.override.acks": "1", "producer.override.nosuch": "2"}
    assert validate_connector(None, props, worker_file())["error_count"] == 0
    worker = worker_file(connector_client_config_override_policy="None")
    infos = validate_connector(None, props, worker)
    assert infos["error_count"] == 2
    acks, unknown = (row(infos, f"producer.override.{name}") for name in ("acks", "nosuch"))
    assert acks["definition"]["name"] == "producer.override.acks"
    assert unknown["definition"] is None
    assert acks["value"]["errors"] == [
        "The 'None' policy does not allow 'acks' to be overridden in the connector configuration."
    ]


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("1.0", "[1.0,1.0]"),
        ("bogus", "[bogus,bogus]"),
        ("[5,6)", "[5,6)"),
        ("(4.3.1,)", "(4.3.1,)"),
    ],
)
def test_version_that_is_not_there_is_rejected(version: str, shown: str) -> None:
    infos = validate_connector(None, SOURCE | {"connector.plugin.version": version}, worker_file())
    text = (
        "Plugin org.apache.kafka.connect.mirror.MirrorSourceConnector not found that matches "
        f"the version range {shown}, available versions: [4.3.1]"
    )
    assert infos["error_count"] == 2
    for name in ("connector.class", "connector.plugin.version"):
        assert row(infos, name)["value"]["errors"] == [text]


def test_converter_of_others_is_accepted() -> None:
    props = SOURCE | {"key.converter": "io.confluent.connect.avro.AvroConverter"}
    infos = validate_connector(None, props, worker_file())
    assert infos["error_count"] == 0
    assert row(infos, "key.converter")["value"]["value"] == props["key.converter"]


def test_placeholder_is_shown_as_it_was_sent(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("tasks=hunter2\n", "ascii")
    worker = worker_with(
        {
            "config.providers": "file",
            "config.providers.file.class": (
                "org.apache.kafka.common.config.provider.FileConfigProvider"
            ),
        }
    )
    placeholder = f"${{file:{secrets}:tasks}}"
    infos = validate_connector(None, SOURCE | {"tasks.max": placeholder}, worker)
    assert row(infos, "tasks.max")["value"]["value"] == placeholder
    assert infos["error_count"] == 2
    assert "hunter2" not in json.dumps(infos)
    missing = validate_connector(None, SOURCE | {"topics": placeholder + "${file:/no:x}"}, worker)
    assert missing["error_count"] == 1
    assert "/no cannot be read" in row(missing, "topics")["value"]["errors"][0]


def provider_of(folder: Path, **values: str) -> tuple[WorkerFile, str]:
    """A worker with a file provider, and what stands before the key in a placeholder."""
    file = folder / "provided.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in values.items()), "ascii")
    java = "org.apache.kafka.common.config.provider.FileConfigProvider"
    worker = worker_with({"config.providers": "file", "config.providers.file.class": java})
    return worker, f"${{file:{file}"


def test_part_of_a_value_that_was_provided_is_not_shown(tmp_path: Path) -> None:
    worker, file = provider_of(tmp_path, flag="hunter2", short="q9")
    props = {"emit.checkpoints.enabled": f"not-{file}:flag}}", "tasks.max": f"{file}:short}}"}
    infos = validate_connector(None, SOURCE | props, worker)
    assert infos["error_count"] >= 2
    assert "hunter2" not in json.dumps(infos)
    assert '"q9' not in json.dumps(infos)
    assert " q9 " not in json.dumps(infos)


def test_a_call_that_only_checks_can_neither_push_out_masks_nor_add_any(tmp_path: Path) -> None:
    remember("kept-of-the-worker-1")
    worker, file = provider_of(tmp_path, common="connector-started")
    words = {f"x{at}.password": f"poison-{at}-of-{at}" for at in range(6000)}
    props = words | {"a.secret": "connector msc started", "b": f"{file}:common}}"}
    validate_connector(None, SOURCE | props, worker)
    text = "connector msc started: connector-started poison-1-of-1 kept-of-the-worker-1"
    assert mask(text) == text.replace("kept-of-the-worker-1", HIDDEN)


def test_a_validating_call_reveals_nothing_of_the_secrets_of_others() -> None:
    remember("guess-me-1")
    infos = validate_connector(None, SOURCE | {"tasks.max": "guess-me-1"}, worker_file())
    assert "guess-me-1" in row(infos, "tasks.max")["value"]["errors"][0]


def test_class_is_shown_as_it_was_sent() -> None:
    policy = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
    infos = validate_connector(None, SOURCE | {"replication.policy.class": policy}, worker_file())
    assert infos["error_count"] == 0
    assert row(infos, "replication.policy.class")["value"]["value"] == policy


KEYS = [key.name for keys in OWN_KEYS.values() for key in keys]
CLIENT_NAMES = [*PRODUCER_KEYS.names, *CONSUMER_KEYS.names]
CLIENT_PREFIXES = ["producer.override.", "source.consumer.", "source.cluster.", "x."]


WORKER = worker_file()


@given(
    st.sampled_from(sorted(OWN_KEYS)),
    st.dictionaries(
        st.sampled_from(KEYS)
        | st.builds(str.__add__, st.sampled_from(CLIENT_PREFIXES), st.sampled_from(CLIENT_NAMES)),
        st.none() | st.text(max_size=8) | st.sampled_from(["1", "-1", "true", "a,b", "${env:X}"]),
        max_size=6,
    ),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_every_request_gets_a_response(kind: str, props: dict[str, str | None]) -> None:
    config = SOURCE | props | {"connector.class": kind}
    infos = validate_connector(kind, config, WORKER)
    names = [row["value"]["name"] for row in infos["configs"]]
    assert len(set(names)) == len(names)
    assert json.loads(json.dumps(infos)) == infos
    findings = Findings()
    parsed = collect_connector(config, WORKER, findings)
    assert findings.errors or parsed.name == config["name"]


def test_secrets_are_not_shown() -> None:
    props = SOURCE | {"ssl.keystore.password": "hunter2", "producer.override.sasl.jaas.config": "x"}
    infos = validate_connector(None, props, worker_file())
    assert row(infos, "ssl.keystore.password")["value"]["value"] == "[hidden]"
    assert row(infos, "producer.override.sasl.jaas.config")["value"]["value"] == "[hidden]"


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("topic.filter.class", "write the topic filter as a Python class and name it module:Class"),
        ("replication.policy.class", "Java classes cannot be loaded; write the replication policy"),
        ("value.converter", "leave it out, because records are copied byte for byte"),
    ],
)
def test_a_java_class_is_rejected_in_connects_words_and_the_log_says_what_to_do(
    key: str, hint: str, caplog: pytest.LogCaptureFixture
) -> None:
    props = {"name": "n", "connector.class": "MirrorSourceConnector", key: "com.acme.Own"}
    infos = validate_connector(None, props, worker_file())
    (errors,) = [row["value"]["errors"] for row in infos["configs"] if row["value"]["name"] == key]
    words = f"Invalid value com.acme.Own for configuration {key}: Class com.acme.Own"
    assert errors == [f"{words} could not be found."]
    (line,) = [text for text in caplog.messages if key in text]
    assert hint in line
    assert "com.acme.Own" not in line


def test_a_third_party_connector_is_explained_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(UnknownConnectorClass):
        validate_connector(None, {"name": "n", "connector.class": "com.acme.Sink"}, worker_file())
    assert "only MirrorMaker 2's three connectors run here" in caplog.text
