"""Run the tests in one or more rounds; rerun each failed test once, alone. Called by `make ci`.

    python tools/ci_tests.py [WORDS FOR PYTEST ...] [--- WORDS FOR THE NEXT ROUND ...] ...

A test that fails in a round and passes alone is reported as `flaky: <name>`. With up to three of
these the exit code is 0. It is 1 if there are more, if a test fails again, and after any failure
that is not of one test: an error during collection, a worker process that died, a round without
tests, or an error in a teardown. Teardowns are never rerun: the check for leftover processes
reports there, and the test that it names is only the last of many.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

MOST_FLAKY = 3
# If more tests fail, they probably have one cause, and reruns would only delay the report.
MOST_RERUNS = 10
SEPARATOR = "---"
OF_ONE_TEST = ("setup", "call")
SOME_FAILED = (
    1  # pytest's exit code for failed tests; 2 and above: interrupted, internal error, ...
)
CLOSING_LINE = re.compile(rb"^(=+ )?.*\b(passed|failed|error|errors|no tests ran)\b.* in [0-9.]+s")


@dataclass
class Round:
    """The result of one run of pytest."""

    words: Sequence[str]
    exit_code: int = 0
    closing_line: str = "(pytest printed no closing line)"
    failed: list[str] = field(default_factory=list)
    """Tests whose setup or body failed, each once, in order."""
    beyond_tests: list[str] = field(default_factory=list)
    """Failures that do not belong to one test."""

    @property
    def is_beyond_repair(self) -> bool:
        """Whether reruns of single tests cannot help."""
        unexplained = self.exit_code != 0 and not self.failed
        return bool(self.beyond_tests) or self.exit_code > SOME_FAILED or unexplained


def main(words: Sequence[str]) -> int:
    """Run all rounds and the reruns; returns the exit code."""
    rounds = [run_pytest(words_of_round) for words_of_round in split(words)]
    failed = list(dict.fromkeys(test for each in rounds for test in each.failed))
    reruns = [rerun_alone(test) for test in failed] if len(failed) <= MOST_RERUNS else []
    flaky = [again.words[-1] for again in reruns if again.exit_code == 0]
    broken = [test for test in failed if test not in flaky]
    for each in rounds:
        for what in each.beyond_tests:
            report(f"not rerun: {what}")
    for test in flaky:
        report(f"flaky: {test}")
    for test in broken:
        report(f"failed again: {test}" if reruns else f"failed: {test}")
    if len(flaky) > MOST_FLAKY:
        report(f"{len(flaky)} flaky tests, {MOST_FLAKY} are allowed")
    for each in rounds:
        report(each.closing_line)
    red = any(each.is_beyond_repair for each in rounds) or broken or len(flaky) > MOST_FLAKY
    return 1 if red else 0


def split(words: Sequence[str]) -> list[list[str]]:
    """The words of each round."""
    rounds: list[list[str]] = [[]]
    for word in words:
        if word == SEPARATOR:
            rounds.append([])
        else:
            rounds[-1].append(word)
    return rounds


def rerun_alone(test: str) -> Round:
    """Run a test in a separate process, without other tests.

    The empty expression overrides the `-m` of pyproject.toml, which would exclude a long test.
    """
    report(f"rerun alone: {test}")
    return run_pytest(["-p", "no:xdist", "-m", "", test])


def run_pytest(words: Sequence[str]) -> Round:
    """Run pytest and show its output; returns its result."""
    result = Round(words)
    with tempfile.TemporaryDirectory() as folder:
        failures = Path(folder) / "failures"
        tools = str(Path(__file__).parent)
        path = os.pathsep.join(filter(None, (tools, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": path, "FAILURES_FILE": str(failures)}
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "failures", *words],
            stdout=subprocess.PIPE,
            env=environment,
        ) as running:
            result.closing_line = show(running) or result.closing_line
        result.exit_code = running.returncode
        lines = failures.read_text(encoding="utf-8").splitlines() if failures.exists() else []
    for line in lines:
        note_failure(result, **json.loads(line))
    return result


def show(running: subprocess.Popen[bytes]) -> str:
    """Print the output as it comes; returns pytest's closing line, or nothing."""
    assert running.stdout is not None
    closing = b""
    partial = b""
    while chunk := os.read(running.stdout.fileno(), 65536):
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        *lines, partial = (partial + chunk).split(b"\n")
        closing = next(filter(CLOSING_LINE.match, reversed(lines)), closing)
    return closing.decode(errors="replace")


def note_failure(result: Round, test: str, phase: str) -> None:
    if phase not in OF_ONE_TEST:
        result.beyond_tests.append(f"{test or 'the session'} ({PHASES.get(phase, phase)})")
    elif test not in result.failed:
        result.failed.append(test)


PHASES = {"???": "its worker process died", "collect": "error during collection"}


def report(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
