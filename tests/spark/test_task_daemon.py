"""The process that Spark forks its copy tasks from: what it has imported before the first fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from sparkmirror.spark.task_daemon import without_zips

HOME = Path(pyspark.__file__).parent
SHOW = """
import pyspark.daemon
import gc, sys
def manager():
    print(gc.get_freeze_count() > 10_000, "sparkmirror.spark.copy.copy_loop" in sys.modules)
pyspark.daemon.manager = manager
from sparkmirror.spark import task_daemon
task_daemon.main()
"""


def test_only_sparks_own_copies_are_left_out_of_the_path() -> None:
    copies = sorted(map(str, (HOME / "python" / "lib").glob("*.zip")))
    assert len(copies) == 2
    others = ["", "/elsewhere/pyspark.zip", str(HOME.parent)]
    assert without_zips([*copies, *others], HOME) == others


def test_tasks_are_forked_from_a_process_that_has_imported_everything() -> None:
    zips = os.pathsep.join(map(str, (HOME / "python" / "lib").glob("*.zip")))
    shown = subprocess.run(
        [sys.executable, "-c", SHOW, "pyspark.worker"],
        env={**os.environ, "SPARK_HOME": str(HOME), "PYTHONPATH": zips},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown.split() == ["True", "True"]
