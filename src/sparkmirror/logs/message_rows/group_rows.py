"""Messages about consumer groups, their checkpoints and offsets on the target."""

from __future__ import annotations

from sparkmirror.logs.message_types import message

MESSAGES = (
    message(
        "connect.checkpoint.group_offset_sync",
        "offsets of group '<group>' on the target: <not written: reason>",
        "why the translated offsets of a group are not on the target; logged once for each reason",
        "the reason says whether there is something to do: a group with members on the target is "
        "left alone, for example",
    ),
    message(
        "connect.checkpoint.group_offset_sync",
        "group '<group>' has no offset any more on the target in <partitions>: written again",
        "another program deleted the group's offsets on the target",
        "nothing, if that was intended",
    ),
    message(
        "connect.checkpoint.group_discovery",
        "no groups to follow: <reason>",
        "checkpoints are made for no group",
        "correct `groups` and `groups.exclude`, or permit DESCRIBE on the groups",
    ),
    message(
        "connect.checkpoint.group_discovery",
        "<n> groups are left out, <reasons>",
        "their offsets cannot be read now; the next round tries again",
        "the line has the reason, for example a coordinator that is down",
    ),
    message(
        "connect.checkpoint.translation_reader",
        "may degrade offset translation: <error>",
        "the exact map of offsets cannot be read: groups are translated by MirrorMaker 2's rule "
        "and re-read more records after a failover",
        "remove the reason, usually a missing permission on `mm2-offset-map.<source>.internal`",
    ),
    message(
        "connect.checkpoint.offset_translator",
        "'<topic>' starts anew: earlier offset syncs do not count",
        "the topic of offset syncs was recreated",
        "nothing: groups are translated again as records are copied",
    ),
    message(
        "connect.dedicated.mirror_herder",
        "no heartbeats: <error>; retrying in <n> s",
        "the pair of clusters does not copy, and its heartbeats cannot start",
        "the line has the reason",
    ),
    message(
        "connect.legacy.legacy_group",
        "group '<group>' has no committed offsets on '<alias>': if MirrorMaker 1 has used it",
        "`sparkmirror legacy` begins where `auto.offset.reset` says",
        "check `group.id` and `bootstrap.servers` of the consumer's file",
    ),
    message(
        "connect.legacy.legacy_group",
        "another client has committed offsets for group '<group>', in <partitions>",
        "a MirrorMaker 1 or another consumer uses the same group",
        "stop it: records may be copied twice",
    ),
    message(
        "connect.checkpoint.offset_translator",
        "'<topic>' starts anew: earlier chunks do not count",
        "the topic of the exact offset map was recreated",
        "nothing: older records are translated by MirrorMaker 2's rule",
    ),
    message(
        "connect.checkpoint.mirror_checkpoint_task",
        "reads '<topic>' again: some were refused",
        "checkpoints were not written, so that it is not known which are there",
        "the line before it has the reason",
    ),
    message(
        "connect.legacy.legacy_group",
        "group '<group>' no longer has an offset for <partitions>; they resume at sparkmirror's "
        "stored positions",
        "the group's offsets have expired, or another program deleted them",
        "nothing, unless these partitions are to begin elsewhere: the line says how",
    ),
    message(
        "connect.legacy.legacy_group",
        "the last offsets were not committed for group '<group>': <error>",
        "the exit code is 1; MirrorMaker 1 would copy the records after the last commit again",
        "start and stop `sparkmirror legacy` once more before you go back to MirrorMaker 1",
    ),
)
