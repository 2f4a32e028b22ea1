"""Makes the archive of Spark's classes: runs Spark once, as the worker does, and lets it end.

Runs on: the worker's machine, as `python -m sparkmirror.spark.archive_maker ARCHIVE`, started by
`class_archive`, which discards its output; at the lowest priority, for a few seconds.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext

from sparkmirror.spark.class_archive import OPTIONS_VARIABLE, forget_old, make_once
from sparkmirror.spark.session import complete_settings

_MOST_SECONDS = 600
_LOWEST_PRIORITY = 19


def main(archive: Path) -> None:
    """Make it, unless another process is making it."""
    signal.alarm(_MOST_SECONDS)  # the kernel ends a run that hangs
    os.nice(_LOWEST_PRIORITY)
    make_once(archive, run_spark, wait=False)
    forget_old(archive.parent)


def run_spark(part: Path) -> None:
    """One job, and wait for the JVM: it writes the archive when it ends."""
    os.environ[OPTIONS_VARIABLE] = f'"-XX:ArchiveClassesAtExit={part}"'
    os.environ["PYSPARK_PYTHON"] = sys.executable  # as the session does
    settings = complete_settings({}, 2)
    context = SparkContext(conf=SparkConf(loadDefaults=False).setAll(list(settings.items())))
    context.parallelize([1, 2], 2).map(str).collect()
    gateway = SparkContext._gateway  # noqa: SLF001
    context.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_MOST_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
