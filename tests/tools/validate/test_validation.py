"""All problems of a file at once, each with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkmirror.cli import main as cli
from sparkmirror.errors import ConfigErrors
from sparkmirror.tools.validate.validation import FileReport, Severity, validate_file

MM2 = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""
WORKER = """\
bootstrap.servers = b:9092
group.id = g
offset.storage.topic = o
config.storage.topic = c
status.storage.topic = s
"""
CONNECTOR = {
    "name": "n",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}


def validated(tmp_path: Path, text: str, name: str = "file.properties") -> FileReport:
    file = tmp_path / name
    file.write_text(text)
    return validate_file(file)


def found(report: FileReport) -> list[tuple[str, int, str]]:
    return [(each.severity.value, each.line, each.text) for each in report.problems]


@pytest.mark.parametrize(
    ("text", "kind"), [(MM2, "mm2 file"), (WORKER, "worker file")], ids=["mm2", "worker"]
)
def test_a_good_file_has_no_problems(text: str, kind: str, tmp_path: Path) -> None:
    report = validated(tmp_path, text)
    assert report.problems == ()
    assert report.kind == kind
    assert report.is_ok(strict=True)


@pytest.mark.parametrize("wrapped", [False, True], ids=["settings", "body of POST"])
def test_a_good_connector_has_a_note_about_its_worker(wrapped: bool, tmp_path: Path) -> None:
    body = {"name": "n", "config": CONNECTOR} if wrapped else CONNECTOR
    report = validated(tmp_path, json.dumps(body, indent=1), "n.json")
    assert [each.severity for each in report.problems] == [Severity.NOTE]
    assert report.is_ok(strict=True)


def test_all_problems_come_at_once_with_their_lines(tmp_path: Path) -> None:
    report = validated(
        tmp_path,
        MM2
        + "A->B.topcs = orders\n"  # 5: misspelt
        + "A->B.tasks.max = many\n"  # 6: no number
        + "# a comment \\\nA.consumer.fetch.max.bytes = 1\\\n  0\n"  # 8: fine, on two lines
        + "consumer.fetch.max.bytes = 10\n"  # 10: without effect here
        + "A->B.topics.exclude = [a\n"  # 11: no expression
        + "A.refresh.topics.interval.seconds = 5\n"  # 12: needs a flow
        + "A->C.enabled = true\n"  # 13: no such cluster
        + "topics.blacklist = x\n"  # 14: of an old release
        + "A->B.enabled = true\n",  # 15: once more
    )
    lines = [(severity, line) for severity, line, _ in found(report)]
    assert lines == [
        ("warning", 5),
        ("error", 6),
        ("warning", 10),
        ("error", 11),
        ("warning", 12),
        ("error", 13),
        ("warning", 14),
        ("error", 15),
    ]
    texts = [text for _, _, text in found(report)]
    assert "did you mean A->B.topics?" in texts[0]
    assert "write A.consumer.fetch.max.bytes" in texts[2]
    assert "write A->B.refresh.topics.interval.seconds" in texts[4]
    assert "write topics.exclude" in texts[6]
    assert "on lines 4 and 15" in texts[7]


def test_what_is_missing_has_no_line_and_comes_last(tmp_path: Path) -> None:
    text = MM2.replace("B.bootstrap.servers = b:9092\n", "") + "x = 1\n"
    report = validated(tmp_path, text)
    assert found(report)[0][1] == 4
    last = report.problems[-1]
    assert (last.severity, last.line, last.key) == (Severity.ERROR, 0, "B.bootstrap.servers")


def test_a_file_without_clusters_is_still_an_mm2_file(tmp_path: Path) -> None:
    report = validated(tmp_path, "A->B.enabled = true\n")
    assert report.kind == "mm2 file"
    assert any("clusters" in each.text for each in report.problems)


def test_classes_of_ones_own_are_loaded(tmp_path: Path) -> None:
    report = validated(tmp_path, MM2 + "A->B.topic.filter.class = no_such_module:Filter\n")
    (problem, *_) = report.problems
    assert (problem.severity, problem.line) == (Severity.ERROR, 5)
    assert problem.key == "A->B.topic.filter.class"


def test_problems_of_a_workers_file(tmp_path: Path) -> None:
    report = validated(
        tmp_path, WORKER + 'offset.flush.interval.ms = x\nlistners = http://:1\nclient.id = "me"\n'
    )
    assert [(severity, line) for severity, line, _ in found(report)] == [
        ("error", 6),
        ("warning", 7),
        ("warning", 8),
    ]
    assert "did you mean listeners?" in report.problems[1].text


def test_problems_of_a_connector(tmp_path: Path) -> None:
    props = {**CONNECTOR, "topcs": "x", "tasks.max": "many"}
    text = json.dumps(props, indent=1).replace('"topcs"', '"tasks.max": "1",\n "topcs"')
    report = validated(tmp_path, text, "n.json")
    assert [(s, line) for s, line, _ in found(report) if s != "note"] == [
        ("warning", 9),
        ("error", 10),
        ("error", 10),
    ]


def test_a_connector_of_another_kind(tmp_path: Path) -> None:
    text = json.dumps({**CONNECTOR, "connector.class": "FileStreamSource"}, indent=1)
    errors = [each for each in found(validated(tmp_path, text, "n.json")) if each[0] == "error"]
    ((_, line, words),) = errors
    assert line == 3
    assert words == (
        "connector.class=FileStreamSource: no connector of MirrorMaker 2; use "
        "MirrorSourceConnector, MirrorCheckpointConnector, MirrorHeartbeatConnector"
    )


def test_broken_json_has_a_line(tmp_path: Path) -> None:
    report = validated(tmp_path, '{\n "a": 1,\n}', "n.json")
    assert [(s, line) for s, line, _ in found(report)] == [("error", 3)]


@pytest.mark.parametrize("text", ["", "\x00"], ids=["empty", "binary"])
def test_a_file_that_cannot_be_read_is_a_problem(text: str, tmp_path: Path) -> None:
    report = validated(tmp_path, text)
    assert [each.severity for each in report.problems] == [Severity.ERROR]


def test_a_wrong_workers_file_is_raised(tmp_path: Path) -> None:
    file, worker = tmp_path / "n.json", tmp_path / "w.properties"
    file.write_text(json.dumps(CONNECTOR))
    worker.write_text("group.id = g\n")
    with pytest.raises(ConfigErrors, match=r"w\.properties"):
        validate_file(file, worker)


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (MM2, (), 0),
        (MM2, ("--strict",), 0),
        (MM2 + "A->B.topcs = x\n", (), 0),
        (MM2 + "A->B.topcs = x\n", ("--strict",), 2),
        (MM2 + "A->B.tasks.max = x\n", (), 2),
    ],
    ids=["clean", "clean strict", "warning", "warning strict", "error"],
)
def test_exit_codes(
    text: str,
    options: tuple[str, ...],
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    with pytest.raises(SystemExit) as ended:
        cli.main(["validate", str(file), *options])
    assert ended.value.code == code
    with pytest.raises(SystemExit) as ended:
        cli.main(["validate", str(file), "--json", *options])
    assert ended.value.code == code
    shown, as_json = capsys.readouterr().out.split("{", 1)
    report = json.loads("{" + as_json)
    assert report["ok"] is ("tasks.max" not in text)
    for problem in report["problems"]:
        assert f"{file}:{problem['line']}: {problem['severity']}: {problem['text']}" in shown


def test_no_secret_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    file = tmp_path / "mm2.properties"
    file.write_text(
        MM2
        + f"config.providers=env\nconfig.providers.env.class={provider}\n"
        + "A->B.tasks.max = ${env:SECRET_NUMBER}\nA.ssl.key.password = 'hunter-two' # x\n"
    )
    monkeypatch.setenv("SECRET_NUMBER", "top-secret-77")
    with pytest.raises(SystemExit):
        cli.main(["validate", str(file)])
    out = capsys.readouterr().out
    assert "hunter-two" not in out
    assert "top-secret-77" not in out
    assert "the comment is part of the value" in out
