"""The archive of Spark's classes: used when it fits, made once, and never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sparkmirror.spark import class_archive, machine
from sparkmirror.spark.class_archive import (
    OPTIONS_VARIABLE,
    ClassArchive,
    archive_name,
    forget_old,
    is_whole,
    make_once,
    spark_archive,
)
from tests.clusters import wait_for
from tests.spark_classes import archive_of_tests, make_spark_archive


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(OPTIONS_VARIABLE)


def _write(part: Path) -> None:
    part.write_text("classes")


def write_archive() -> Path:
    """One that a JVM would reject, but that is whole."""
    archive = spark_archive(machine.cache_folder())
    archive.parent.mkdir(parents=True, exist_ok=True)
    assert make_once(archive, _write)
    return archive


def test_an_archive_that_fits_is_used_without_a_word_of_the_jvm() -> None:
    archive = write_archive()
    options = ClassArchive().options("-XX:+UseSerialGC")
    assert f'"-XX:SharedArchiveFile={archive}"' in options
    assert "-Xlog:cds=off" in options


def test_there_is_none_at_first() -> None:
    assert ClassArchive().options("") == ""


def test_a_broken_file_is_left_out_and_made_again() -> None:
    archive = write_archive()
    archive.write_text("clasres")
    assert ClassArchive().options("") == ""
    assert write_archive() == archive
    assert ClassArchive().options("") != ""
    archive.write_text("")
    assert ClassArchive().options("") == ""


def test_a_sum_that_is_none_is_left_out() -> None:
    archive = write_archive()
    archive.with_suffix(".crc32c").write_bytes(b"\xff\xfe")
    assert not is_whole(archive)


def test_other_jars_have_another_archive(tmp_path: Path) -> None:
    jar = tmp_path / "some.jar"
    jar.write_bytes(b"classes")
    os.utime(jar, (1_000, 1_000))
    first = archive_name(tmp_path)
    assert archive_name(tmp_path) == first
    os.utime(jar, (2_000, 2_000))
    second = archive_name(tmp_path)
    (tmp_path / "other.jar").touch()
    assert len({first, second, archive_name(tmp_path)}) == 3


def test_another_java_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_archive()
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setattr(machine, "java_program", lambda: java)
    assert ClassArchive().options("") == ""
    first = archive_name(tmp_path)
    (tmp_path / "jdk" / "release").write_text("JAVA_VERSION=17.0.99")
    assert archive_name(tmp_path) != first


@pytest.mark.parametrize("decided", ["-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa"])
def test_what_the_user_has_decided_counts(decided: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_archive()
    assert ClassArchive().options(decided) == ""
    monkeypatch.setenv(OPTIONS_VARIABLE, decided)
    assert ClassArchive().options("") == ""


def test_a_cache_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(class_archive, "MAKE_AFTER_SECONDS", 0.0)
    for folder in (tmp_path / "file", Path("/proc")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
        classes = ClassArchive()
        assert classes.options("") == ""
        classes._make()
        assert classes._maker is None
    assert capfd.readouterr() == ("", "")


def test_one_that_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    runs: list[Path] = []
    assert not make_once(archive, runs.append)
    assert make_once(archive, Path.touch)
    assert make_once(archive, runs.append)
    assert len(runs) == 1


def test_of_two_processes_one_makes_it(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    runs: list[Path] = []

    def make(part: Path) -> None:
        assert not make_once(archive, runs.append, wait=False)
        assert not archive.exists()
        part.touch()

    assert make_once(archive, make, wait=False)
    assert (runs, is_whole(archive)) == ([], True)


def test_old_ones_are_deleted(tmp_path: Path) -> None:
    for age in range(5):
        archive = tmp_path / f"spark-classes-{age}.jsa"
        make_once(archive, Path.touch)
        os.utime(archive, (10_000 - age, 10_000 - age))
    forget_old(tmp_path)
    left = {path.name for path in tmp_path.iterdir() if path.suffix in {".jsa", ".crc32c"}}
    kept = {f"spark-classes-{age}" for age in range(3)}
    assert left == {f"{name}{end}" for name in kept for end in (".jsa", ".crc32c")}


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that prints a lot, notes that it runs, and ends when there is a file `go-on`."""
    (tmp_path / "fake_maker.py").write_text(
        "import pathlib, sys, time\n"
        "print('noise'); print('noise', file=sys.stderr)\n"
        "folder = pathlib.Path(__file__).parent\n"
        "(folder / 'runs').write_text(sys.argv[1])\n"
        "while not (folder / 'go-on').exists(): time.sleep(0.02)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(class_archive, "MAKER", "fake_maker")
    monkeypatch.setattr(class_archive, "MAKE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(class_archive, "free_memory", lambda: 1 << 40)
    return tmp_path


def test_a_missing_one_is_made_in_the_background_without_a_word(
    maker: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    classes = ClassArchive()
    classes.options("")
    classes.make_later()
    wait_for((maker / "runs").exists, within=30, describe="the maker runs")
    (maker / "go-on").touch()
    wait_for(lambda: classes._maker is not None, within=30, describe="it is known")
    assert classes._maker is not None
    assert classes._maker.wait(30) == 0
    assert (maker / "runs").read_text() == str(spark_archive(machine.cache_folder()))
    assert capfd.readouterr() == ("", "")
    classes.stop()


def test_the_end_of_the_session_ends_the_making(maker: Path) -> None:
    classes = ClassArchive()
    classes.options("")
    classes.make_later()
    wait_for((maker / "runs").exists, within=30, describe="the maker runs")
    wait_for(lambda: classes._maker is not None, within=30, describe="it is known")
    classes.stop()
    assert classes._maker is not None
    assert classes._maker.returncode == -9


def test_a_session_that_ends_soon_makes_none(monkeypatch: pytest.MonkeyPatch, maker: Path) -> None:
    monkeypatch.setattr(class_archive, "MAKE_AFTER_SECONDS", 600.0)
    classes = ClassArchive()
    classes.options("")
    classes.make_later()
    classes.stop()
    ended = [each for each in threading.enumerate() if each.name == "class archive"]
    for thread in ended:
        thread.join(10)
    assert not (maker / "runs").exists()


def test_little_memory_is_left_to_the_mirror(maker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "free_memory", lambda: class_archive.NEEDED_MEMORY - 1)
    classes = ClassArchive()
    classes.options("")
    classes._make()
    assert not (maker / "runs").exists()


def test_memory_is_counted() -> None:
    assert 0 < class_archive.free_memory() < 1 << 50


RUN = """
from pathlib import Path
import subprocess
from sparkmirror.spark.session import SparkEngine
engine = SparkEngine({}, 1)
try:
    group = subprocess.run(["ps", "-eo", "pid,pgid"], capture_output=True, text=True).stdout
    pids = [row.split()[0] for row in group.splitlines() if row.split()[1] == str(engine._jvm.pid)]
    maps = [Path(f"/proc/{pid}/maps") for pid in pids]
    print(any("spark-classes" in path.read_text() for path in maps if path.exists()))
finally:
    engine.stop()
"""


@pytest.mark.parametrize("damage", [False, True])
def test_spark_starts_with_it_and_with_one_that_its_jvm_refuses(damage: bool) -> None:
    make_spark_archive()
    archive = spark_archive(machine.cache_folder())
    archive.parent.mkdir(parents=True)

    def copy(part: Path) -> None:
        shutil.copyfile(archive_of_tests(), part)
        if damage:
            with part.open("r+b") as file:
                file.write(b"none")

    assert make_once(archive, copy)
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{not damage}\n", "")
