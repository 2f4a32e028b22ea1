"""A broker before 2.1 is named as too old, with its release and the oldest that is supported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.embedded.kafka_releases import Release
from tests.clusters import side_by_side, start_cluster
from tests.kafka.mirror_process import Mirror
from tests.kafka.releases.scene import HEAP
from tests.mm2_suite.topics import topic_names

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

TOO_OLD = Release(2, 0, 1)
NAMED = "this is Kafka 2.0 or behaves like it, and the oldest supported release is 2.1"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    """From the old broker to a new one; not started."""
    clusters = [start_cluster("old", version=TOO_OLD, heap=HEAP), start_cluster("new", heap=HEAP)]
    with side_by_side(clusters) as (old, new):
        mirror = Mirror(tmp_path, old, new, "orders")
        with mirror.ending():
            yield mirror


def test_it_is_named_by_check_and_by_run(mirror: Mirror) -> None:
    done = _sparkmirror("check", mirror.file, "--json")
    assert done.returncode == 1, done.stderr
    (cluster,) = (
        each for each in json.loads(done.stdout)["clusters"] if each["cluster"] == mirror.alias
    )
    (version,) = (each for each in cluster["checks"] if each["check"] == "version")
    assert version["state"] == "NO"
    assert NAMED in version["detail"]

    before = topic_names(mirror.target)
    done = _sparkmirror("run", mirror.file)
    assert done.returncode == 1, done.stderr
    assert (done.stdout + done.stderr).count(NAMED) == 1
    assert topic_names(mirror.target) == before


def _sparkmirror(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sparkmirror.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
