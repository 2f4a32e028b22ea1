"""`sparkmirror check` of clusters that cannot be reached: the keys that it names exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkmirror.cli import main as cli
from sparkmirror.cli.check import _summary
from sparkmirror.embedded.ports import ReservedPort
from sparkmirror.tools.check.check_report import Report

MM2 = "clusters=a,b\na.bootstrap.servers={at}\nb.bootstrap.servers={at}\na->b.enabled=true\n"
WORKER = (
    "bootstrap.servers={at}\ngroup.id=g\noffset.storage.topic=o\nconfig.storage.topic=c\n"
    "status.storage.topic=s\n"
)
CONNECTOR = json.dumps(
    {
        "name": "n",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "{at}",
        "target.cluster.bootstrap.servers": "{at}",
    }
)
KEYS = [
    pytest.param("mm2.properties", MM2, "a.bootstrap.servers", id="mm2 file"),
    pytest.param("worker.properties", WORKER, "bootstrap.servers", id="worker file"),
    pytest.param("n.json", CONNECTOR, "source.cluster.bootstrap.servers", id="connector"),
]


@pytest.mark.parametrize(("name", "text", "key"), KEYS)
def test_an_unreachable_cluster_is_reported_with_the_key_of_the_file(
    name: str, text: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    with ReservedPort() as port:
        file.write_text(text.replace("{at}", f"127.0.0.1:{port.number}"))
        with pytest.raises(SystemExit) as ended:
            cli.main(["check", str(file)])
    out = capsys.readouterr().out
    assert ended.value.code == 1
    reachable = next(line for line in out.splitlines() if line.startswith("reachable"))
    assert f"Connection refused; check {key} and that the brokers are up" in reachable
    assert "?: no connection" not in out
    assert "were not checked: no connection" in out


def test_the_last_line_does_not_contradict_itself() -> None:
    report = Report("mm2.properties", "mm2 file", (), (), problems=("topic 'x' cannot be created",))
    assert _summary(report) == (
        "mm2.properties (mm2 file): problems found; 0 logins, 0 with problems; 0 permissions asked "
        "for, 0 missing; 0 missing but not required; settings that cannot work: 1"
    )


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_what_a_config_provider_gave_is_not_shown(
    options: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    lines = f"config.providers=env\nconfig.providers.env.class={provider}\n"
    file = tmp_path / "mm2.properties"
    file.write_text(lines + MM2.replace("{at}", "${env:PROVIDED_SERVERS}"))
    monkeypatch.setenv("PROVIDED_SERVERS", "provided-broker.invalid:9092")
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", str(file), *options])
    assert ended.value.code == 1
    written = "".join(capsys.readouterr())
    assert "provided-broker" not in written
    assert "[hidden]" in written
