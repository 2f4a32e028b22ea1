"""Which test runs CI accepts: what it reruns, and what stays red."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "tools" / "ci_tests.py"

PASSES = "def test_works(): pass\n"
# Fails in the first process that runs it and passes in every later one.
FAILS_ONCE = """
import pathlib, pytest
@pytest.mark.parametrize("case", {cases})
def test_sometimes(case):
    seen = pathlib.Path(f"seen-{{len(case)}}")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
FAILS = "def test_broken(): assert 1 == 2\n"
SETUP_FAILS_ONCE = """
import pathlib, pytest
@pytest.fixture
def broker():
    seen = pathlib.Path("seen-broker")
    if not seen.exists():
        seen.touch()
        raise OSError("no port")
def test_with_broker(broker): pass
"""
WORKER_DIES_ONCE = """
import os, pathlib
def test_dies():
    seen = pathlib.Path("seen-death")
    if not seen.exists():
        seen.touch()
        os._exit(3)
"""
LEAVES_A_PROCESS_ONCE = """
import pathlib, pytest
@pytest.fixture(scope="session", autouse=True)
def no_process_is_left_behind():
    yield
    seen = pathlib.Path("seen-process")
    first = not seen.exists()
    seen.touch()
    assert not first, "tests left processes running"
"""
SETTINGS = """[pytest]
addopts = --strict-markers -m 'not long'
markers = long
"""


def run_ci(folder: Path, *words: str, **files: str) -> tuple[int, list[str]]:
    """Exit code and lines of output, for tests of these files."""
    (folder / "pytest.ini").write_text(SETTINGS)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    # Without the plugins that these tests do not need, each of the many short runs starts faster.
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    ended = subprocess.run(
        [sys.executable, SCRIPT, *(words or ("-n", "2"))],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout.splitlines()


def test_rounds_without_failures_are_green_and_end_with_their_closing_lines(tmp_path: Path) -> None:
    long = "import pytest\n@pytest.mark.long\ndef test_long(): pass\n"
    words = ("-n", "2", "---", "-m", "long")
    code, lines = run_ci(tmp_path, *words, test_a=PASSES, test_b=long)
    assert code == 0
    assert "= 1 passed in" in lines[-2]
    assert "= 1 passed, 1 deselected in" in lines[-1]
    assert not [line for line in lines if line.startswith(("flaky:", "rerun", "failed"))]


@pytest.mark.parametrize("source", [FAILS_ONCE.format(cases=["a", "a b::c[d]"]), SETUP_FAILS_ONCE])
def test_a_test_that_passes_alone_is_named_and_stays_green(tmp_path: Path, source: str) -> None:
    code, lines = run_ci(tmp_path, test_a=PASSES, test_b=source)
    flaky = [line for line in lines if line.startswith("flaky: test_b.py::test_")]
    failed = "2 failed, 1 passed" if "parametrize" in source else "1 passed, 1 error"
    assert len(flaky) == (2 if "parametrize" in source else 1)
    assert failed in lines[-1]
    assert code == 0


def test_a_long_test_is_rerun_too(tmp_path: Path) -> None:
    source = FAILS_ONCE.format(cases='[pytest.param("a", marks=pytest.mark.long)]')
    code, lines = run_ci(tmp_path, "-m", "long", test_b=source)
    assert "flaky: test_b.py::test_sometimes[a]" in lines
    assert code == 0


@pytest.mark.parametrize(("count", "expected"), [(3, 0), (4, 1)])
def test_three_flaky_tests_are_green_and_four_are_red(
    tmp_path: Path, count: int, expected: int
) -> None:
    cases = ["a" * length for length in range(1, count + 1)]
    code, lines = run_ci(tmp_path, test_b=FAILS_ONCE.format(cases=cases))
    assert sum(line.startswith("flaky: ") for line in lines) == count
    assert code == expected


def test_a_test_that_fails_again_is_red(tmp_path: Path) -> None:
    code, lines = run_ci(tmp_path, test_a=PASSES, test_b=FAILS)
    assert "failed again: test_b.py::test_broken" in lines
    assert "= 1 failed, 1 passed in" in lines[-1]
    assert code == 1


def test_many_failures_are_red_without_reruns(tmp_path: Path) -> None:
    cases = ["a" * length for length in range(1, 12)]
    code, lines = run_ci(tmp_path, test_b=FAILS_ONCE.format(cases=cases))
    assert sum(line.startswith("failed: ") for line in lines) == 11
    assert not [line for line in lines if line.startswith("rerun alone")]
    assert code == 1


@pytest.mark.parametrize(
    ("files", "words", "expected"),
    [
        pytest.param(
            {"test_b": "import nothing_of_this_name"},
            (),
            "not rerun: test_b.py (error during collection)",
            id="collection",
        ),
        pytest.param(
            {"test_b": WORKER_DIES_ONCE},
            (),
            "not rerun: test_b.py::test_dies (its worker process died)",
            id="worker died",
        ),
        pytest.param(
            {"conftest": LEAVES_A_PROCESS_ONCE},
            ("-p", "no:xdist"),
            "not rerun: test_a.py::test_works (teardown)",
            id="process left behind",
        ),
        pytest.param({}, ("-k", "nothing"), None, id="no tests"),
        pytest.param({}, ("--no-such-option",), None, id="usage"),
    ],
)
def test_what_is_not_the_failure_of_one_test_is_red(
    tmp_path: Path, files: dict[str, str], words: tuple[str, ...], expected: str | None
) -> None:
    code, lines = run_ci(tmp_path, *words, **{"test_a": PASSES, **files})
    assert code == 1
    assert expected is None or expected in lines


def test_two_kinds_of_failure_do_not_hide_each_other(tmp_path: Path) -> None:
    files = {"test_a": FAILS_ONCE.format(cases=["a"]), "test_b": WORKER_DIES_ONCE}
    code, lines = run_ci(tmp_path, **files)
    assert "flaky: test_a.py::test_sometimes[a]" in lines
    assert code == 1
