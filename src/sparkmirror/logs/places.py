"""Which connector and task a log line is about: of its thread, or named by the line itself.

Mirrors: org.apache.kafka.connect.util.LoggingContext, which keeps `[connector|task-0] ` or
`[connector|worker] ` for the thread and lets the layout print it (KIP-449). Pipelines that read
Connect's log find connector and task by that form, so lines begin with the same one. Runs on:
worker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from sparkmirror.config.mirror_configs import SOURCE_ALIAS, TARGET_ALIAS

ARROW = "->"
_TASK_OF = re.compile(r"(?P<name>.+)-(?P<task>[0-9]+)", re.DOTALL)
# What distinguishes the Spark jobs of one task (TaskRunner).
_JOB = re.compile(r"#[0-9a-f]{8}$")
# A setting that a config provider completes.
_REFERENCE = "${"


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A connector, or one of its tasks; fields are empty where they are unknown.

    Connectors of dedicated mode have the same names in every flow, as in MirrorMaker 2, so that
    the flow follows unless the connector's name contains it.
    """

    connector: str = ""
    task: int | None = None
    flow: str = ""

    def __str__(self) -> str:
        """What a line begins with; empty if it is about no connector and no flow."""
        part = "worker" if self.task is None else f"task-{self.task}"
        begin = f"[{self.connector}|{part}] " if self.connector else ""
        is_flow_known = not self.flow or self.flow in self.connector
        return begin if is_flow_known else f"{begin}{self.flow}: "

    @property
    def of_connector(self) -> LogPlace:
        """The same without the task: of what its tasks share."""
        return replace(self, task=None)


NOWHERE = LogPlace()
_here: ContextVar[LogPlace] = ContextVar("log place", default=NOWHERE)


def current_place() -> LogPlace:
    """What this thread works for."""
    return _here.get()


def enter_place(place: LogPlace) -> None:
    """From now on, this thread works for `place`: for threads that end with their work."""
    _here.set(place)


@contextmanager
def at_place(place: LogPlace) -> Iterator[None]:
    """Lines of this thread are about `place`."""
    token = _here.set(place)
    try:
        yield
    finally:
        _here.reset(token)


def carried(run: Callable[[], None]) -> Callable[[], None]:
    """`run` for a new thread, which works for the same connector and task as the caller."""
    place = current_place()

    def run_at_place() -> None:
        enter_place(place)
        run()

    return run_at_place


def place_of(name: str, settings: Mapping[str, str | None], task: int | None = None) -> LogPlace:
    """The place of a connector, or of one of its tasks, with these settings."""
    aliases = settings.get(SOURCE_ALIAS) or "", settings.get(TARGET_ALIAS) or ""
    is_known = all(aliases) and not any(_REFERENCE in alias for alias in aliases)
    return LogPlace(name, task, ARROW.join(aliases) if is_known else "")


def place_of_label(label: str, here: LogPlace = NOWHERE) -> LogPlace | None:
    """What a label names that code puts before its text; None if that is no connector or flow.

    Labels are "flow", "flow|connector", "flow|connector-0", and in a connector's own threads
    "connector" and "connector-0".
    """
    before, bar, after = _JOB.sub("", label).partition("|")
    flow, name = (before, after) if bar and ARROW in before else ("", label)
    if (own := _own_place(name, here)) is not None:
        return replace(own, flow=flow or own.flow)
    if flow:
        found = _TASK_OF.fullmatch(name)
        return (
            LogPlace(found["name"], int(found["task"]), flow)
            if found
            else LogPlace(name, None, flow)
        )
    if ARROW in label and " " not in label:
        return replace(here, flow=label) if here.flow in ("", label) else LogPlace(flow=label)
    return None


def _own_place(name: str, here: LogPlace) -> LogPlace | None:
    """What `name` is of the connector that this thread works for; None if it is another's."""
    if not here.connector or not name.startswith(here.connector):
        return None
    rest = name[len(here.connector) :]
    # "x groups" is the thread of connector x that looks for groups.
    if not rest or rest.startswith(" "):
        return here
    number = re.fullmatch(r"-([0-9]+)", rest)
    return replace(here, task=int(number[1])) if number else None
