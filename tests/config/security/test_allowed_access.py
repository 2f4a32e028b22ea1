"""Which addresses and files a login may name, by who writes the settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.config.files.java_options import use_java_options
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.validation.connector_validation import error_summary, validate_connector
from sparkmirror.errors import ConfigErrors
from tests.config.worker_files import worker_with

URLS, FILES = "sasl.oauthbearer.allowed.urls", "sasl.oauthbearer.allowed.files"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
SERVER = "https://login.example.com/token"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": f"{MODULE};",
}
SOURCE: dict[str, str | None] = {
    "connector.class": "MirrorSourceConnector",
    "name": "x",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "source-kafka:9092",
    "target.cluster.bootstrap.servers": "target-kafka:9092",
}


@pytest.fixture(autouse=True)
def _no_java_options() -> Iterator[None]:
    use_java_options("")
    yield
    use_java_options("")


def connector(prefix: str = "source.cluster.", **settings: str) -> dict[str, str | None]:
    given = LOGIN | {key.replace("_", "."): value for key, value in settings.items()}
    return SOURCE | {f"{prefix}{key}": value for key, value in given.items()}


def refusals(props: dict[str, str | None], worker: dict[str, str]) -> list[str]:
    """What keeps the connector from starting; the same keeps it from being created."""
    file = worker_with(worker)
    try:
        parse_connector(props, file)
    except ConfigErrors as errors:
        found = [f"{error.key}: {error.reason}; {error.remedy}" for error in errors.errors]
    else:
        found = []
    summary = error_summary(validate_connector(None, props, file)) or ""
    assert bool(found) == bool(summary)
    assert all(text.partition(": ")[2] in summary for text in found)
    return found


@pytest.mark.parametrize(
    "prefix",
    [
        "source.cluster.",
        "target.cluster.",
        "source.consumer.",
        "consumer.",
        "admin.",
        "target.admin.",
        "producer.override.",
    ],
)
def test_connector_names_no_token_server_that_the_worker_does_not_list(prefix: str) -> None:
    props = connector(prefix, sasl_oauthbearer_token_endpoint_url=SERVER)
    (refusal,) = refusals(props, {})
    assert refusal.startswith(f"{prefix}{ENDPOINT}: ")
    assert f"add it to {URLS} in the worker's file" in refusal
    assert refusals(props, {URLS: f"https://other/, {SERVER}"}) == []


@pytest.mark.parametrize(
    "url",
    [
        f"{SERVER}/more",
        "https://login.example.com",
        "https://login.example.com@evil/token",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
def test_only_the_very_url_is_allowed(url: str) -> None:
    props = connector(sasl_oauthbearer_token_endpoint_url=url)
    assert len(refusals(props, {URLS: SERVER})) == 1


@pytest.mark.parametrize("name", ["file", "private.key.file", "template.file"])
def test_connector_names_no_file_that_the_worker_does_not_list(name: str) -> None:
    key = f"sasl.oauthbearer.assertion.{name}"
    props = connector(sasl_oauthbearer_token_endpoint_url=SERVER) | {
        f"source.cluster.{key}": "/etc/shadow"
    }
    (refusal,) = refusals(props, {URLS: SERVER})
    assert refusal.startswith(f"source.cluster.{key}: ")
    assert f"add it to {FILES} in the worker's file" in refusal
    assert refusals(props, {URLS: SERVER, FILES: "/etc/shadow"}) == []


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("file:///run/token", True),
        ("file:/run/token", True),
        ("file:///run/../run/token", False),
        ("file:///run//token", False),
        ("file:///run/%74oken", True),
        ("file:///run/../etc/passwd", False),
        ("file:///run", False),
        ("file:///var/run/secrets/kubernetes.io/serviceaccount/token", False),
    ],
)
def test_token_file_must_be_listed(url: str, allowed: bool) -> None:
    props = connector(sasl_oauthbearer_token_endpoint_url=url)
    assert (refusals(props, {FILES: "/run/token"}) == []) == allowed


def test_url_in_the_login_module_counts_too() -> None:
    jaas = f'{MODULE} oauth.token.endpoint.uri="{SERVER}" oauth.client.secret="hidden-away";'
    props = connector(sasl_jaas_config=jaas)
    (refusal,) = refusals(props, {})
    assert refusal.startswith("source.cluster.sasl.jaas.config: ")
    assert "hidden-away" not in refusal
    assert refusals(props, {URLS: SERVER}) == []


def test_connector_cannot_allow_anything_itself() -> None:
    props = connector(sasl_oauthbearer_token_endpoint_url=SERVER) | {URLS: SERVER, FILES: "/"}
    assert len(refusals(props, {})) == 1


def test_value_of_a_config_provider_is_what_counts(tmp_path: Path) -> None:
    (tmp_path / "s.properties").write_text(f"url={SERVER}\n")
    worker = {
        "config.providers": "file",
        "config.providers.file.class": (
            "org.apache.kafka.common.config.provider.FileConfigProvider"
        ),
    }
    placeholder = f"${{file:{tmp_path}/s.properties:url}}"
    props = connector(sasl_oauthbearer_token_endpoint_url=placeholder)
    assert len(refusals(props, worker)) == 1
    assert refusals(props, worker | {URLS: SERVER}) == []


def test_worker_itself_may_name_anything() -> None:
    own = {f"producer.{key}": value for key, value in LOGIN.items()}
    worker = own | LOGIN | {ENDPOINT: SERVER, f"producer.{ENDPOINT}": "file:///run/token"}
    assert refusals(SOURCE, worker) == []


def test_system_properties_of_kafka_count_where_the_file_says_nothing() -> None:
    use_java_options(
        f"-Dorg.apache.kafka.{URLS}={SERVER} -Dorg.apache.kafka.{FILES}=/run/a,/run/token"
    )
    props = connector(sasl_oauthbearer_token_endpoint_url=SERVER)
    assert refusals(props, {}) == []
    assert len(refusals(props, {URLS: ""})) == 1
    token = connector(sasl_oauthbearer_token_endpoint_url="file:///run/token")
    assert refusals(token, {}) == []


def _mm2(tmp_path: Path, **settings: str) -> None:
    props = {
        "clusters": "A, B",
        "A.bootstrap.servers": "a:9092",
        "B.bootstrap.servers": "b:9092",
        "A->B.enabled": "true",
        **{f"A.{key}": value for key, value in LOGIN.items()},
        f"A.{ENDPOINT}": SERVER,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    path = tmp_path / "mm2.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
    assert [text for text in load_mm2(path).warnings if "allowed" in text] == []


def test_file_of_flows_may_name_anything_unless_it_says_otherwise(tmp_path: Path) -> None:
    _mm2(tmp_path)
    _mm2(tmp_path, sasl_oauthbearer_allowed_urls=SERVER, sasl_oauthbearer_allowed_files="/a")
    with pytest.raises(ConfigErrors, match=rf"A\.{ENDPOINT}") as caught:
        _mm2(tmp_path, sasl_oauthbearer_allowed_urls="https://other/")
    assert URLS in str(caught.value)
