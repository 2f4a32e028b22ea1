"""A worker without a file: settings from variables, as Confluent's and Debezium's images do it."""

from __future__ import annotations

import pytest

from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.config.worker.environment import DEBEZIUM, connect_names, remove_variables
from sparkmirror.config.worker.worker_file import KEY_NAMES, WORKER_FILE_KEYS, load_worker_variables
from sparkmirror.errors import ConfigError, ConfigErrors
from tests.users.files import QUICKSTART, smallest

SMALLEST = {
    "CONNECT_BOOTSTRAP_SERVERS": "target:9092",
    "CONNECT_GROUP_ID": "g",
    "CONNECT_CONFIG_STORAGE_TOPIC": "c",
    "CONNECT_OFFSET_STORAGE_TOPIC": "o",
    "CONNECT_STATUS_STORAGE_TOPIC": "s",
}
# As Debezium's own tutorial starts it.
TUTORIAL = {
    "BOOTSTRAP_SERVERS": "kafka:9092",
    "GROUP_ID": "7",
    "CONFIG_STORAGE_TOPIC": "my_connect_configs",
    "OFFSET_STORAGE_TOPIC": "my_connect_offsets",
    "STATUS_STORAGE_TOPIC": "my_connect_statuses",
}
PART = "the quotes are part of the value, as in Java:"
LEFT = "the quotes are removed, because host names have none:"
STATUS_DEFAULT = "not set, so it is 'connect-status' as in Debezium's image"
REQUIRED = "is required and not set; set it to a text"
NO_ADDRESS = "cluster 'worker' has no broker address; set it to host:port,host:port"


def errors_of(environ: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigErrors) as raised:
        load_worker_variables(environ)
    return [str(error) for error in raised.value.errors]


# -- Confluent --------------------------------------------------------------------------------


def test_c_has_a_worker_of_variables_alone() -> None:
    file = load_worker_variables({**QUICKSTART, "PATH": "/bin", "KAFKA_CONNECT_X": "y"})
    assert file.worker.client.bootstrap_servers == ("source:9092",)
    assert file.group.group_id == '"quickstart"'
    assert str(file.rest.advertised("own")) == "http://localhost:28082"
    assert file.override.allows("bootstrap.servers")
    assert [text for text in file.warnings if "quotes" in text] == [
        f'CONNECT_GROUP_ID (group.id): {PART} "quickstart"',
        f'CONNECT_PLUGIN_PATH (plugin.path): {PART} "/usr/share/java"',
        f'CONNECT_REST_ADVERTISED_HOST_NAME (rest.advertised.host.name): {LEFT} "localhost"',
    ]


def test_every_prefixed_variable_sets_something_or_is_named_in_a_warning() -> None:
    others = {
        "CONNECT_PLUGIN_PATH": "/usr/share/java",
        "CONNECT_LOG4J_TOOLS_ROOT_LOGLEVEL": "ERROR",
        "CONNECT_CUB_KAFKA_TIMEOUT": "300",
        "CONNECT_CONFLUENT_TOPIC_REPLICATION_FACTOR": "1",
        "CONNECT_KEY_CONVERTER_SCHEMA_REGISTRY_URL": "http://registry",
        "CONNECT_CONSUMER_INTERCEPTOR_CLASSES": "io.confluent.X",
        "CONNECT_GROUP_IDD": "x",
        "CONNECT_SERVICE_HOST": "10.0.0.1",
        "CONNECT_": "x",
    }
    warnings = load_worker_variables({**SMALLEST, **others}).warnings
    unnamed = [name for name in others if not any(name in text for text in warnings)]
    assert unnamed == []
    assert (
        "CONNECT_GROUP_IDD (group.idd): unknown key, ignored; did you "
        "mean CONNECT_GROUP_ID (group.id)?"
    ) in warnings


def test_levels_are_for_the_log() -> None:
    file = load_worker_variables({**SMALLEST, "CONNECT_LOG4J_ROOT_LOGLEVEL": "WARN"})
    assert file.log_levels == (("root", "WARN"),)
    assert file.warnings == ()
    assert not any("log4j" in key for key in file.raw_props)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(r"a \"b\" \\ \u0041", r'a "b" \ A', id="escapes, as in a properties file"),
        pytest.param("  a ", "a ", id="blanks before it"),
        pytest.param("a\n", "a", id="a line break after it"),
        pytest.param("a\\\n  b", "ab", id="a continued line"),
        pytest.param("--BEGIN\nx=\\\n--END", "--BEGIN\nx=\\\n--END", id="several lines"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_values_are_those_of_the_images_properties_file(text: str, value: str) -> None:
    file = load_worker_variables({**SMALLEST, "CONNECT_CLIENT_ID": text})
    assert file.props["client.id"] == value


def test_connectors_get_no_warning_that_the_worker_had() -> None:
    file = load_worker_variables({**QUICKSTART, "CONNECT_PRODUCER_ACKS": "0"})
    assert [text for text in file.warnings if text.startswith("CONNECT_PRODUCER_ACKS (producer.a")]
    connector = smallest("m", "t", "source:9092", "target:9092")
    messages = parse_connector(connector, file).warnings
    assert messages
    assert not any("acks" in text for text in messages)


# -- Debezium ---------------------------------------------------------------------------------


def test_debeziums_names_are_read_beside_its_bootstrap_servers() -> None:
    file = load_worker_variables({**TUTORIAL, "CONNECT_REQUEST_TIMEOUT_MS": "5000"})
    assert file.worker.bootstrap_servers == ("kafka:9092",)
    assert (file.group.group_id, file.worker.offset_storage_topic) == ("7", "my_connect_offsets")
    assert file.worker.client.request_timeout_ms == 5000
    assert file.warnings == ()


def test_debeziums_names_are_not_read_elsewhere() -> None:
    file = load_worker_variables({**SMALLEST, "GROUP_ID": "other", "REST_PORT": "1"})
    assert file.group.group_id == "g"
    assert file.rest.listeners[0].port == 8083
    others = {name: "1" for name in DEBEZIUM if name != "BOOTSTRAP_SERVERS"}
    for environ in (others, {**others, "BOOTSTRAP_SERVERS": ""}):
        with pytest.raises(ConfigError, match="FILE: missing"):
            load_worker_variables(environ)


def test_prefixed_variables_are_stronger_than_debeziums() -> None:
    both = {**TUTORIAL, "CONNECT_GROUP_ID": "g", "CONNECT_BOOTSTRAP_SERVERS": "kafka:9092"}
    file = load_worker_variables(both)
    assert file.group.group_id == "g"
    assert file.warnings == ("GROUP_ID: no effect: CONNECT_GROUP_ID sets group.id",)


def test_debeziums_image_has_two_defaults_that_a_worker_needs() -> None:
    needed = ("BOOTSTRAP_SERVERS", "CONFIG_STORAGE_TOPIC", "OFFSET_STORAGE_TOPIC")
    file = load_worker_variables({name: TUTORIAL[name] for name in needed})
    assert (file.group.group_id, file.worker.status_storage_topic) == ("1", "connect-status")
    assert file.warnings == (
        "GROUP_ID (group.id): not set, so it is '1' as in Debezium's image",
        f"STATUS_STORAGE_TOPIC (status.storage.topic): {STATUS_DEFAULT}",
    )


def test_debeziums_names_set_keys_that_a_worker_has() -> None:
    assert set(DEBEZIUM.values()) <= set(KEY_NAMES)
    assert set(DEBEZIUM.values()) - {"bootstrap.servers"} <= set(WORKER_FILE_KEYS.names)


# -- errors -----------------------------------------------------------------------------------


def test_missing_settings_are_named_by_their_variables() -> None:
    assert errors_of({"CONNECT_PLUGIN_PATH": "/x"}) == [
        f"CONNECT_GROUP_ID (group.id): {REQUIRED}",
        f"CONNECT_OFFSET_STORAGE_TOPIC (offset.storage.topic): {REQUIRED}",
        f"CONNECT_CONFIG_STORAGE_TOPIC (config.storage.topic): {REQUIRED}",
        f"CONNECT_STATUS_STORAGE_TOPIC (status.storage.topic): {REQUIRED}",
        f"CONNECT_BOOTSTRAP_SERVERS (bootstrap.servers): {NO_ADDRESS}",
    ]
    assert errors_of({"BOOTSTRAP_SERVERS": "here:1"}) == [
        f"OFFSET_STORAGE_TOPIC (offset.storage.topic): {REQUIRED}",
        f"CONFIG_STORAGE_TOPIC (config.storage.topic): {REQUIRED}",
    ]


def test_wrong_settings_are_named_by_their_variables_all_at_once() -> None:
    wrong = {
        "CONNECT_BOOTSTRAP_SERVERS": "here",
        "CONNECT_OFFSET_FLUSH_INTERVAL_MS": "soon",
        "CONNECT_PRODUCER_ACKS": "some",
        "CONNECT_SSL_KEY_PASSWORD": r"planted-1 \u00",
        "CONNECT_CLIENT_ID": "\udcff",
        "CONNECT_LOG4J_ROOT_LOGLEVEL": "LOUD",
        "CONNECT_group_id": "h",
    }
    errors = errors_of({**SMALLEST, **wrong})
    begin = [
        "CONNECT_GROUP_ID and CONNECT_group_id: set the same key, group.id; keep one of them",
        "CONNECT_SSL_KEY_PASSWORD (ssl.key.password): malformed escape; ",
        "CONNECT_CLIENT_ID (client.id): is not text in UTF-8",
        "CONNECT_LOG4J_ROOT_LOGLEVEL: 'LOUD' is not a log level; ",
        "CONNECT_OFFSET_FLUSH_INTERVAL_MS (offset.flush.interval.ms)=soon: not a number",
        "CONNECT_BOOTSTRAP_SERVERS (bootstrap.servers)=here: ",
        "CONNECT_PRODUCER_ACKS (producer.acks)=some: ",
    ]
    missing = [text for text in begin if not any(each.startswith(text) for each in errors)]
    assert missing == [], errors
    assert len(errors) == len(begin)
    assert "planted" not in "".join(errors)


def test_no_variable_at_all_is_an_error() -> None:
    kubernetes = {"CONNECT_PORT": "tcp://10.0.0.1:8083", "CONNECT_SERVICE_HOST": "10.0.0.1"}
    for environ in ({"PATH": "/bin"}, kubernetes, {"CONNECT_URL": "http://localhost:8083"}):
        with pytest.raises(ConfigError) as raised:
            load_worker_variables(environ)
        assert str(raised.value) == (
            "FILE: missing, and no environment variable CONNECT_* has a setting for a worker; name "
            "a worker's file, or set CONNECT_BOOTSTRAP_SERVERS and so on"
        )


# -- beside a file, and for Spark -------------------------------------------------------------


def test_names_of_variables_that_would_count_without_a_file() -> None:
    environ = {
        "CONNECT_GROUP_ID": "g",
        "CONNECT_LOG4J_ROOT_LOGLEVEL": "WARN",
        "CONNECT_URL": "http://w",
        "CONNECT_SERVICE_HOST": "10.0.0.1",
        "GROUP_ID": "g",
    }
    assert connect_names(environ) == ["CONNECT_GROUP_ID", "CONNECT_LOG4J_ROOT_LOGLEVEL"]


def test_prefixed_variables_are_removed() -> None:
    environ = {**SMALLEST, "CONNECT_URL": "http://w", "PATH": "/bin", "AWS_REGION": "eu"}
    remove_variables(environ)
    assert environ == {"PATH": "/bin", "AWS_REGION": "eu"}
