"""What to do about a problem, as far as its text says: every error of ours ends with a remedy.

Runs on: worker. Pure. Messages come from the log's own error tables, so a remedy has their words.
"""

from __future__ import annotations

from sparkmirror.monitoring.views.rows.common import Remedy

_GRANT = "; to allow it: "


def remedy_of(problem: str) -> Remedy | None:
    """The command that grants a missing permission; else what follows the last semicolon."""
    text, grant, command = problem.partition(_GRANT)
    if grant:
        return Remedy("To allow it:", command.strip())
    _, semicolon, last = text.rpartition("; ")
    if not semicolon or not last:
        return None
    return Remedy(f"{last[0].upper()}{last[1:]}")


def without_remedy(problem: str) -> str:
    """The problem itself."""
    text = problem.partition(_GRANT)[0]
    found = remedy_of(problem)
    return text.rpartition("; ")[0] if found is not None and not found.command else text


def last_line(trace: str) -> str:
    """The most useful line of a trace: the first of Java's, the last of Python's."""
    lines = [line for line in trace.splitlines() if line.strip()] or [""]
    return lines[-1 if lines[0].startswith("Traceback ") else 0]


def reason_of(trace: str) -> str:
    """The same without the name of the class that begins it."""
    line = last_line(trace)
    head, colon, rest = line.partition(": ")
    return rest if colon and " " not in head and "." in head else line
