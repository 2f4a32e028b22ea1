"""The line "Also": what is not as it should be, and needs nobody now.

Runs on: worker. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.monitoring.views.picture import Picture
from sparkmirror.monitoring.views.rows.common import Link
from sparkmirror.monitoring.views.rows.flow_rows import NoteRow
from sparkmirror.monitoring.views.rows.group_rows import GroupRow
from sparkmirror.monitoring.views.rows.partition_rows import UnmirroredRow
from sparkmirror.monitoring.views.unmirrored_view import BLOCKED
from sparkmirror.monitoring.views.wording.words import counted


def note_rows(
    picture: Picture,
    groups: Mapping[str, Sequence[GroupRow]],
    unmirrored: Mapping[str, Sequence[UnmirroredRow]],
) -> list[NoteRow]:
    """Of all flows."""
    found = []
    late = [row for rows in groups.values() for row in rows if row.state == "not synced"]
    late += [row for rows in groups.values() for row in rows if row.state == "partly synced"]
    if late:
        verb = "is" if len(late) == 1 else "are"
        link = Link("groups", {"open": f"{late[0].flow}/{late[0].group}"})
        found.append(
            NoteRow(f"{counted(len(late), 'group')} {verb} not synced", late[0].reason, link)
        )
    blocked = [row for rows in unmirrored.values() for row in rows if row.verdict == BLOCKED]
    if blocked:
        text = f"{counted(len(blocked), 'topic')} cannot be mirrored"
        found.append(NoteRow(text, blocked[0].reason, Link("topics", {"tab": "whynot"})))
    drift = [row for rows in picture.topics.values() for row in rows if row.differences]
    if drift:
        verb = "has" if len(drift) == 1 else "have"
        text = f"{counted(len(drift), 'topic')} {verb} other settings on the target"
        keys = ", ".join(each.key for each in drift[0].differences or ())
        why = f"`{drift[0].target_topic}`: {keys}"
        found.append(NoteRow(text, why, Link("topics", {"state": "drift"})))
    found += [
        NoteRow(f"`{row.name}` works only in part", row.note, Link("connectors", {"c": row.name}))
        for row in picture.connectors
        if row.note and row.state == "RUNNING" and row.tasks
    ]
    return found
