"""Writes the table of messages into docs/operations.md. Run by developers and `make check`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sparkmirror.logs.message_types import Message
from sparkmirror.logs.messages import SECTIONS

COMMAND = "python -m sparkmirror.logs.message_docs"
DEFAULT_PATH = Path("docs") / "operations.md"
BEGIN = f"<!-- Written by {COMMAND}; change src/sparkmirror/logs/message_rows. -->\n"
END = "<!-- The end of what it writes. -->\n"
HEADER = ("| message | meaning | what to do |", "|---|---|---|")


def render_messages() -> str:
    """The tables, a section for each subject."""
    parts = []
    for section in SECTIONS:
        rows = "\n".join(map(_row, section.messages))
        parts.append("\n".join([f"### {section.title}", *HEADER, rows, ""]))
    return "\n".join(parts)


def _row(message: Message) -> str:
    lines = "; ".join(f"`{line.text}`" for line in message.lines)
    return f"| {_cell(lines)} | {_cell(message.meaning)} | {_cell(message.action)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_messages(page: str) -> str:
    """The page with the tables between their marks. Raises ValueError if it has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no line {BEGIN.strip() if not begin else END.strip()}")
    return f"{before}{begin}{render_messages()}{end}{after}"


def main(arguments: Sequence[str]) -> int:
    """Write the tables, or with --check only compare; returns the exit code."""
    paths = [Path(item) for item in arguments if not item.startswith("--")]
    path = paths[0] if paths else DEFAULT_PATH
    page = path.read_text("utf-8")
    text = with_messages(page)
    if "--check" not in arguments:
        path.write_text(text, "utf-8")
    elif page != text:
        sys.stderr.write(f"{path} does not match the table of messages; run {COMMAND}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
