"""The class archive is made once, and brokers start with it."""

from __future__ import annotations

import time
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
    made, began = archive.stat().st_mtime_ns, time.monotonic()
    assert class_archive_args() == (argument,)
    assert archive.stat().st_mtime_ns == made
    assert time.monotonic() - began < 1
