"""Messages about records and partitions: what waits, what was lost, what is left out."""

from __future__ import annotations

from sparkmirror.logs.message_types import Message, MessageLine, message

MESSAGES = (
    message(
        "mirror.positions.starts",
        "<n> partitions: <n resume at their stored positions, ...>",
        "how the partitions of a flow begin, at the start and when topics are added",
        "after a hand-over, none should start afresh: "
        "[migrating-from-mm2.md](migrating-from-mm2.md#hand-over)",
    ),
    Message(
        (
            MessageLine("<partition> waits: <reason>", "spark.copy.partition_problems"),
            MessageLine(
                "<n> more partitions wait: <names>: <reason>", "spark.copy.partition_problems"
            ),
        ),
        "the source or target partition is unavailable. Nothing is lost; requests are repeated "
        "without limit. `NOT_ENOUGH_REPLICAS`: brokers of the target are down. "
        "`LEADER_NOT_AVAILABLE`: brokers of that cluster are down or just started. "
        "`UNKNOWN_TOPIC_OR_PARTITION`: the topic does not exist there; a missing target topic is "
        "recreated within seconds",
        "bring the named cluster's brokers back; copying then continues by itself",
    ),
    message(
        "wire.produce.broker_queues",
        "no broker leads the partition now: the topic is new, or its brokers are down",
        "the reason why a partition waits, after some seconds",
        "start the brokers that have the partition's replicas",
    ),
    message(
        "spark.copy.partition_problems",
        "<n> partitions no longer wait, after up to <n> s",
        "they are copied again",
        "nothing",
    ),
    message(
        "spark.copy.damage",
        "fetch <partition> from <offset> on '<alias>': <damage>",
        "a batch is damaged on the leader's disk. After some attempts the line ends with `FAILED`, "
        "and the partition waits at that offset while the others continue",
        "let a replica lead that is intact: the copy continues within 15 s. Or set "
        "`errors.tolerance=all` to skip and count the batch",
    ),
    message(
        "spark.copy.damage",
        "<partition> on '<alias>' can be read again",
        "a replica leads that is intact",
        "nothing",
    ),
    message(
        "spark.copy.copy_partition",
        "position <n> is outside the log (<start> to <end>)",
        "with `were deleted by retention` those records are lost: the source deleted them before "
        "they were copied. With `truncated or recreated` the source has fewer records than were "
        "copied",
        "raise the retention on the source, or keep the mirror running",
    ),
    message(
        "spark.copy.copy_partition",
        "<partition> has no stored position and auto.offset.reset=none forbids choosing one",
        "the task fails rather than choose where to begin",
        "set `auto.offset.reset` to `earliest` or `latest`",
    ),
    Message(
        (
            MessageLine(
                "<partition> on '<alias>' was truncated by an unclean leader election: source "
                "offsets <n> to <n>",
                "spark.copy.log_changes",
            ),
            MessageLine(
                "<the same>. Copying continues at source offset <n>", "spark.copy.log_changes"
            ),
        ),
        "the source's brokers lost these records, the target has them; the records that replaced "
        "them on the source are copied after them. With `auto.offset.reset=none` the task fails "
        "instead",
        "set `unclean.leader.election.enable=false` on the source if it must not lose records",
    ),
    message(
        "spark.copy.log_changes",
        "<partition> on '<alias>' was deleted and recreated: copying starts over",
        "the new topic is copied from its start; the target also keeps the records of the old one",
        "nothing, if the topic was meant to be recreated",
    ),
    message(
        "spark.copy.rejections",
        "offsets <n> to <n> of <partition> (<n> records, <n> bytes): <error>",
        "the target rejects the records. `MESSAGE_TOO_LARGE`: its limit is below the source's",
        "raise `max.message.bytes` of the target topic, or set `errors.tolerance=all`",
    ),
    Message(
        (
            MessageLine(
                "skipped, because errors.tolerance=all: <records>",
                "spark.copy.rejections",
            ),
            MessageLine(
                "skipped, because errors.tolerance=all: offsets <n> to <n> of <partition>",
                "spark.copy.damage",
            ),
        ),
        "the target does not get these records: it rejected them, or they are damaged on the "
        "source. They are counted as `SKIPPED`",
        "remove the cause, or set `errors.tolerance=none` if no record may be missing",
    ),
    message(
        "spark.offsets.offset_committer",
        "stopping with <n> bytes not acknowledged",
        "the target has not confirmed the last records in time",
        "nothing: the next start copies them again",
    ),
    message(
        "spark.offsets.offset_committer",
        "stopping before all positions were stored",
        "the cluster with the positions did not respond in time",
        "nothing: the next start copies those records again",
    ),
    message(
        "spark.offsets.offset_committer",
        "stopping before all offset syncs were stored",
        "groups are translated a little less exactly until the next start has copied more",
        "nothing",
    ),
)
