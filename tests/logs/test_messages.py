"""The table of messages says what the code says, and docs/operations.md what the table says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.logs.message_docs import BEGIN, END, main, render_messages, with_messages
from sparkmirror.logs.message_types import Message, MessageLine
from sparkmirror.logs.messages import SECTIONS, all_messages

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sparkmirror"
PAGE = ROOT / "docs" / "operations.md"
VALUE = re.compile(r"<[^<>]+>")
# Stands for a value in what is compared.
GAP = "\0"
PLACEHOLDER = re.compile(r"%[-#0 +]*[0-9.*]*[diouxXeEfFgGcrsa]|\{[a-z_]*\}")
LOG_CALLS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
WARNINGS = {("log", level) for level in ("warning", "error", "critical")}
FEWEST_LETTERS = 6

LINES = [line for message in all_messages() for line in message.lines]


def templates(module: str) -> set[str]:
    """The texts that a module logs, raises, returns or keeps for that, with gaps for values."""
    tree = ast.parse((SOURCE / f"{module.replace('.', '/')}.py").read_text())
    return {text for made in _makers(tree) for text in _texts(made)}


def _makers(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _makes_messages(node):
            yield from node.args
        elif isinstance(node, ast.Raise | ast.Return | ast.Assign | ast.AnnAssign):
            yield node


def _makes_messages(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute):
        is_log = isinstance(function.value, ast.Name) and function.value.id == "log"
        return (is_log and function.attr in LOG_CALLS) or function.attr.startswith("_say")
    name = function.id if isinstance(function, ast.Name) else ""
    return name.endswith("Error") or name == "Choice"


def _texts(node: ast.AST) -> Iterator[str]:
    """Of all texts in it; an f-string is one, and so is what `+` joins."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield PLACEHOLDER.sub(GAP, node.value).replace(GAP * 2, GAP)
    elif isinstance(node, ast.JoinedStr):
        parts = [
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else GAP
            for part in node.values
        ]
        yield "".join(parts)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)


def is_made(line: MessageLine) -> bool:
    wanted = VALUE.sub(GAP, line.text)
    # A value at either end may be joined by other code.
    return any(wanted in text or wanted.strip(GAP) in text for text in templates(line.module))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:60])
def test_the_code_makes_this_line(line: MessageLine) -> None:
    assert is_made(line), sorted(templates(line.module))


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("<cluster> responded again, after <n> s", "wire.net.outages"),
        ("Writes the log of this process", "logs.log_handler"),  # a docstring
        ("worker", "logs.repeats"),
    ],
)
def test_other_lines_are_not_found(text: str, module: str) -> None:
    assert not is_made(MessageLine(text, module))


def test_every_warning_has_a_row() -> None:
    """But those that only pass on a text, and tracebacks, which are bugs."""
    rows = [VALUE.sub(GAP, line.text).strip(GAP) for line in LINES]
    assert [text for text in warnings() if not any(row in text for row in rows)] == []


def warnings() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and _is_warning(call):
                for text in _texts(call.args[0]):
                    if sum(map(str.isalpha, text)) >= FEWEST_LETTERS:
                        yield text


def _is_warning(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and (function.value.id, function.attr) in WARNINGS
    )


def test_lines_are_telling_and_there_once() -> None:
    texts = [line.text for line in LINES]
    assert len(texts) == len(set(texts))
    for text in texts:
        assert sum(map(str.isalpha, VALUE.sub("", text))) >= 5, text


def test_rows_are_complete() -> None:
    for message in all_messages():
        for text in (message.meaning, message.action):
            assert text
            assert "\n" not in text
            assert text[-1] not in ".;,", text


# Lines of real runs, as operators look them up.
REAL = {
    "t-0 waits: produce to x.t-0 on 'b': NOT_ENOUGH_REPLICAS": "<partition> waits",
    "cluster 'x' cannot be reached (h:1: Connection refused); check a.bootstrap.servers and that "
    "its brokers are up": "cluster '<alias>' cannot be reached",
    "cluster 'x': h:1 responds, but the advertised address k:2 of broker 1 (no such host) cannot "
    "be reached from here; set advertised.listeners": "cluster '<alias>': <address> responds",
    "t-0: position 100 is outside the log (4000 to 9000): offsets 100 to 3999 were deleted by "
    "retention before they were copied (3900 offsets lost); continuing at 4000": "position",
    "offsets 7 to 7 of t-0 (1 records, 1500000 bytes): produce to x.t-0 on 'b': "
    "MESSAGE_TOO_LARGE; raise the limit": "offsets <n>",
    "FAILED: RefusedError: no; starting it again in 8 s": "FAILED",
    "UNASSIGNED: Spark (spark://h:7077) has 2 slots for 4 tasks, 2 missing; add executors or "
    "cores": "UNASSIGNED",
    "User:x lacks WRITE on topic 't' of cluster 'y'; to allow it: kafka-acls.sh": "<user> lacks",
}


@pytest.mark.parametrize("text", REAL)
def test_a_real_line_finds_its_row(text: str) -> None:
    found = next(line.text for line in LINES if re.search(_pattern(line), text))
    assert found.startswith(REAL[text])


def _pattern(line: MessageLine) -> str:
    return ".+?".join(map(re.escape, VALUE.split(line.text)))


# -- the page -------------------------------------------------------------------------------------


def test_page_is_up_to_date() -> None:
    assert main(["--check", str(PAGE)]) == 0


def test_page_has_every_row() -> None:
    text = PAGE.read_text("utf-8")
    for section in SECTIONS:
        assert f"### {section.title}\n" in text
    for message in all_messages():
        assert isinstance(message, Message)
        assert all(f"`{line.text}`".replace("|", "\\|") in text for line in message.lines)


def test_check_fails_for_another_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "operations.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    assert main(["--check", str(page)]) == 1
    assert "does not match" in capsys.readouterr().err
    assert main([str(page)]) == 0
    assert page.read_text() == f"before\n{BEGIN}{render_messages()}{END}after\n"
    assert main(["--check", str(page)]) == 0


def test_a_page_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="Written by"):
        with_messages("text\n")
