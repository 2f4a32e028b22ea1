"""How `make check` treats the responses of pip-audit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent / "tools" / "audit.py"
GOOD = {"name": "a", "version": "1", "vulns": []}
FLAW = {"id": "CVE-1", "fix_versions": ["2.1"]}
BAD = {"name": "b", "version": "2", "vulns": [FLAW]}
UNKNOWN = {"name": "c", "skip_reason": "not found"}


def audit(folder: Path, response: str, **environment: str) -> tuple[int, str]:
    """Exit code and output, with a program in place of pip-audit that prints `response`."""
    stand_in = folder / "pip-audit"
    stand_in.write_text(f"#!{sys.executable}\nprint({response!r})\n")
    stand_in.chmod(0o755)
    ended = subprocess.run(
        [sys.executable, SCRIPT, stand_in, "requirements.txt"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    ("packages", "code", "expected"),
    [
        pytest.param([GOOD], 0, "audit: no known vulnerabilities in the 1 packages", id="none"),
        pytest.param([GOOD, BAD], 1, "audit: b 2: CVE-1, fixed in 2.1", id="a vulnerability"),
        pytest.param(
            [BAD, UNKNOWN], 1, "audit: b 2: CVE-1", id="a vulnerability and an unknown package"
        ),
        pytest.param(
            [GOOD, UNKNOWN], 0, "NOT DONE, .*: 1 of 2 packages are not in", id="an unknown package"
        ),
        pytest.param([], 0, "NOT DONE", id="no packages"),
    ],
)
def test_vulnerabilities_fail_the_check_and_unknown_packages_are_reported(
    tmp_path: Path, packages: list[dict[str, Any]], code: int, expected: str
) -> None:
    ended, words = audit(tmp_path, json.dumps({"dependencies": packages}))
    assert ended == code
    assert re.search(expected, words)


@pytest.mark.parametrize("response", ["", "{}", "not JSON"])
def test_a_missing_response_fails_only_if_required(tmp_path: Path, response: str) -> None:
    assert audit(tmp_path, response)[0] == 0
    code, words = audit(tmp_path, response, AUDIT="required")
    assert code == 1
    assert "audit: NOT DONE, no complete response from the vulnerability database" in words
