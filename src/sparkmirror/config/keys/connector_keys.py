"""The keys of MirrorMaker 2's three connectors: names, types and defaults of Kafka 4.3.

COMMON_KEYS, SOURCE_KEYS, CHECKPOINT_KEYS and HEARTBEAT_KEYS are those of MirrorMaker 2's own
definitions; only these are read from the top level of an mm2 file. FRAMEWORK_KEYS are Kafka
Connect's for every source connector.
"""

from __future__ import annotations

from typing import Any

from sparkmirror.config.config_def import (
    Definition,
    Importance,
    Key,
    KeySupport,
    Type,
    positive_or_default,
)
from sparkmirror.config.keys import classes
from sparkmirror.config.keys.families import NO_CONVERSION, NO_CREATION, NO_JMX, NO_PREDICATES
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.config.patterns.java_regex import compile_patterns

HIGH, MEDIUM = Importance.HIGH, Importance.MEDIUM
BOOLEAN, STRING, LIST, CLASS = Type.BOOLEAN, Type.STRING, Type.LIST, Type.CLASS
INT, SHORT, LONG = Type.INT, Type.SHORT, Type.LONG
TOPICS_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", "__.*")
GROUPS_EXCLUDE = ("console-consumer-.*", "connect-.*", "__.*")
CONFIG_PROPERTIES_EXCLUDE = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
)
NO_PLUGINS = "there are no Java plugins to choose from"
NO_CONNECT_ERRORS = "it applies to conversions and transformations, which do not exist here"


def patterns(items: tuple[str, ...]) -> tuple[str, ...]:
    """The elements, unchanged, after checking that they are expressions. Raises BadValue."""
    compile_patterns(items)
    return items


def _flag(name: str, default: bool, doc: str) -> Key:
    return Key(name=name, type=BOOLEAN, default=default, doc=doc)


def _every(name: str, seconds: int, doc: str) -> Key:
    return Key(name=name, type=LONG, default=seconds, doc=doc)


def _replicas(name: str, type_: Type, default: int, doc: str, attribute: str = "") -> Key:
    return Key(
        name=name,
        type=type_,
        default=default,
        doc=doc,
        attribute=attribute,
        convert=positive_or_default,
    )


def _unused(name: str, type_: Type, default: Any, reason: str, **more: Any) -> Key:
    status = KeySupport.EXPLAINED
    return Key(name=name, type=type_, default=default, doc="", status=status, reason=reason, **more)


CONNECT_KEYS = Definition(
    Key(
        name="name",
        type=STRING,
        importance=HIGH,
        non_empty=True,
        doc="Name of the connector.",
        group="Common",
    ),
    Key(
        name="connector.class",
        type=STRING,
        importance=HIGH,
        doc="Which of the three connectors this is.",
        group="Common",
    ),
    _unused("connector.plugin.version", STRING, None, NO_PLUGINS, importance=MEDIUM),
    Key(
        name="tasks.max",
        type=INT,
        default=1,
        at_least=1,
        importance=HIGH,
        doc="Maximum number of tasks that share the partitions; each is a long-running Spark task.",
        group="Common",
    ),
    _unused("tasks.max.enforce", BOOLEAN, True, "never more tasks than tasks.max are started"),
    *(
        key
        for part in ("key", "value", "header")
        for key in (
            _unused(
                f"{part}.converter",
                CLASS,
                None,
                NO_CONVERSION,
                quiet=(classes.BYTE_ARRAY_CONVERTER,),
            ),
            _unused(f"{part}.converter.plugin.version", STRING, None, NO_PLUGINS),
        )
    ),
    Key(
        name="transforms",
        type=LIST,
        default=(),
        doc="Names of transformations for each record.",
        group="Transforms",
    ),
    _unused("predicates", LIST, (), NO_PREDICATES),
    _unused("config.action.reload", STRING, "restart", "secrets are read once, at the start"),
    _unused("errors.retry.timeout", LONG, 0, NO_CONNECT_ERRORS, importance=MEDIUM),
    _unused("errors.retry.delay.max.ms", LONG, 60000, NO_CONNECT_ERRORS, importance=MEDIUM),
    Key(
        name="errors.tolerance",
        type=STRING,
        default="none",
        one_of=("none", "all"),
        importance=MEDIUM,
        doc="What happens if the target rejects a record: `none` fails the task, `all` skips the "
        "record, counts it and logs its offset. `all` also skips a batch that is damaged on "
        "the source's disk; with `none` its partition stops there.",
        group="Error Handling",
    ),
    _unused(
        "errors.log.enable",
        BOOLEAN,
        False,
        "every skipped record is logged anyway",
        importance=MEDIUM,
    ),
    _unused(
        "errors.log.include.messages",
        BOOLEAN,
        False,
        "contents of records are never logged",
        importance=MEDIUM,
    ),
)

COMMON_KEYS = (
    CONNECT_KEYS
    + Definition(
        Key(
            name="enabled",
            type=BOOLEAN,
            default=True,
            doc="Whether the flow copies. In an mm2 file the default is false: write "
            "`A->B.enabled=true`.",
        ),
        Key(
            name="source.cluster.alias",
            type=STRING,
            importance=HIGH,
            non_empty=True,
            attribute="source_alias",
            doc="Alias of the source cluster; the prefix of remote topics.",
        ),
        Key(
            name="target.cluster.alias",
            type=STRING,
            default="target",
            importance=HIGH,
            attribute="target_alias",
            doc="Alias of the target cluster, used in names and to detect cycles.",
        ),
        Key(
            name="admin.timeout.ms",
            type=LONG,
            default=60000,
            doc="How long to wait for one step of topic creation or discovery.",
        ),
        Key(
            name="replication.policy.class",
            type=CLASS,
            default=classes.DEFAULT_POLICY,
            convert=classes.policy_class,
            attribute="policy_class",
            doc="How remote topics are named: `DefaultReplicationPolicy` puts the source alias in "
            "front, `IdentityReplicationPolicy` keeps the name; or a Python class "
            "`module:Class`.",
        ),
        Key(
            name="replication.policy.separator",
            type=STRING,
            default=".",
            attribute="separator",
            doc="Separator between alias and topic.",
        ),
        Key(
            name="replication.policy.internal.topic.separator.enabled",
            type=BOOLEAN,
            default=True,
            attribute="internal_separator_enabled",
            doc="Whether a configured separator is also used in the names of MirrorMaker 2's "
            "internal topics.",
        ),
        Key(
            name="forwarding.admin.class",
            type=CLASS,
            default=classes.FORWARDING_ADMIN,
            convert=classes.forwarding_admin_class,
            doc="What creates topics, partitions and ACLs and alters topic configs: Kafka's own "
            "requests; or a Python class `module:Class`.",
        ),
        _unused("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), NO_JMX),
        _unused(
            "config.providers",
            LIST,
            (),
            "placeholders are resolved by the config providers of the worker's file, or of the top "
            "level of an mm2 file",
        ),
    )
    + SECURITY_KEYS
)

_OFFSET_SYNCS_LOCATION = Key(
    name="offset-syncs.topic.location",
    type=STRING,
    default="source",
    one_of=("source", "target"),
    attribute="offset_syncs_location",
    doc="Cluster that has the offset-syncs topic; the source and the checkpoint connector of a "
    "flow must agree.",
)
_TOPICS = Key(
    name="topics",
    type=LIST,
    default=(".*",),
    importance=HIGH,
    convert=patterns,
    doc="Topics to copy: names and regular expressions, each for the whole name. Empty: none.",
)
_TOPICS_EXCLUDE = Key(
    name="topics.exclude",
    type=LIST,
    default=TOPICS_EXCLUDE,
    importance=HIGH,
    convert=patterns,
    doc="Topics not to copy; overrides `topics`.",
)
_TOPIC_FILTER = Key(
    name="topic.filter.class",
    type=CLASS,
    default=classes.DEFAULT_TOPIC_FILTER,
    convert=classes.topic_filter_class,
    doc="Class that evaluates `topics` and `topics.exclude`, or a Python class `module:Class`.",
)
_POLL_TIMEOUT = _unused(
    "consumer.poll.timeout.ms",
    LONG,
    1000,
    "brokers respond as soon as there are records; fetch.max.wait.ms limits their wait",
)
_METRIC_NAMES = _unused("metric.names.formats", LIST, ("legacy",), NO_JMX)

# The keys of the topic filter: a checkpoint connector reads them too.
TOPIC_FILTER_KEYS = Definition(_TOPICS, _TOPICS_EXCLUDE)

SOURCE_KEYS = TOPIC_FILTER_KEYS + Definition(
    Key(
        name="config.properties.exclude",
        type=LIST,
        default=CONFIG_PROPERTIES_EXCLUDE,
        importance=HIGH,
        convert=patterns,
        doc="Topic configs not to copy to remote topics: names and regular expressions.",
    ),
    _TOPIC_FILTER,
    Key(
        name="config.property.filter.class",
        type=CLASS,
        default=classes.DEFAULT_CONFIG_PROPERTY_FILTER,
        convert=classes.config_property_filter_class,
        doc="Class that evaluates `config.properties.exclude`, or a Python class `module:Class`.",
    ),
    _POLL_TIMEOUT,
    _flag("refresh.topics.enabled", True, "Whether to look for new topics and partitions."),
    _every("refresh.topics.interval.seconds", 600, "How often to look for them."),
    _flag("sync.topic.configs.enabled", True, "Whether to copy changed topic configs."),
    _every("sync.topic.configs.interval.seconds", 600, "How often to do so."),
    _flag("sync.topic.acls.enabled", True, "Whether to copy ACLs of topics."),
    _every("sync.topic.acls.interval.seconds", 600, "How often to do so."),
    _replicas("replication.factor", INT, 2, "Replicas of a new remote topic; -1: broker default."),
    _replicas(
        "offset-syncs.topic.replication.factor",
        SHORT,
        3,
        "Replicas of the offset-syncs topic.",
        "offset_syncs_replication_factor",
    ),
    Key(
        name="offset.lag.max",
        type=LONG,
        default=100,
        doc="How far a remote partition may run ahead of its last offset sync; 0: sync each batch.",
    ),
    _OFFSET_SYNCS_LOCATION,
    _flag("emit.offset-syncs.enabled", True, "Whether to write offset syncs."),
    _flag(
        "heartbeats.replication.enabled",
        True,
        "Copy heartbeats topics regardless of `topics`; false: only if `topics` has them.",
    ),
    _METRIC_NAMES,
)

CHECKPOINT_KEYS = Definition(
    Key(
        name="groups",
        type=LIST,
        default=(".*",),
        importance=HIGH,
        convert=patterns,
        doc="Consumer groups to translate: names and regular expressions.",
    ),
    Key(
        name="groups.exclude",
        type=LIST,
        default=GROUPS_EXCLUDE,
        importance=HIGH,
        convert=patterns,
        doc="Consumer groups not to translate; overrides `groups`.",
    ),
    Key(
        name="group.filter.class",
        type=CLASS,
        default=classes.DEFAULT_GROUP_FILTER,
        convert=classes.group_filter_class,
        doc="Class that evaluates `groups` and `groups.exclude`, or a Python class `module:Class`.",
    ),
    _TOPIC_FILTER,
    _POLL_TIMEOUT,
    _flag("refresh.groups.enabled", True, "Whether to look for new consumer groups."),
    _every("refresh.groups.interval.seconds", 600, "How often to look for them."),
    _flag("emit.checkpoints.enabled", True, "Whether to write checkpoints of consumer groups."),
    _every("emit.checkpoints.interval.seconds", 60, "How often to write them."),
    _flag(
        "sync.group.offsets.enabled",
        False,
        "Whether to commit translated offsets for groups that have no members on the target.",
    ),
    _every("sync.group.offsets.interval.seconds", 60, "How often to commit them."),
    _replicas("checkpoints.topic.replication.factor", SHORT, 3, "Replicas of that topic."),
    _OFFSET_SYNCS_LOCATION,
    _METRIC_NAMES,
)

HEARTBEAT_KEYS = Definition(
    _flag("emit.heartbeats.enabled", True, "Whether to write heartbeats to the target."),
    _every("emit.heartbeats.interval.seconds", 1, "How often to write one."),
    _replicas("heartbeats.topic.replication.factor", SHORT, 3, "Replicas of that topic."),
)

FRAMEWORK_KEYS = Definition(
    Key(
        name="use.defaults.from",
        type=STRING,
        default="target",
        doc="Which cluster's default applies to a topic config that the source topic does not set: "
        "`source` or `target`.",
    ),
    Key(
        name="exactly.once.support",
        type=STRING,
        default="requested",
        one_of=("requested", "required"),
        ignore_case=True,
        convert=str.lower,
        importance=MEDIUM,
        doc="`required` rejects a connector that cannot copy exactly once.",
    ),
    _unused("transaction.boundary", STRING, "poll", "there are no transactions", importance=MEDIUM),
    _unused("transaction.boundary.interval.ms", LONG, None, "there are no transactions"),
    Key(
        name="offsets.storage.topic",
        type=STRING,
        default=None,
        non_empty=True,
        doc="A separate topic for the positions of this connector, on the cluster that its records "
        "go to, created like the worker's `offset.storage.topic`. The worker's topic is still "
        "read for partitions without a position in this one, but not written.",
    ),
    _unused("topic.creation.groups", LIST, (), NO_CREATION),
)
MIRROR_KEYS = COMMON_KEYS + SOURCE_KEYS + CHECKPOINT_KEYS + HEARTBEAT_KEYS
