"""The examples of docs/filters.md, run as a reader would."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "filters.md"
FILE = re.compile(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)


def test_the_examples_work_together(tmp_path: Path) -> None:
    files = dict(FILE.findall(PAGE.read_text("ascii")))
    assert set(files) == {"my_mirror.py", "mm2.properties", "try_it.py"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, "ascii")
    ended = subprocess.run(
        [sys.executable, "-W", "error", "try_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_every_kind_of_class_has_an_example() -> None:
    text = PAGE.read_text("ascii")
    properties = dict(FILE.findall(text))["mm2.properties"]
    keys = re.findall(r"^\| `([\w.]+\.class)` \|", text, re.MULTILINE)
    assert len(keys) == 5
    assert [key for key in keys if f"{key} = my_mirror:" not in properties] == []
