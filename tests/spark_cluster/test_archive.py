"""The package reaches executors that do not have it: packed, as in docs/spark-clusters.md."""

from __future__ import annotations

import importlib.metadata
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import sparkmirror
from sparkmirror.embedded import KafkaCluster, SparkCluster
from tests.kafka.mirror_process import Mirror
from tests.kafka.records import assert_identical, fill, new_topic, wait_until_copied
from tests.spark_cluster.executors import on_cluster

pytestmark = pytest.mark.kafka

# What a copy task imports; pyspark comes with the executor.
NEEDED = (
    *("kafka-python", "crc32c", "numpy", "cramjam", "lz4", "zstandard", "javaproperties"),
    *("cryptography", "cffi"),
)


def installed_files() -> Iterator[tuple[Path, str]]:
    """Every file of the packages, and its name below the archive's top."""
    for name in NEEDED:
        for file in importlib.metadata.distribution(name).files or ():
            if ".." not in file.parts:
                yield Path(str(file.locate())), str(file)


def pack(path: Path) -> None:
    """What `pip install --target` and tar make."""
    with tarfile.open(path, "w") as archive:
        archive.add(Path(sparkmirror.__file__).parent, "sparkmirror")
        for file, name in installed_files():
            archive.add(file, name)


def test_document_packs_what_a_task_imports() -> None:
    document = Path(__file__).parents[2] / "docs" / "spark-clusters.md"
    assert f"--no-deps . {' '.join(NEEDED)}" in document.read_text()


@pytest.mark.long
def test_packed_package_runs_on_executors_that_lack_it(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    spark_cluster: SparkCluster,
    tmp_path: Path,
) -> None:
    topic = new_topic(source_cluster)
    fill(source_cluster, topic, 100)
    pack(tmp_path / "packed.tar")
    # The interpreter below the virtual environment: same version, none of its packages.
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    settings = on_cluster(spark_cluster) | {
        "tasks.max": "1",
        "spark.pyspark.python": str(python),
        "spark.archives": f"{tmp_path / 'packed.tar'}#packed",
        "spark.executorEnv.PYTHONPATH": "packed",
    }
    with Mirror(tmp_path, source_cluster, target_cluster, topic, settings) as mirror:
        wait_until_copied(mirror, topic)
        mirror.stop()
        assert_identical(mirror, topic)
