"""The process from which Spark forks a Python process for each copy task, in local mode.

Runs on: the worker's machine, started by Spark's JVM as `spark.python.daemon.module`. All that a
task imports is imported here, once: tasks share its memory, and 100 of them start in seconds.

pyspark's own daemon imports pyspark out of a zip file, which is compiled again at every start, and
nothing of ours, so that each task would import (and hold) it for itself.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Import everything, then do what pyspark's daemon does."""
    sys.path[:] = without_zips(sys.path, Path(os.environ["SPARK_HOME"]))
    for module in ("sparkmirror.spark.copy.copy_task", sys.argv[1]):
        import_module(module)
    # The collector would write to every object it looks at, and so to every page that is shared.
    gc.collect()
    gc.freeze()
    import_module("pyspark.daemon").manager()


def without_zips(path: list[str], home: Path) -> list[str]:
    """Leave out the copies of pyspark and py4j in Spark's folder: both are installed, compiled."""
    copies = home / "python" / "lib"
    return [entry for entry in path if not entry or Path(entry).parent != copies]


if __name__ == "__main__":
    main()
