"""The shape of the code: imports go down only, and no file is too long to read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.conftest import LONGEST

ROOT = Path(__file__).parent.parent
PROJECT = ROOT / "pyproject.toml"
MOST_LINES = 400


def test_imports_keep_the_contracts_of_pyproject(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(PROJECT), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_the_contracts_name_every_package() -> None:
    (layers,) = [
        contract["layers"]
        for contract in tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    source = ROOT / "src" / "sparkmirror"
    modules = {path.name for path in source.iterdir() if (path / "__init__.py").is_file()}
    modules |= {path.stem for path in source.glob("*.py") if path.stem != "__init__"}
    assert {f"sparkmirror.{name}" for name in modules} == set(layers)


@pytest.mark.parametrize("folder", ["src", "tests", "bench"])
def test_no_file_is_too_long(folder: str) -> None:
    sizes = {path: len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert sizes
    too_long = {str(path.relative_to(ROOT)): n for path, n in sizes.items() if n > MOST_LINES}
    assert too_long == {}


@pytest.mark.parametrize("folder", ["src", "tests", "bench"])
def test_every_package_says_what_it_is(folder: str) -> None:
    packages = {
        path.parent for path in (ROOT / folder).rglob("*.py") if path.parent != ROOT / "src"
    }
    silent = [
        str(package.relative_to(ROOT))
        for package in packages
        if not (package / "__init__.py").is_file() or not (package / "__init__.py").read_text()
    ]
    assert silent == []


def test_files_that_run_early_exist() -> None:
    missing = [name for name in LONGEST if not (ROOT / "tests" / name).exists()]
    assert missing == []
