"""What is said of a flow in one sentence, and in two words.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.monitoring.views.partition_view import UNKNOWN
from sparkmirror.monitoring.views.rows.common import Level, Sentence
from sparkmirror.monitoring.views.rows.connector_rows import ConnectorRow
from sparkmirror.monitoring.views.rows.flow_rows import CatchUp
from sparkmirror.monitoring.views.rows.partition_rows import PartitionRow
from sparkmirror.monitoring.views.wording.remedies import without_remedy
from sparkmirror.monitoring.views.wording.words import clock, counted, duration

_LEVELS = {
    "failed": Level.BAD,
    "stuck": Level.WARN,
    UNKNOWN: Level.UNKNOWN,
    "paused": Level.INFO,
    "catching up": Level.INFO,
}


def flow_word(state: str, rows: Sequence[PartitionRow], connectors: Sequence[ConnectorRow]) -> str:
    """The worst state, counted: `1 partition stuck`, `1 task failed`."""
    number = sum(row.state == state for row in rows)
    if state == "failed":
        tasks = sum(task.state == "FAILED" for row in connectors for task in row.tasks)
        if tasks:
            return f"{counted(tasks, 'task')} failed"
        is_connector = any(row.state == "FAILED" for row in connectors)
        return "Connector failed" if is_connector else f"{counted(number, 'partition')} failed"
    if state in ("stuck", UNKNOWN) and rows:
        return f"{counted(number, 'partition')} {state}"
    if state == "idle":
        return "Idle, all copied" if rows else "No topic yet"
    return state.capitalize()


def flow_sentence(
    state: str,
    late: Sequence[PartitionRow],
    connectors: Sequence[ConnectorRow],
    catch_up: CatchUp,
    now_ms: int,
) -> Sentence:
    """`late`: the partitions, the worst first."""
    head, text = _words(state, late, connectors, catch_up, now_ms)
    return Sentence(_LEVELS.get(state, Level.OK), state, head, text)


def _words(
    state: str,
    late: Sequence[PartitionRow],
    connectors: Sequence[ConnectorRow],
    catch_up: CatchUp,
    now_ms: int,
) -> tuple[str, str]:
    if state == "failed":
        return _failed(late, connectors)
    if state == "paused":
        return "Paused", "Its tasks keep their positions."
    if not late:
        return _without_partitions(state)
    if state in ("stuck", UNKNOWN):
        return _bad_partitions(state, late, now_ms)
    return _without_trouble(state, late, catch_up)


def _without_trouble(
    state: str, late: Sequence[PartitionRow], catch_up: CatchUp
) -> tuple[str, str]:
    if state == "catching up":
        done = "" if catch_up.seconds is None else f", done in about {duration(catch_up.seconds)}"
        return f"Catching up{done}", f"{_others(late)}; nothing is lost."
    if state == "idle":
        text = f"All {counted(len(late), 'partition')} have no lag; nothing is being written."
        return "Idle: everything is copied", text
    return "Live", f"{_others(late)}."


def _without_partitions(state: str) -> tuple[str, str]:
    if state == UNKNOWN:
        return "Not known yet", "Its connector has not started yet."
    return "No topic is mirrored yet", "See why not under Topics."


def _failed(late: Sequence[PartitionRow], connectors: Sequence[ConnectorRow]) -> tuple[str, str]:
    for row in connectors:
        for task in row.tasks:
            if task.state == "FAILED":
                failed = sum(each.state == "FAILED" for each in row.tasks)
                return f"{failed} of {counted(len(row.tasks), 'task')} failed", _told(task.reason)
        if row.state == "FAILED":
            return f"Connector `{row.name}` failed", _told(row.reason)
    row_ = next(row for row in late if row.state == "failed")
    number = sum(row.state == "failed" for row in late)
    name = f"`{row_.topic}-{row_.partition}`"
    return f"{counted(number, 'partition')} failed", f"{name}: {_told(row_.problem)}"


def _told(reason: str) -> str:
    return f"{without_remedy(reason)}." if reason else "The connector's trace says why."


def _bad_partitions(state: str, late: Sequence[PartitionRow], now_ms: int) -> tuple[str, str]:
    bad = [row for row in late if row.state == state]
    first = bad[0]
    name = f"`{first.topic}-{first.partition}`"
    rest = [row for row in late if row.state != state]
    others = f" {_others(rest)}." if rest else ""
    if state == UNKNOWN:
        head = f"{counted(len(bad), 'partition')} unknown"
        return head, f"{name}: {first.problem}.{others}"
    verb = "is" if len(bad) == 1 else "are"
    head = f"{counted(len(bad), 'partition')} {verb} stuck"
    since = "" if first.since_ms is None else f" since {clock(first.since_ms, now_ms)}"
    return head, f"{name} waits{since}: {without_remedy(first.problem)}.{others}"


def _others(rows: Sequence[PartitionRow]) -> str:
    """How late these are at most; of those that are not known, how many."""
    known = [row.seconds_behind for row in rows if row.seconds_behind is not None]
    lacking = len(rows) - len(known)
    if not known:
        return f"The lag of {counted(lacking, 'partition')} is not known"
    text = f"{counted(len(known), 'partition')} at most {duration(max(known))} behind"
    return f"{text}, {lacking} unknown" if lacking else text
