"""What make does where programs of Debian that tests need are missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.deploy.engine import PROGRAMS
from tests.deploy.files import ROOT, run

INSTALL = f"install --no-install-recommends {' '.join(PROGRAMS)} debian-archive-keyring"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with next to nothing; its apt-get only writes down what it is called with."""
    write_program(tmp_path / "apt-get", f'echo "$@" >> {tmp_path}/called')
    return tmp_path


def write_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n", "ascii")
    path.chmod(0o755)


def look(folder: Path, user: int, need: str = "containers") -> tuple[int, str]:
    write_program(folder / "id", f"echo {user}")
    bash = shutil.which("bash") or "bash"
    done = run(bash, str(ROOT / "tools" / "preflight"), "python3", need, PATH=str(folder))
    return done.returncode, done.stderr


def test_other_users_read_what_to_install(bare: Path) -> None:
    code, message = look(bare, user=1000)
    assert code == 1
    assert f"no {' '.join(PROGRAMS)} found" in message
    assert f"apt-get {INSTALL} (Debian, as root)" in message
    assert not (bare / "called").exists()


def test_root_gets_what_is_missing(bare: Path) -> None:
    assert look(bare, user=0) == (0, "")
    assert (bare / "called").read_text("ascii") == f"update\n{INSTALL} --yes\n"


def test_the_browser_is_one_of_debians_packages(bare: Path) -> None:
    assert look(bare, user=0, need="browser") == (0, "")
    assert "install --no-install-recommends chromium --yes" in (bare / "called").read_text("ascii")
    code, message = look(bare, user=1000, need="browser")
    assert code == 1
    assert "no chromium found, which the test of the page needs" in message


def test_root_reads_that_it_could_not_be_installed(bare: Path) -> None:
    write_program(bare / "apt-get", "echo no network >&2; exit 100")
    code, message = look(bare, user=0)
    assert code == 1
    assert message.startswith("no network\nmake: podman runc mmdebstrap could not be installed")


def test_nothing_is_done_where_nothing_is_missing(bare: Path) -> None:
    for program in PROGRAMS:
        write_program(bare / program, "exit 0")
    assert look(bare, user=0) == (0, "")
    assert not (bare / "called").exists()


def test_root_gets_prometheus(bare: Path) -> None:
    assert look(bare, user=0, need="monitoring") == (0, "")
    installed = "update\ninstall --no-install-recommends prometheus --yes\n"
    assert (bare / "called").read_text("ascii") == installed


def test_other_users_read_that_prometheus_is_missing(bare: Path) -> None:
    code, message = look(bare, user=1000, need="monitoring")
    assert code == 1
    assert message.startswith("make: no prometheus found, which the test of metrics")
