"""Do packages of requirements.txt have known vulnerabilities? Called by `make check`.

One is exit code 1. A database that does not answer, or does not know a package, is said and lets
the other checks go on, because no change of the code could help it; with AUDIT=required in the
environment it is exit code 1 as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

SECONDS = 180
WORDS = (
    *("--require-hashes", "--disable-pip", "--progress-spinner", "off"),
    *("--timeout", "15", "--format", "json"),
)


def main(pip_audit: str, requirements: str) -> int:
    """Ask, and tell what came out."""
    try:
        asked = subprocess.run(
            [pip_audit, "--requirement", requirements, *WORDS],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        return not_done(str(error))
    try:
        packages: Sequence[Mapping[str, Any]] = json.loads(asked.stdout)["dependencies"]
    except (ValueError, KeyError):
        return not_done((asked.stderr.strip().splitlines() or ["no answer"])[-1])
    return judge(packages)


def judge(packages: Sequence[Mapping[str, Any]]) -> int:
    """Say what is known of them."""
    found = [(package, flaw) for package in packages for flaw in package.get("vulns", ())]
    for package, flaw in found:
        fixed = ", ".join(flaw["fix_versions"]) or "no version"
        say(f"{package['name']} {package['version']}: {flaw['id']}, mended in {fixed}")
    if found:
        say("raise these versions in pyproject.toml, then `make requirements`")
        return 1
    unknown = [package["skip_reason"] for package in packages if "skip_reason" in package]
    if unknown or not packages:
        reason = f", the first: {unknown[0]}" if unknown else ""
        return not_done(f"{len(unknown)} of {len(packages)} packages are not known there{reason}")
    say(f"no known vulnerabilities in the {len(packages)} packages of requirements.txt")
    return 0


def not_done(reason: str) -> int:
    """The database is at fault."""
    say(f"NOT DONE, no word from the database of known vulnerabilities: {reason[:300]}")
    return int(os.environ.get("AUDIT") == "required")


def say(text: str) -> None:
    sys.stderr.write(f"audit: {text}\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
