"""`sparkmirror legacy --to-mm2`: a file that copies the same, and has no passwords in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.legacy.as_mm2_file import mm2_text, shown_settings, shown_warnings
from sparkmirror.config.mm2 import load_mm2
from tests.config.legacy.test_mirror_maker_1 import CONSUMER, ENV, PRODUCER, flow_of, load

JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="pw-1";'
)
LITERALS = ["Xlit3ralpw!", "p#w=o:r\\d-1", "p!w#x=y:z"]


def test_the_mm2_file_is_read_by_our_own_reader_and_copies_the_same(tmp_path: Path) -> None:
    consumer = {
        **CONSUMER,
        "fetch.min.bytes": "7",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS,
    }
    producer = {**PRODUCER, "acks": "1"}
    config = load(
        tmp_path, consumer, producer, include=r"a\.b,c", offset_commit_interval_ms="30000"
    )
    text = mm2_text(config)
    assert "pw-1" not in text
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    read = load_mm2(file)
    (flow,) = read.flows
    wanted = flow_of(config)
    assert read.warnings == ()
    assert read.heartbeats == ()
    assert flow.source.policy_class.endswith(".IdentityReplicationPolicy")
    assert flow.source.topics == (r"a\.b|c",)
    for name in ("consumer", "producer", "source_client", "target_client", "tasks_max"):
        assert getattr(flow.source, name) == getattr(wanted.source, name)
    assert not flow.checkpoint.emit_checkpoints_enabled
    assert flow.worker.offset_flush_interval_ms == 30000


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize(
    "value",
    [
        'required username="${env:MM1_USER}" password="{}";',
        "{}${env:MM1_USER}",
        "${env:MM1_USER}{}",
        "${{}}",
        "${nobody:{}}",
        "${:{}}",
    ],
)
def test_text_beside_placeholders_is_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, literal: str
) -> None:
    monkeypatch.setenv("MM1_USER", "somebody")
    written = value.replace("{}", literal.replace("\\", "\\\\"))
    config = load(tmp_path, {**CONSUMER, **ENV, "sasl.jaas.config": written})
    name = "source.sasl.jaas.config"
    file = tmp_path / "consumer.properties"
    assert shown_settings(config)[name] == f"${{mm1:{file}:sasl.jaas.config}}"
    # Nor as a properties file would have it, which puts a backslash before some characters.
    assert literal not in mm2_text(config).replace("\\", "")
    assert literal.replace("\\", "") not in mm2_text(config).replace("\\", "")
    has_known = "${env:MM1_USER}" in value
    assert any("sasl.jaas.config" in each for each in shown_warnings(config)) == has_known


@pytest.mark.parametrize("value", ["${env:hidden-1}", "${:hidden-1}", "${hidden-1}", "${hidden-1"])
def test_without_providers_a_placeholder_is_text(tmp_path: Path, value: str) -> None:
    config = load(tmp_path, {**CONSUMER, "ssl.truststore.password": value})
    assert "hidden-1" not in mm2_text(config)
    assert shown_warnings(config) == ()


def test_a_secret_that_only_has_placeholders_is_printed_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MM1_USER", "somebody")
    consumer = {**CONSUMER, **ENV, "sasl.jaas.config": "${env:MM1_USER}${env:MM1_USER} "}
    config = load(tmp_path, consumer)
    shown = shown_settings(config)
    assert shown["source.sasl.jaas.config"].strip() == "${env:MM1_USER}${env:MM1_USER}"
    assert shown["config.providers"] == "env"
    assert shown_warnings(config) == config.warnings


def test_a_provider_of_the_files_keeps_its_name(tmp_path: Path) -> None:
    kept = {key.replace("env", "mm1"): value.replace("env", "mm1") for key, value in ENV.items()}
    kept["config.providers.mm1.class"] = ENV["config.providers.env.class"]
    config = load(tmp_path, {**CONSUMER, **kept, "sasl.jaas.config": JAAS})
    file = tmp_path / "mm2.properties"
    file.write_text(mm2_text(config))
    assert shown_settings(config).items() >= {"config.providers": "mm1, mm1_"}.items()
    (flow,) = load_mm2(file).flows
    assert flow.source.source_client == flow_of(config).source.source_client


def test_without_passwords_there_is_no_config_provider(tmp_path: Path) -> None:
    assert "config.providers" not in shown_settings(load(tmp_path))
