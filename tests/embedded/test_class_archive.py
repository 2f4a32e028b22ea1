"""The tests' brokers start with an archive of their classes, which is made once."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.class_archive import class_archive_args

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
