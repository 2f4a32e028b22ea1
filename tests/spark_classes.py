"""Spark that starts sooner: its driver's classes in a file the JVM maps, as those of the brokers.

From start to the end of a first job 5 instead of 9 seconds (Java 17, two cores), some dozens of
times in a run of all tests. A JVM that does not find the file starts without it.

    python -m tests.spark_classes    runs Spark once, with the JVM options of the environment
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext

from sparkmirror.embedded.class_archive import archive_name, make_once
from sparkmirror.spark import machine
from sparkmirror.spark.session import complete_settings

# What Spark adds to the options of a driver's JVM.
OPTIONS = "SPARK_SUBMIT_OPTS"
_RUN_SECONDS = 180.0
_ROOT = Path(__file__).parents[1]


def spark_archive() -> Path:
    """Where it is, or will be: with the environment whose pyspark it is good for."""
    return Path(sys.prefix) / f"spark-{archive_name(machine.pyspark_folder() / 'jars')}"


def make_spark_archive() -> None:
    """Earn it, if nobody has."""
    make_once(spark_archive(), _run_in_a_process)


def use_spark_archive() -> None:
    """For every Spark that this process and its children start."""
    os.environ[OPTIONS] = f"-XX:SharedArchiveFile={spark_archive()}"


def _run_in_a_process(part: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", __name__],
        cwd=_ROOT,
        env={**os.environ, OPTIONS: f"-XX:ArchiveClassesAtExit={part}"},
        stdout=subprocess.DEVNULL,  # the JVM tells there which classes it leaves out
        timeout=_RUN_SECONDS,
        check=True,
    )


def run_spark() -> None:
    """One job, and wait for the JVM: it writes its archive when it ends."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # as the session does
    settings = complete_settings({}, 2)
    context = SparkContext(conf=SparkConf(loadDefaults=False).setAll(list(settings.items())))
    context.parallelize([1, 2], 2).map(str).collect()
    jvm = SparkContext._gateway.proc
    context.stop()
    SparkContext._gateway.shutdown()
    jvm.stdin.close()
    jvm.wait(_RUN_SECONDS)


if __name__ == "__main__":
    run_spark()
