"""A pytest plugin: writes each failed phase of a run to the file that FAILURES_FILE names.

One JSON object a line for `tools/ci_tests.py`: `test` (the node id) and `phase` (`setup`, `call`,
`teardown`, `collect`, or `???`: pytest-xdist's word when a worker process died during a test).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

VARIABLE = "FAILURES_FILE"


class Failures:
    """Writes failures when pytest reports them."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of one test ended."""
        if report.failed:
            self._note(report.nodeid, report.when)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file or class was searched for tests."""
        if report.failed:
            self._note(report.nodeid, "collect")

    def _note(self, test: str, phase: str | None) -> None:
        with self._file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"test": test, "phase": phase}) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin, except in workers of pytest-xdist, which report to their parent."""
    file = os.environ.get(VARIABLE)
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(Path(file)))
