"""What the program never does with what others send it: unpickle, evaluate, hand it to a shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
MODULES = frozenset(("pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve"))
MODULES |= {"yaml", "commands", "telnetlib", "crypt"}
CALLS = frozenset(("eval", "exec", "compile", "__import__", "os.system", "os.popen"))
CALLS |= {"subprocess.getoutput", "subprocess.getstatusoutput", "tempfile.mktemp"}
CALLS |= {f"yaml.{how}load{all_}" for how in ("", "full_", "unsafe_") for all_ in ("", "_all")}
# It composes nodes and makes no objects of them: calls that would are in the list above.
ALLOWED = {"sparkmirror/tools/convert/yaml_text.py": ["yaml"]}


def trees() -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE), ast.parse(path.read_text())


def dangers(tree: ast.AST) -> Iterator[str]:
    """Everything of the lists that the code does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if is_dangerous(name.name))
        elif isinstance(node, ast.ImportFrom) and is_dangerous(node.module or ""):
            yield str(node.module)
        elif isinstance(node, ast.Call):
            if (called := ast.unparse(node.func)) in CALLS:
                yield called
            yield from ("shell" for word in node.keywords if word.arg == "shell")


def is_dangerous(module: str) -> bool:
    return module.partition(".")[0] in MODULES


def test_nothing_dangerous_is_in_the_program() -> None:
    found = {str(path): sorted(dangers(tree)) for path, tree in trees()}
    assert len(found) > 100
    assert {path: calls for path, calls in found.items() if calls} == ALLOWED


@pytest.mark.parametrize(
    ("code", "danger"),
    [
        ("import pickle", "pickle"),
        ("from pickle import loads", "pickle"),
        ("import yaml", "yaml"),
        ("import yaml.loader as x", "yaml.loader"),
        ("yaml.load(text, Loader)", "yaml.load"),
        ("yaml.unsafe_load_all(text)", "yaml.unsafe_load_all"),
        ("eval(text)", "eval"),
        ("subprocess.run(text, shell=True)", "shell"),
        ("os.system(text)", "os.system"),
    ],
)
def test_the_check_finds(code: str, danger: str) -> None:
    assert list(dangers(ast.parse(code))) == [danger]


def test_names_that_are_like_them_are_none() -> None:
    assert list(dangers(ast.parse("re.compile(x); loop.exec(y); import pickles"))) == []
