"""Messages about topics: which are copied, how they are created, what is not permitted."""

from __future__ import annotations

from sparkmirror.logs.message_types import Message, MessageLine, message

MESSAGES = (
    Message(
        (
            MessageLine(
                "nothing to copy: '<alias>' lists no topics for <principal>",
                "connect.denied_topics",
            ),
            MessageLine(
                "nothing to copy: of the topics that '<alias>' lists for <principal>, the topic",
                "connect.denied_topics",
            ),
        ),
        "the flow runs and has no topic. A topic that the user may not describe is not listed",
        "correct the patterns, or permit DESCRIBE on the topics",
    ),
    message(
        "connect.source.cycles",
        "not copied, because their names begin with an alias and so say that they are copies from "
        "'<target>' or '<source>' already: <topics>",
        "MirrorMaker 2 treats `target.x` on the source as a copy that came from `target`, to avoid "
        "mirroring in circles",
        "if it is an original topic, use another alias, another `replication.policy.separator`, or "
        "the Identity policy",
    ),
    message(
        "connect.source.mirror_source_connector",
        "not copied from '<alias>' any more: <topics>; deleted, or filtered out",
        "the topics are gone from the source, or the filter no longer accepts them; the target "
        "keeps its records",
        "correct the filter if they are to be copied",
    ),
    message(
        "connect.source.mirror_source_connector",
        "missing on the target: <topics>",
        "a task found no remote topic; it is created within seconds",
        "nothing, unless it repeats: then another program deletes topics of the target",
    ),
    message(
        "connect.source.remote_topics",
        "'<topic>' was created by the brokers of '<alias>' with their own number of replicas",
        "the target has fewer brokers than `replication.factor`, and creates topics by itself",
        "set `replication.factor` to at most the number of brokers",
    ),
    message(
        "connect.source.remote_topics",
        "the new partitions are not copied until it works",
        "the source topic has more partitions than the remote one, which cannot be grown; the line "
        "has the reason",
        "remove the reason, usually a missing permission, or add the partitions",
    ),
    message(
        "connect.source.accepted_settings",
        "'<alias>' does not accept <setting>=<value>, first met for topic '<topic>'",
        "the target is older than the source or forbids the setting; all other settings are copied",
        "nothing, or add the setting to `config.properties.exclude`",
    ),
    Message(
        (
            MessageLine("<user> lacks <permission> on <resource>", "wire.access"),
            MessageLine("<error>; to allow it: <command>", "errors"),
        ),
        "the cluster denied a request; the line says what does not work without the permission",
        "run that command, or turn off the feature that needs the permission: "
        "[security.md](security.md#permissions). `sparkmirror check FILE` lists all missing "
        "permissions at once",
    ),
    message(
        "connect.scheduler",
        "[<flow>] <job> failed: <error>",
        "a periodic job, such as looking for topics, failed; it is repeated at its interval, and "
        "logged again when the reason changes",
        "the line has the reason",
    ),
    message(
        "connect.storage.topic_admin",
        "'<topic>' on '<alias>' has <n> instead of <n> replicas: there are no more brokers",
        "an internal topic survives the loss of fewer brokers than usual",
        "set the key that the line names, or add replicas when there are more brokers",
    ),
    message(
        "connect.storage.compaction",
        "<topic>: set to <policy>",
        "an internal topic had another `cleanup.policy`, because brokers created it",
        "nothing: it is corrected",
    ),
    message(
        "connect.storage.config_records",
        "record '<key>' of the config topic is passed over: <reason>",
        "another program wrote it, or it is damaged; the rest of the topic counts",
        "use config, status and offset topics for nothing else",
    ),
    Message(
        (
            MessageLine(
                "record '<key>' of the status topic is passed over: <error>",
                "connect.storage.status_backing_store",
            ),
            MessageLine(
                "offset <n> of '<topic>' cannot be read and is skipped, as all later ones like it",
                "connect.checkpoint.offset_translator",
            ),
            MessageLine(
                "offset <n> of '<topic>' cannot be read and is skipped, as all later ones like "
                "it: <error>",
                "connect.checkpoint.checkpoint_topic",
            ),
            MessageLine(
                "skipped a checkpoint (offset <n>), and all like it: <error>",
                "tools.groups.offset_sync",
            ),
        ),
        "an internal topic has a record that is not MirrorMaker 2's or Connect's",
        "use these topics for nothing else",
    ),
    message(
        "connect.storage.kafka_based_log",
        "[<topic>] <error>; trying again",
        "an internal topic cannot be read now",
        "the line has the reason",
    ),
    message(
        "connect.storage.status_backing_store",
        "a status was not written: <error>",
        "`GET /connectors/<name>/status` may show an older state",
        "the line has the reason",
    ),
    message(
        "config.validation.connector_validation",
        "connector settings rejected: <hint>",
        "a client sent settings that cannot be used; the line says what the response may not",
        "correct the settings",
    ),
    message(
        "config.validation.connector_validation",
        "connector rejected: <reason>",
        "settings of a connector name a file, URL or module that the worker does not allow",
        "allow it in the worker's file, if the client may use it: [security.md](security.md)",
    ),
)
