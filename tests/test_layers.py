"""The shape of the code: imports go down only, and no file is too long to read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.conftest import LONGEST

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "sparkmirror"
PROJECT = ROOT / "pyproject.toml"
MOST_LINES = 400
MOST_FILES = 17  # with __init__: more names than one looks through
# Each of these has one room, and a name for everything else in it.
WITHOUT_CONTRACT = {SOURCE / "batches", SOURCE / "embedded", SOURCE / "wire" / "sasl"}


def test_imports_keep_the_contracts_of_pyproject(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(PROJECT), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_the_contracts_name_every_package() -> None:
    (layers,) = [contract["layers"] for contract in _layers() if "containers" not in contract]
    assert {f"sparkmirror.{name}" for name in _modules_of(SOURCE)} == set(layers)


def test_packages_with_rooms_have_a_contract_that_names_them_all() -> None:
    found = {
        container: _names(each) for each in _layers() for container in each.get("containers", ())
    }
    with_rooms = {path.parent.parent for path in SOURCE.rglob("*/__init__.py")} - {SOURCE}
    for package in with_rooms - WITHOUT_CONTRACT:
        name = ".".join(package.relative_to(SOURCE.parent).parts)
        assert _modules_of(package) == found[name], name


def test_no_folder_has_more_files_than_fit_on_a_page() -> None:
    crowded = {
        str(folder.relative_to(SOURCE)): count
        for folder in SOURCE.rglob("*")
        if folder.is_dir() and (count := len(set(folder.glob("*.py")))) > MOST_FILES
    }
    assert crowded == {}


def _layers() -> list[dict[str, list[str]]]:
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    return [contract for contract in contracts if contract["type"] == "layers"]


def _names(contract: dict[str, list[str]]) -> set[str]:
    return {name.strip() for layer in contract["layers"] for name in layer.split("|")}


def _modules_of(folder: Path) -> set[str]:
    packages = {path.name for path in folder.iterdir() if (path / "__init__.py").is_file()}
    return packages | {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}


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
