"""What is missing on a machine is reported in one line with the remedy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sparkmirror.errors import MissingPart
from sparkmirror.spark import machine


def fake_java(home: Path, first_line: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{first_line}' >&2\n")
    program.chmod(0o755)
    return home


def test_java_home_is_preferred_to_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path, 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert machine.java_program() == home / "bin" / "java"


@pytest.mark.parametrize(
    ("first_line", "message"),
    [
        pytest.param('java version "1.8.0_402"', "is Java 8, too old", id="java 8"),
        pytest.param('openjdk version "11.0.22"', "is Java 11, too old", id="java 11"),
        pytest.param("no such thing", "is not a Java", id="something else"),
    ],
)
def test_unusable_java_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_line: str, message: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, first_line)))
    with pytest.raises(MissingPart, match=message) as caught:
        machine.java_program()
    assert "install a Java 17 or newer" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPart, match="no Java found: install a Java 17 or newer"):
        machine.java_program()


def test_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingPart, match=r"has no bin/java: install a Java 17"):
        machine.java_program()


def test_full_disk_is_noticed_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(MissingPart, match=r"the test needs \d+ MB .* free some disk space"):
        machine.require_disk_space(tmp_path / "not" / "yet", 1 << 60, "the test")


def test_enough_disk_is_no_error(tmp_path: Path) -> None:
    machine.require_disk_space(tmp_path / "not" / "yet", 1, "the test")
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("/somewhere", Path("/somewhere/sparkmirror"), id="absolute"),
        pytest.param("relative", Path.home() / ".cache/sparkmirror", id="relative is ignored"),
        pytest.param("", Path.home() / ".cache/sparkmirror", id="empty"),
    ],
)
def test_cache_folder_follows_xdg(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert machine.cache_folder() == expected


def test_pyspark_is_found_without_importing_it() -> None:
    imported_before = "pyspark" in sys.modules
    assert machine.ivy_jar().parent == machine.pyspark_folder() / "jars"
    assert ("pyspark" in sys.modules) == imported_before
