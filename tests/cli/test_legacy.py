"""The command line of `sparkmirror legacy`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sparkmirror
from sparkmirror.cli import main as cli
from sparkmirror.config.keys.legacy_keys import REFUSED_OPTIONS


def run(*words: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["legacy", *words])
    return ended.value.code


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The options that name the two files, with clusters that do not exist."""
    consumer, producer = tmp_path / "consumer.properties", tmp_path / "producer.properties"
    consumer.write_text("bootstrap.servers=127.0.0.1:1\ngroup.id=mm1\nclient.id=x\n")
    producer.write_text("bootstrap.servers=127.0.0.1:2\n")
    return ["--consumer.config", str(consumer), f"--producer.config={producer}"]


def test_the_mm2_file_goes_to_stdout_and_warnings_do_not(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*files, "--whitelist", "a,b", "--to-mm2") == 0
    out, err = capsys.readouterr()
    assert "source->target.topics = a|b\n" in out
    assert "client.id: has no effect" in err
    assert "has no effect" not in out


def test_json(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*files, "--include", "a", "--num.streams", "7", "--to-mm2", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["settings"]["source->target.tasks.max"] == "7"
    assert any("client.id" in warning for warning in shown["warnings"])
    assert shown["notes"]


@pytest.mark.parametrize("as_json", [[], ["--json"]])
@pytest.mark.parametrize("literal", ["Xlit3ralpw!", "p!w#x=y:z", "b\\\\slash-1"])
def test_a_password_beside_placeholders_is_printed_nowhere(
    files: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    literal: str,
    as_json: list[str],
) -> None:
    monkeypatch.setenv("MM1_USER", "somebody")
    java = "org.apache.kafka.common"
    with Path(files[1]).open("a") as file:
        file.write(
            "config.providers=env\n"
            f"config.providers.env.class={java}.config.provider.EnvVarConfigProvider\n"
            f"sasl.jaas.config={java}.security.plain.PlainLoginModule required "
            f'username="${{env:MM1_USER}}" password="{literal}";\n'
        )
    assert run(*files, "--include", "a", "--to-mm2", *as_json) == 0
    out, err = capsys.readouterr()
    for text in (out, err):
        assert literal.replace("\\", "") not in text.replace("\\", "")
    assert f"${{mm1:{files[1]}:sasl.jaas.config}}" in out.replace("\\", "")
    assert "sasl.jaas.config: has placeholders and other text" in (out if as_json else err)


@pytest.mark.parametrize("option", REFUSED_OPTIONS)
def test_java_code_is_rejected_with_a_reason(
    files: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*files, "--include", "a", option, "some.Class") == 2
    assert f"{option}=some.Class: " in capsys.readouterr().err


def test_without_options_everything_missing_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run() == 2
    err = capsys.readouterr().err
    for option in ("--consumer.config", "--producer.config", "--include"):
        assert f"{option}: is missing" in err


def test_clusters_that_cannot_be_reached_are_all_named(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*files, "--include", "a") == 1
    err = capsys.readouterr().err
    assert "cluster 'source' cannot be reached" in err
    assert "cluster 'target' cannot be reached" in err


def test_json_alone_is_wrong(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*files, "--include", "a", "--json") == 2
    assert "add --to-mm2" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert sparkmirror.__version__ in capsys.readouterr().out
    assert run("--help") == 0
    assert "a record keeps its partition number" in " ".join(capsys.readouterr().out.split())
