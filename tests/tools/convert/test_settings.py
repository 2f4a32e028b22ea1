"""Placeholders lead to mounted files, passwords stay out of files, lines are Java's properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.files.properties import load_properties
from sparkmirror.tools.convert.ledger import Ledger, Node
from sparkmirror.tools.convert.settings import (
    FileSetting,
    Values,
    holds_secret,
    properties_text,
    provider_settings,
    quoted,
)

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def translated(text: str, **known: str) -> tuple[str, Values]:
    values = Values("mirror", "kafka", Ledger("file"))
    values.known |= known
    setting = values.setting(Node(text, "spec.x", values.ledger), "some.key", "source")
    assert setting.path == "spec.x"
    return setting.value, values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no placeholder ${x} $ {a:b}", "no placeholder ${x} $ {a:b}"),
        ("${strimzienv:NAME}", "${env:NAME}"),
        ("${strimzifile:/mnt/a.properties:key}", "${file:/mnt/a.properties:key}"),
        ("${strimzidir:/mnt/a:key} ${mine:X}", "${directory:/mnt/a:key} ${env:X}"),
        ("${strimzisecrets:kafka/a.b:c.d}", "${directory:/etc/sparkmirror/secrets/a.b:c.d}"),
    ],
)
def test_placeholders_of_known_providers(text: str, expected: str) -> None:
    value, values = translated(text, mine="env")
    assert value == expected
    assert values.ledger.notes == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${vault:a:b}", "unknown config provider 'vault': the placeholder stays"),
        ("${strimzisecrets:kafka/../a:b}", "the placeholder names no Secret and key"),
        ("${strimzisecrets:kafka/a}", "the placeholder names no Secret and key"),
    ],
)
def test_other_placeholders_stay_and_are_listed(text: str, reason: str) -> None:
    value, values = translated(text)
    assert value == text
    assert [(note.path, note.reason) for note in values.ledger.notes] == [("spec.x", reason)]


def test_a_secret_of_another_namespace_is_to_be_copied() -> None:
    _, values = translated("${strimzisecrets:elsewhere/a:b}")
    assert values.secrets.keys == {"a": {"b": None}}
    [note] = values.ledger.notes
    assert note.instead == "copy the Secret a to the namespace of the pod"


@pytest.mark.parametrize(
    ("key", "value", "is_held"),
    [
        ("ssl.truststore.password", "changeit", True),
        ("ssl.truststore.password", "", False),
        ("ssl.truststore.password", "${env:PASSWORD}", False),
        ("ssl.truststore.location", "/path", False),
        ("sasl.jaas.config", f'{PLAIN} username="a" password="b";', True),
        ("producer.override.sasl.jaas.config", f'{PLAIN} username="a" password="b";', True),
        ("sasl.jaas.config", f'{PLAIN} username="a" password="${{env:P}}";', False),
        ("sasl.jaas.config", "cannot be read", True),
        ("sasl.jaas.config", 'x required oauth.token.endpoint.uri="https://t/x";', False),
        ("sasl.jaas.config", 'x required oauth.client.secret="s";', True),
        ("topics", "password", False),
    ],
)
def test_passwords_are_noticed(key: str, value: str, is_held: bool) -> None:
    assert holds_secret(key, value) is is_held


def test_a_password_is_expected_in_a_secret() -> None:
    values = Values("mirror", "", Ledger("file"))
    node = Node("planted-in-a-resource-1", "spec.x", values.ledger)
    setting = values.setting(node, "ssl.key.password", "a->b")
    name = "a-_b.ssl.key.password"
    secret = "mirror-sparkmirror-secrets"
    assert setting.value == f"${{directory:/etc/sparkmirror/secrets/{secret}:{name}}}"
    [note] = values.ledger.notes
    assert note.instead == f"kubectl create secret generic {secret} --from-file={name}=FILE"
    assert "planted" not in str(note)


def test_providers_are_those_that_are_needed_and_limited() -> None:
    values = ["${directory:/a:b}", "x ${env:Y}", "${other:z}"]
    found = provider_settings(values, ["/a", "/mnt/b"], ["POD_IP", "Y"])
    java = "org.apache.kafka.common.config.provider."
    assert {key: setting.value for key, setting in found.items()} == {
        "config.providers": "directory,env",
        "config.providers.directory.class": f"{java}DirectoryConfigProvider",
        "config.providers.directory.param.allowed.paths": "/a,/mnt/b",
        "config.providers.env.class": f"{java}EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "^(POD_IP|Y)$",
    }
    assert provider_settings(["nothing"], [], []) == {}
    assert "config.providers.file.param.allowed.paths" not in provider_settings(
        ["${file:/a:b}"], [], []
    )


def test_lines_are_read_again_as_they_were(tmp_path: Path) -> None:
    settings = {
        "a->b.topics": "x, y.*",
        "with space:and=signs": "c:\\path\\",
        "#not a comment": " leading blank ",
        "umlaut\u00e4": "\u00e4 \U0001f600",
        "lines": "one\ntwo\r\tthree\f",
        "empty": "",
        "equals": "=x:y#z!",
    }
    path = tmp_path / "x.properties"
    given = {key: FileSetting(value) for key, value in settings.items()}
    path.write_text(properties_text({"A section": given, "Empty": {}}, "Two\nlines"), "ascii")
    assert load_properties(path) == settings
    assert path.read_text().startswith("# Two\n# lines\n\n# A section\na->b.topics=x, y.*\n")


def test_options_are_quoted() -> None:
    assert quoted('a"b\\c') == '"a\\"b\\\\c"'
