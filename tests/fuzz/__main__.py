"""Fuzzes targets one after the other: `python -m tests.fuzz all --seconds 60`.

Needs atheris (`pip install atheris`), which is not among the requirements: there is no build of it
for every system. What it learns stays in the folder for the corpus and is used by the next run.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.fuzz.targets import TARGETS

PROJECT = Path(__file__).parents[2]


def main() -> int:
    """Exit code: 1 when a case was found, 2 when atheris is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--folder", type=Path, default=PROJECT / "build/fuzz")
    arguments = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: pip install atheris", file=sys.stderr)  # noqa: T201
        return 2
    names = list(TARGETS) if arguments.target == "all" else [arguments.target]
    found = [case for name in names for case in _fuzz(name, arguments.seconds, arguments.folder)]
    for case in found:
        print(f"found: {case}")  # noqa: T201
    return 1 if found else 0


def _fuzz(name: str, seconds: int, folder: Path) -> list[Path]:
    """Run one target; gives the inputs that it could not take."""
    corpus, cases = folder / name / "corpus", folder / name / "cases"
    corpus.mkdir(parents=True, exist_ok=True)
    cases.mkdir(exist_ok=True)
    for seed in TARGETS[name].seeds():
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    folders = [str(corpus.absolute()), str(cases.absolute())]
    command = [sys.executable, "-m", "tests.fuzz.engine", name, str(seconds), *folders]
    print(f"fuzzing {name} for {seconds} s", flush=True)  # noqa: T201
    # Above zero: an input took too long or too much memory. It is among the cases.
    subprocess.run(command, cwd=PROJECT, check=False)
    return sorted(cases.iterdir())


if __name__ == "__main__":
    sys.exit(main())
