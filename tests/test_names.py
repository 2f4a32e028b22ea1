"""One word for one thing: no name has two definitions, and predicates change nothing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "sparkmirror"
TREES = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
CAP_WORDS = re.compile(r"_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
PREDICATE = re.compile(r"_?(is|has|may|can)_")

# Files that are being rewritten: each leaves this list with the change that renames its functions.
CHANGING = {"connect/group/tenure.py:has_lapsed"}


def test_no_class_or_alias_has_the_name_of_another() -> None:
    places = defaultdict(set)
    for path, tree in TREES.items():
        for name in _defined(tree):
            places[name].add(str(path.relative_to(SOURCE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_predicate_changes_nothing() -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{function.name}"
        for path, tree in TREES.items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and PREDICATE.match(function.name)
        and any(_is_of_self(target) for target in _targets(function))
    }
    assert found == CHANGING


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("class Name: pass", id="class"),
        pytest.param("Name = dict[str, int]", id="alias"),
        pytest.param("Name: object = dict", id="annotated"),
        pytest.param("if TYPE_CHECKING:\n class Name: pass", id="under a condition"),
        pytest.param("try:\n pass\nexcept ImportError:\n Name = str", id="after a failure"),
    ],
)
def test_what_counts_as_defined(text: str) -> None:
    assert list(_defined(ast.parse(text))) == ["Name"]


@pytest.mark.parametrize(
    ("body", "acts"),
    [
        pytest.param("return self.a == 1", False, id="compares"),
        pytest.param("found = self.a", False, id="local"),
        pytest.param("self.a = 1", True, id="assigns"),
        pytest.param("self.a.b += 1", True, id="of an attribute"),
        pytest.param("self.a[1] = 2", True, id="an element"),
        pytest.param("x = self.a[1] = 2", True, id="beside a local"),
        pytest.param("x, self.a = 1, 2", True, id="a pair"),
        pytest.param("del self.a[1]", True, id="deletes"),
        pytest.param("for self.a in ():\n  pass", True, id="in a loop"),
        pytest.param("with a as self.b:\n  pass", True, id="in a with"),
    ],
)
def test_what_counts_as_changing(body: str, acts: bool) -> None:
    tree = ast.parse(f"def is_so(self):\n {body}")
    assert any(_is_of_self(target) for target in _targets(tree.body[0])) is acts


def _defined(tree: ast.Module) -> Iterator[str]:
    """Classes and aliases of a module; what is only renamed on import is not its own."""
    for node in _module_level(tree.body):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not _is_type_variable(node):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each.id for each in targets if isinstance(each, ast.Name)]
            yield from (name for name in names if CAP_WORDS.fullmatch(name))


def _module_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Also what a module defines under a condition, such as TYPE_CHECKING or a failed import."""
    for node in body:
        yield node
        match node:
            case ast.If(body=first, orelse=second):
                yield from _module_level((*first, *second))
            case ast.Try(body=first, handlers=handlers, orelse=second, finalbody=last):
                caught = (each for handler in handlers for each in handler.body)
                yield from _module_level((*first, *caught, *second, *last))


def _is_type_variable(node: ast.Assign | ast.AnnAssign) -> bool:
    call = node.value
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("TypeVar", "ParamSpec")
    )


def _targets(function: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                yield from targets
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                yield target
            case (
                ast.For(target=target) | ast.AsyncFor(target=target) | ast.NamedExpr(target=target)
            ):
                yield target
            case ast.withitem(optional_vars=ast.expr() as target):
                yield target


def _is_of_self(target: ast.expr) -> bool:
    """Whether this is an attribute of self, of one of its attributes, or an element of one."""
    if isinstance(target, ast.Tuple | ast.List):
        return any(_is_of_self(each) for each in target.elts)
    if isinstance(target, ast.Starred):
        return _is_of_self(target.value)
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
        if isinstance(target, ast.Name) and target.id == "self":
            return True
    return False
