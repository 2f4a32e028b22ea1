"""Logins that users give to the JVM in KAFKA_OPTS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.config.clients import parse_client
from sparkmirror.config.config_def import BadValue, Secret
from sparkmirror.config.files.java_options import client_login, java_property, use_java_options
from sparkmirror.config.findings import Findings, Settings

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
FILE = f"""\
KafkaConnect {{ other.Module required; }};
KafkaClient {{
  {PLAIN} required
  username="alice" password="hu}}sh";
}};
"""
SASL = {
    "bootstrap.servers": "h:1",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
}


@pytest.fixture(autouse=True)
def no_options() -> Iterator[None]:
    yield
    use_java_options("")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jaas.conf"
    path.write_text(FILE)
    use_java_options(f"-Xmx1g -Djava.security.auth.login.config={path}")
    return path


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ("", None),
        ("-Xmx1g -Da.b=c", "c"),
        ("-Da.b=c -Da.b=d", "d"),
        ("-Da.b==c", "c"),
        ("'-Da.b=c d'", "c d"),
        ("-Da.b='c", "'c"),
        ("-Da.bc=d", None),
    ],
)
def test_properties_of_java(options: str, value: str | None) -> None:
    assert java_property(options, "a.b") == value


@pytest.mark.usefixtures("file")
def test_a_client_without_a_login_takes_that_of_the_file() -> None:
    findings = Findings()
    config = parse_client(Settings(SASL, findings), "x")
    assert findings.errors == ()
    login = config.security["sasl.jaas.config"]
    assert isinstance(login, Secret)
    assert 'username="alice" password="hu}sh";' in login.reveal()


@pytest.mark.usefixtures("file")
def test_the_setting_wins() -> None:
    own = f'{PLAIN} required username="bob" password="p";'
    config = parse_client(Settings({**SASL, "sasl.jaas.config": own}, Findings()), "x")
    assert config.security["sasl.jaas.config"] == Secret(own)


@pytest.mark.usefixtures("file")
def test_no_other_client_gets_it() -> None:
    config = parse_client(Settings({"bootstrap.servers": "h:1"}, Findings()), "x")
    assert "sasl.jaas.config" not in config.security


def test_no_file_is_named() -> None:
    assert client_login() is None
    findings = Findings()
    parse_client(Settings(SASL, findings), "x")
    assert [error.key for error in findings.errors] == ["sasl.jaas.config"]


def test_files_that_do_not_help(file: Path) -> None:
    file.write_text("KafkaServer { a.B required; };")
    with pytest.raises(BadValue, match=r"the section KafkaClient of .* is missing"):
        client_login()
    file.unlink()
    with pytest.raises(BadValue, match="cannot be read"):
        client_login()
    findings = Findings()
    parse_client(Settings(SASL, findings), "x")
    assert any("cannot be read" in error.reason for error in findings.errors)
