"""How a task and the reason of its failure read, as one line each."""

from __future__ import annotations

import pytest

from sparkmirror.spark.link.task_log import describe_task
from sparkmirror.spark.task_runner import reason_of
from tests.spark_cluster.test_task_runner import FRAMES, JAVA, PYTHON


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        pytest.param(
            f"{PYTHON}sparkmirror.errors.RefusedError: offsets 1 to 2\nof t-0\n SQLSTATE: 38000\n"
            + FRAMES,
            "RefusedError: offsets 1 to 2 of t-0",
            id="our error, two lines",
        ),
        pytest.param(
            f"{PYTHON}KeyError: 'x'\n\nDuring handling of the above exception, another exception "
            'occurred:\n\nTraceback (most recent call last):\n  File "b.py", line 1, in g\n'
            f"ValueError: y\n SQLSTATE: 38000\n{FRAMES}",
            "ValueError: y",
            id="the last of two errors",
        ),
        pytest.param(
            f"{PYTHON}AssertionError\n SQLSTATE: 38000\n{FRAMES}",
            "AssertionError",
            id="an error without words",
        ),
        pytest.param(
            f"{PYTHON}ModuleNotFoundError: No module named 'sparkmirror'\n SQLSTATE: 38000\n",
            "ModuleNotFoundError: No module named 'sparkmirror' on the executors; "
            "docs/spark-clusters.md shows how to install it",
            id="not installed",
        ),
        pytest.param(
            f"{JAVA}: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in "
            "stage 1.0 failed 1 times, most recent failure: Lost task 0.0 (executor 1): "
            f"ExecutorLostFailure Reason: Command exited with code 137\n{FRAMES}",
            "Lost task 0.0 (executor 1): ExecutorLostFailure Reason: Command exited with code 137",
            id="executor lost",
        ),
        pytest.param(
            f"{JAVA}: java.lang.IllegalStateException: Cannot call methods on a stopped "
            f"SparkContext.\n{FRAMES}",
            "Cannot call methods on a stopped SparkContext.",
            id="session stopped",
        ),
        pytest.param("cancelled", "cancelled", id="plain text"),
        pytest.param("", "no reason given", id="nothing"),
    ],
)
def test_reason_is_one_line_of_the_trace(trace: str, reason: str) -> None:
    assert reason_of(trace) == reason


def test_description_of_a_task() -> None:
    assert describe_task("a->b|MirrorSourceConnector-0") == "Copy a->b (MirrorSourceConnector-0)"
