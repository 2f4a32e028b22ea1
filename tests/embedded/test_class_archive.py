"""Class archives are made once, and the tests' brokers and Spark start with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.class_archive import archive_name, class_archive_args, make_once
from tests.clusters import wait_for
from tests.spark_classes import make_spark_archive, spark_archive

pytestmark = pytest.mark.kafka


def test_brokers_of_tests_map_the_archive(source_cluster: KafkaCluster) -> None:
    (argument,) = class_archive_args()
    archive = argument.partition("=")[2]
    mapped = {entry.path for entry in psutil.Process(source_cluster.pids[0]).memory_maps()}
    assert archive in mapped


def test_archive_is_not_made_again() -> None:
    (argument,) = class_archive_args()
    archive = Path(argument.partition("=")[2])
    made = archive.stat().st_mtime_ns
    assert class_archive_args() == (argument,)
    assert archive.stat().st_mtime_ns == made


def test_one_that_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    runs: list[Path] = []
    make_once(archive, runs.append)
    assert not archive.exists()
    make_once(archive, Path.touch)
    make_once(archive, runs.append)
    assert archive.exists()
    assert len(runs) == 1


def test_reinstalled_jars_get_another_archive(tmp_path: Path) -> None:
    jar = tmp_path / "some.jar"
    jar.write_bytes(b"classes")
    os.utime(jar, (1_000, 1_000))
    first = archive_name(tmp_path)
    assert archive_name(tmp_path) == first
    os.utime(jar, (2_000, 2_000))
    second = archive_name(tmp_path)
    (tmp_path / "other.jar").touch()
    assert len({first, second, archive_name(tmp_path)}) == 3


def test_spark_of_tests_maps_the_archive() -> None:
    make_spark_archive()
    archive = spark_archive()
    with subprocess.Popen([sys.executable, "-m", "tests.spark_classes"]) as spark:
        root = psutil.Process(spark.pid)
        wait_for(
            lambda: any(_maps(child, archive) for child in root.children(recursive=True)),
            within=60,
            describe="Spark has mapped its classes",
        )
    assert spark.returncode == 0


def _maps(process: psutil.Process, path: Path) -> bool:
    try:
        return str(path) in {entry.path for entry in process.memory_maps()}
    except psutil.NoSuchProcess:
        return False
