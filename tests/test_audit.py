"""What `make check` makes of the answers of pip-audit."""

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
HOLE = {"id": "CVE-1", "fix_versions": ["2.1"]}
BAD = {"name": "b", "version": "2", "vulns": [HOLE]}
UNKNOWN = {"name": "c", "skip_reason": "not found"}


def audit(folder: Path, answer: str, **environment: str) -> tuple[int, str]:
    """Exit code and words, with somebody in the place of pip-audit who says `answer`."""
    stand_in = folder / "pip-audit"
    stand_in.write_text(f"#!{sys.executable}\nprint({answer!r})\n")
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
    ("packages", "code", "said"),
    [
        pytest.param([GOOD], 0, "audit: no known vulnerabilities in the 1 packages", id="none"),
        pytest.param([GOOD, BAD], 1, "audit: b 2: CVE-1, mended in 2.1", id="a hole"),
        pytest.param([BAD, UNKNOWN], 1, "audit: b 2: CVE-1", id="a hole and a gap"),
        pytest.param([GOOD, UNKNOWN], 0, "NOT DONE, .*: 1 of 2 packages are not known", id="a gap"),
        pytest.param([], 0, "NOT DONE", id="nothing asked"),
    ],
)
def test_holes_fail_the_check_and_gaps_are_said(
    tmp_path: Path, packages: list[dict[str, Any]], code: int, said: str
) -> None:
    ended, words = audit(tmp_path, json.dumps({"dependencies": packages}))
    assert ended == code
    assert re.search(said, words)


@pytest.mark.parametrize("answer", ["", "{}", "not JSON"])
def test_no_answer_fails_only_those_who_want_one(tmp_path: Path, answer: str) -> None:
    assert audit(tmp_path, answer)[0] == 0
    code, words = audit(tmp_path, answer, AUDIT="required")
    assert code == 1
    assert "audit: NOT DONE, no word from the database" in words
