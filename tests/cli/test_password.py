"""`sparkmirror password`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from sparkmirror.cli import main as cli
from sparkmirror.rest.security.users import load_users


@pytest.mark.parametrize("user", ["alice", "J\u00fcrgen M", "a=b#c"])
def test_line_for_a_file_of_users(
    user: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("all of it\nmore\n"))
    with pytest.raises(SystemExit) as ended:
        cli.main(["password", user])
    assert ended.value.code == 0
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")
    assert "all of it" not in out
    path = tmp_path / "users"
    path.write_text(out, "ascii")
    assert load_users(path)[user].fits("all of it")


@pytest.mark.parametrize(("user", "text"), [("a:b", "x\n"), ("", "x\n"), ("alice", "\n")])
def test_what_cannot_be_a_login(
    user: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    with pytest.raises(SystemExit) as ended:
        cli.main(["password", user])
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""
