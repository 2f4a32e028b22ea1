"""pyproject names every package that src imports, in the extra of the part that imports it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "sparkmirror"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Part of src -> the extra whose packages it may import as well.
EXTRAS = {
    "demo": "demo",
    "embedded": "demo",
    "wire/sasl/aws.py": "aws",
    "monitoring/metrics/otlp.py": "otel",
}


def test_every_imported_package_is_declared() -> None:
    undeclared = {
        f"{path.relative_to(SOURCE)}: {package}"
        for path in SOURCE.rglob("*.py")
        for package in _packages_of(path)
        if not _names_of(package) & _allowed(path)
    }
    assert undeclared == set()


def test_every_declared_package_is_imported() -> None:
    imported = {
        name
        for path in SOURCE.rglob("*.py")
        for package in _packages_of(path)
        for name in _names_of(package)
    }
    extras = set(EXTRAS.values())
    assert _declared().union(*map(_declared, extras)) <= imported


def test_dev_has_all_extras() -> None:
    (own,) = [each for each in PROJECT["optional-dependencies"]["dev"] if "sparkmirror" in each]
    extras = set(PROJECT["optional-dependencies"]) - {"dev"}
    assert set(re.findall(r"\w+", own.partition("[")[2])) == extras == set(EXTRAS.values())


def _allowed(path: Path) -> set[str]:
    own = path.relative_to(SOURCE).as_posix()
    extras = [extra for part, extra in EXTRAS.items() if own == part or own.startswith(f"{part}/")]
    return _declared().union(*map(_declared, extras))


def _declared(extra: str = "") -> set[str]:
    wanted = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    return {_plain(re.split(r"[\[<>=~! ]", each)[0]) for each in wanted}


def _names_of(package: str) -> set[str]:
    return set(map(_plain, packages_distributions().get(package, ())))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _packages_of(path: Path) -> set[str]:
    first = {name.partition(".")[0] for name in _imports(ast.parse(path.read_text()))}
    return first - sys.stdlib_module_names - {"sparkmirror"}


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
