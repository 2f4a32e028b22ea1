"""`sparkmirror convert`: what it writes, what it reports, and what it leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import sparkmirror
from sparkmirror.cli import main as cli
from sparkmirror.config.mm2 import load_mm2
from tests.tools.convert.resources import SET_UP_B, V1, changed

FILES = ["kubernetes.yaml", "mm2.properties"]


def run(*words: str | Path) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["convert", *map(str, words)])
    return ended.value.code


def written(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


@pytest.fixture
def resource(tmp_path: Path) -> Path:
    path = tmp_path / "mirror.yaml"
    path.write_text(SET_UP_B)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folder"


def test_files_are_written_and_the_list_is_printed(
    resource: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(resource, "--output", out) == 0
    assert written(out) == FILES
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        f"written: {out / 'mm2.properties'}",
        f"written: {out / 'kubernetes.yaml'}",
        "not carried over: 1",
    ]
    assert lines[3].startswith("  spec.clusters[1]: the positions that Strimzi's connectors")
    assert lines[4] == "    instead: use --format connectors to continue where Strimzi stopped"
    # Nothing here needs a Secret's content, so that it can be read outside the pod.
    assert [str(flow.name) for flow in load_mm2(out / "mm2.properties").flows] == ["source->target"]
    text = (out / "kubernetes.yaml").read_text()
    assert f"image: sparkmirror:{sparkmirror.__version__}\n" in text


def test_the_folder_is_this_one_by_default(
    resource: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert run(resource) == 0
    assert written(here) == FILES


def test_connectors(resource: Path, out: Path) -> None:
    resource.write_text(V1)
    assert run(resource, "--format", "connectors", "--output", out) == 0
    kinds, clusters = ("cpc", "hbc", "msc"), ("eu", "us")
    files = [f"mm2/mm2-{kind}-{each}.json" for kind in kinds for each in clusters]
    assert written(out) == ["connect-distributed.properties", "kubernetes.yaml", *files]


def test_json(resource: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(resource, "--output", out, "--json") == 0
    text = json.loads(capsys.readouterr().out)
    assert text["name"] == "mirror"
    assert text["format"] == "mm2"
    assert sorted(text["files"]) == [str(out / name) for name in FILES]
    [note] = text["not_carried_over"]
    assert sorted(note) == ["instead", "path", "reason"]
    assert note["path"] == "spec.clusters[1]"


def test_files_are_not_overwritten(
    resource: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out.mkdir(parents=True)
    kept = out / "kubernetes.yaml"
    kept.write_text("mine")
    assert run(resource, "--output", out) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"sparkmirror: {kept}: the file exists; add --force to overwrite it\n"
    assert (written(out), kept.read_text()) == (["kubernetes.yaml"], "mine")
    assert run(resource, "--output", out, "--force") == 0
    assert written(out) == FILES
    assert kept.read_text() != "mine"


BAD = {
    "not YAML": ("a: [", "not YAML"),
    "another kind": ("kind: Kafka\n", "kind=Kafka: is not KafkaMirrorMaker2"),
    "several documents": ("kind: Kafka\n---\nkind: KafkaTopic\n", "document 2: kind=KafkaTopic"),
    "no such alias": (
        changed(SET_UP_B, spec__mirrors__0__sourceCluster="x"),
        (
            "spec.mirrors[0].sourceCluster=x: is not an alias in spec.clusters; use one of: "
            "source, target"
        ),
    ),
    "no such authentication": (
        changed(SET_UP_B, spec__clusters__1__authentication={"type": "x"}),
        "spec.clusters[1].authentication.type=x: is not a known type of authentication; use one of",
    ),
    "empty": ("", "the file has no documents"),
    "bytes": ("\0", "not YAML"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("format_", ["mm2", "connectors"])
def test_nothing_is_written_when_the_input_is_wrong(
    text: str,
    said: str,
    *,
    format_: str,
    resource: Path,
    out: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    resource.write_text(text)
    assert run(resource, "--output", out, "--format", format_) == 2
    assert not out.exists()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert all(line.startswith(f"sparkmirror: {resource}: ") for line in shown.err.splitlines())
    assert said in shown.err


def test_files_that_cannot_be_read(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for file, said in (
        (tmp_path / "none.yaml", "no such file; check the path"),
        (tmp_path, "cannot be read: Is a directory; check the path"),
        (binary, "is not text in UTF-8; name the YAML file of a KafkaMirrorMaker2"),
    ):
        assert run(file, "--output", out) == 2
        assert capsys.readouterr().err == f"sparkmirror: {file}: {said}\n"
    assert not out.exists()


def test_a_folder_that_cannot_be_written(
    resource: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("a file")
    assert run(resource, "--output", occupied) == 2
    assert "--output=" in capsys.readouterr().err


def test_an_unknown_format_is_wrong_usage(resource: Path, out: Path) -> None:
    assert run(resource, "--format", "helm", "--output", out) == 2
    assert not out.exists()


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_no_password_is_written_or_printed(
    options: tuple[str, ...], resource: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = "planted-in-a-strimzi-resource"
    resource.write_text(
        changed(
            SET_UP_B,
            spec__clusters__0__config={"ssl.key.password": planted},
            spec__mirrors__0__sourceConnector__config={"producer.override.x.secret": planted},
        )
    )
    assert run(resource, "--output", out, *options) == 0
    texts = [each.read_text() for each in out.rglob("*") if each.is_file()]
    texts += capsys.readouterr()
    assert not [text for text in texts if planted in text]
    assert any("kubectl create secret generic mirror-sparkmirror-secrets" in text for text in texts)


def test_what_is_written_is_yaml_that_others_read(resource: Path, out: Path) -> None:
    assert run(resource, "--output", out) == 0
    documents = list(yaml.safe_load_all((out / "kubernetes.yaml").read_text()))
    assert [each["kind"] for each in documents] == ["ConfigMap", "NetworkPolicy", "Deployment"]
