"""Reads the YAML that deploy/ has: mappings, lists, plain and quoted scalars, `|` and `>-` blocks.

No anchors, no tags, no flow mappings but {}. What it does not know is an error, so that nothing is
read differently by a real parser.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_KEY = re.compile(r"""([^\s"'\-&*!|>%@`\[{#][^:#]*):(?:\s+(.*))?$""")
_ITEM = re.compile(r"(-\s+)(.*)$")
_FLOW_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^",\[\]{}]+)\s*(?:,|$)')
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "{}": {}}


def load_documents(path: Path) -> list[Any]:
    """All documents of a file."""
    parts = re.split(r"^---$", path.read_text("ascii"), flags=re.MULTILINE)
    return [_Reader(part.splitlines()).read() for part in parts]


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def read(self) -> Any:
        value = self._block(self._indent())
        if self._skip():
            raise ValueError(f"not understood: {self._lines[self._at]!r}")
        return value

    def _skip(self) -> bool:
        """Go to the next line with something on it; whether there is one."""
        while self._at < len(self._lines) and not self._lines[self._at].split("#")[0].strip():
            self._at += 1
        return self._at < len(self._lines)

    def _indent(self) -> int:
        if not self._skip():
            return -1
        line = self._lines[self._at]
        return len(line) - len(line.lstrip(" "))

    def _block(self, indent: int) -> Any:
        is_list = _ITEM.match(self._lines[self._at].lstrip())
        return self._list(indent) if is_list else self._mapping(indent)

    def _list(self, indent: int) -> list[Any]:
        items = []
        while self._indent() == indent and (found := _ITEM.match(self._lines[self._at][indent:])):
            if _KEY.match(found[2]):
                inner = indent + len(found[1])
                self._lines[self._at] = " " * inner + found[2]
                items.append(self._mapping(inner))
            else:
                self._at += 1
                items.append(self._value(found[2], indent))
        return items

    def _mapping(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._indent() == indent and (entry := _KEY.match(self._lines[self._at][indent:])):
            key, text = entry[1], entry[2] or ""
            if key in found:
                raise ValueError(f"twice: {key}")
            self._at += 1
            found[key] = self._value(text, indent)
        return found

    def _value(self, text: str, indent: int) -> Any:
        if text in ("|", ">-"):
            return self._text(indent, folded=text == ">-")
        if text:
            return _scalar(text)
        inner = self._indent()
        return self._block(inner) if inner > indent else None

    def _text(self, indent: int, *, folded: bool) -> str:
        lines = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
                break
            lines.append(line)
            self._at += 1
        margin = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
        body = [line[margin:] for line in lines]
        return " ".join(body).strip() if folded else "\n".join(body).rstrip("\n") + "\n"


def _scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == "[":
        return [_scalar(item) for item in _FLOW_ITEM.findall(text[1:-1])]
    if text[0] == '"':
        return json.loads(text)
    if text[0] in "'&*!|>%@`{" or ": " in text or " #" in text:
        raise ValueError(f"not understood: {text!r}")
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else text
