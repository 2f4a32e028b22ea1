"""Checks the packages of requirements.txt for known vulnerabilities. Called by `make check`.

A vulnerability means exit code 1. If the database does not respond, or does not know a package,
this is only reported, because no change of the code could fix it; with AUDIT=required in the
environment it also means exit code 1.
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
    """Run pip-audit, and report the result."""
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
        return not_done((asked.stderr.strip().splitlines() or ["no response"])[-1])
    return judge(packages)


def judge(packages: Sequence[Mapping[str, Any]]) -> int:
    """Report the known vulnerabilities."""
    found = [(package, flaw) for package in packages for flaw in package.get("vulns", ())]
    for package, flaw in found:
        fixed = ", ".join(flaw["fix_versions"]) or "no version"
        report(f"{package['name']} {package['version']}: {flaw['id']}, fixed in {fixed}")
    if found:
        report("raise these versions in pyproject.toml, then `make requirements`")
        return 1
    unknown = [package["skip_reason"] for package in packages if "skip_reason" in package]
    if unknown or not packages:
        reason = f", the first: {unknown[0]}" if unknown else ""
        return not_done(
            f"{len(unknown)} of {len(packages)} packages are not in the database{reason}"
        )
    report(f"no known vulnerabilities in the {len(packages)} packages of requirements.txt")
    return 0


def not_done(reason: str) -> int:
    """Report that the database could not be used."""
    report(f"NOT DONE, no complete response from the vulnerability database: {reason[:300]}")
    return int(os.environ.get("AUDIT") == "required")


def report(text: str) -> None:
    sys.stderr.write(f"audit: {text}\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
