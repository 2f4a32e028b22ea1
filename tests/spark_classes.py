"""The archive of Spark's classes that all tests use, made before the first of them.

From start to the end of a first job Spark takes 5 instead of 9 seconds with it (Java 17, two
cores), some dozens of times in a run of all tests. A JVM that does not find the file starts
without it; and as the option is in the environment, no test makes another one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sparkmirror.spark.class_archive import (
    MAKER,
    OPTIONS_VARIABLE,
    archive_options,
    make_once,
    spark_archive,
)

_RUN_SECONDS = 180.0


def archive_of_tests() -> Path:
    """Where it is, or will be: with the environment whose pyspark it is good for."""
    return spark_archive(Path(sys.prefix))


def make_spark_archive() -> None:
    """Earn it, if nobody has."""
    make_once(archive_of_tests(), _run_in_a_process)


def use_spark_archive() -> None:
    """For every Spark that this process and its children start."""
    os.environ[OPTIONS_VARIABLE] = archive_options(archive_of_tests())


def _run_in_a_process(part: Path) -> None:
    code = (
        f"from pathlib import Path; import {MAKER} as maker; maker.run_spark(Path({str(part)!r}))"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.DEVNULL,  # the JVM tells there which classes it leaves out
        timeout=_RUN_SECONDS,
        check=True,
    )
