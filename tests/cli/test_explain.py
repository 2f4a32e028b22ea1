"""`sparkmirror explain` without clusters: of a file, and of a connector on a worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkmirror.cli import main as cli
from sparkmirror.embedded.ports import ReservedPort
from tests.cli.deploy_shell import Shell

MM2 = """\
clusters = A, B, C
A.bootstrap.servers = {at}
B.bootstrap.servers = {at}
C.bootstrap.servers = {at}
A->B.enabled = true
A->B.topics = orders.*
A->C.enabled = true
topics.exclude = .*-test
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(MM2.replace("{at}", "127.0.0.1:1"))
    return path


def explain(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", *map(str, words)])
    assert isinstance(ended.value.code, int)
    written = capsys.readouterr()
    return ended.value.code, written.out + written.err


def test_every_flow_is_explained(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = explain(capsys, "topic", "payments", file, "--offline")
    assert code == 0
    assert "'payments' is not mirrored from 'A' to 'B': no expression of A->B.topics" in out
    assert "  A->B.topics = orders.*, payments\n" in out
    assert "'payments' of 'A' would be mirrored to 'A.payments' of 'C'" in out


def test_the_line_to_write_has_the_files_own_key(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = explain(capsys, "topic", "x-test", file, "--offline", "--flow", "A->C")
    assert code == 1
    assert "'B'" not in out
    assert "to change that, write:\n  topics.exclude =\n" in out


def test_one_flow_of_several(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = explain(capsys, "topic", "x", file, "--flow", "C->A")
    assert code == 2
    assert "--flow=C->A: no flow of this name copies; use one of A->B, A->C" in out


def test_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = explain(capsys, "group", "connect-x", file, "--offline", "--json")
    assert code == 1
    found = json.loads(out)
    assert [(row["source"], row["target"], row["verdict"]) for row in found] == [
        ("A", "B", "stops"),
        ("A", "C", "stops"),
    ]
    assert found[0]["change"]["key"] == "A->B.groups.exclude"


def test_clusters_that_do_not_respond_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mm2.properties"
    with ReservedPort() as port:
        path.write_text(MM2.replace("{at}", f"127.0.0.1:{port.number}"))
        for kind in ("topic", "group"):
            code, out = explain(capsys, kind, "orders", path, "--flow", "A->B")
            assert "note: 'A' was not asked: cluster 'A' cannot be reached" in out
            assert "note: 'B' was not asked: cluster 'B' cannot be reached" in out
            assert code == (0 if kind == "topic" else 1)


def test_a_connectors_file_is_written_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "msc.json"
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
        "topics": "a\\.b",
    }
    path.write_text(json.dumps({"name": "msc", "config": config}))
    code, out = explain(capsys, "topic", "pay", path, "--offline")
    assert code == 1
    assert '  "topics": "a\\\\.b, pay"\n' in out
    code, out = explain(capsys, "group", "pay", path, "--offline")
    assert code == 2
    assert "this connector follows no groups; name a MirrorCheckpointConnector" in out


@pytest.mark.parametrize(
    "words", [(), ("--url", "http://localhost:1"), ("FILE", "--url", "http://localhost:1")]
)
def test_either_a_file_or_a_worker(
    words: tuple[str, ...], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(file) if word == "FILE" else word for word in words]
    code, out = explain(capsys, "topic", "orders", *given)
    assert code == 2
    assert "name either a FILE, or --url and --connector" in out


def test_a_workers_file_mirrors_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "worker.properties"
    path.write_text("bootstrap.servers = b:1\ngroup.id = g\n")
    code, out = explain(capsys, "topic", "orders", path)
    assert code == 2
    assert "it mirrors nothing; name an mm2 file" in out


def test_a_connector_of_a_worker(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell("deploy") == 0
    where = ("--url", shell.url, "--offline")
    code, out = explain(capsys, "topic", "__consumer_offsets", *where, "--connector", "mm2-msc-eu")
    assert code == 1
    assert '"topics": "test, __consumer_offsets"' in out
    assert "after that, this rule stops it: __.* of topics.exclude matches it" in out
    code, out = explain(capsys, "topic", "orders", *where, "--connector", "nobody")
    assert code == 1
    assert "has no connector 'nobody'; it has: mm2-cpc-eu, mm2-hbc-eu, mm2-msc-eu" in out


def test_placeholders_that_only_the_worker_can_resolve(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.worker.put_config(
        "other",
        {
            "name": "other",
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": "A",
            "source.cluster.bootstrap.servers": "${file:/etc/servers:a}",
            "target.cluster.bootstrap.servers": "b:1",
            "source.cluster.sasl.jaas.config": "${file:/etc/secrets:jaas}",
        },
    )
    code, out = explain(capsys, "topic", "x", "--url", shell.url, "--connector", "other")
    assert code == 0
    assert "'x' of 'A' would be mirrored" in out
    assert "only the worker can resolve placeholders of source.cluster.bootstrap.servers" in out


def test_an_unreachable_worker(capsys: pytest.CaptureFixture[str]) -> None:
    with ReservedPort() as port:
        url = f"http://127.0.0.1:{port.number}"
        code, out = explain(capsys, "topic", "x", "--url", url, "--connector", "c")
    assert code == 1
    assert f"no response from the Connect worker at {url}" in out


def test_no_secret_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    file = tmp_path / "mm2.properties"
    file.write_text(
        MM2.replace("{at}", "127.0.0.1:1").replace("orders.*", "${env:PROVIDED_TOPICS}")
        + f"config.providers=env\nconfig.providers.env.class={provider}\n"
    )
    monkeypatch.setenv("PROVIDED_TOPICS", "secret-topic-77")
    _, out = explain(capsys, "topic", "payments", file, "--offline", "--flow", "A->B")
    assert "secret-topic-77" not in out
    assert "[hidden]" in out
