"""Prints the part of requirements.txt that the program needs to run, or to be built.

    python tools/needed_requirements.py run     what an image contains: the extra [aws] too
    python tools/needed_requirements.py build   what builds and installs packages

Versions and hashes are those of requirements.txt, which lists the dependents of every package.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"[A-Za-z0-9._-]+")


def main(part: str) -> int:
    """Print the part."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = {
        "run": [
            *project["project"]["dependencies"],
            *project["project"]["optional-dependencies"]["aws"],
        ],
        "build": [*project["build-system"]["requires"], "pip"],
    }
    if part not in wanted:
        sys.stderr.write(f"needed_requirements: {part}: use one of {', '.join(wanted)}\n")
        return 2
    blocks = read_blocks((ROOT / "requirements.txt").read_text("utf-8"))
    sys.stdout.write("".join(needed(wanted[part], blocks)))
    return 0


def read_blocks(text: str) -> list[str]:
    """The lines of each package, which may have several versions for several Pythons."""
    return [block for block in re.split(r"(?m)^(?=[A-Za-z0-9])", text) if NAME.match(block)]


def needed(direct: list[str], blocks: list[str]) -> list[str]:
    """The blocks of `direct`, and of all their dependencies."""
    found: set[str] = set()
    new = {_name(requirement) for requirement in direct}
    while new:
        found |= new
        new = {_name(block) for block in blocks if found & wanted_by(block)} - found
    return [block for block in blocks if _name(block) in found]


def wanted_by(block: str) -> set[str]:
    """The dependents of a package: the lines below `# via`."""
    _, _, via = block.partition("# via")
    return {_name(line) for line in re.split(r"\n\s*#|\n", via) if NAME.match(line.strip())}


def _name(text: str) -> str:
    found = NAME.match(text.strip())
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or [""]))
