"""The keys of Kafka's admin client, consumer and producer, as far as a mirror has them.

Kafka's names and defaults. Keys that cannot apply to forwarding whole record batches are accepted,
so that files need no change, and explained once when they are set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sparkmirror.config.config_def import BadValue, Definition, Importance, Key, KeySupport, Type
from sparkmirror.config.keys.durations import parse_duration_ms
from sparkmirror.config.keys.security_keys import SECURITY_KEYS

INT, LONG, STRING, LIST = Type.INT, Type.LONG, Type.STRING, Type.LIST
BOOLEAN, CLASS, DOUBLE = Type.BOOLEAN, Type.CLASS, Type.DOUBLE
MIB = 1024 * 1024
INT_MAX = 2**31 - 1
# Bounds the memory of a copy task: one fetch per source broker is held while it is produced.
FETCH_MAX_BYTES = 16 * MIB
# Begins at the first record that is younger than the duration (KIP-1106).
BY_DURATION = "by_duration:"
# The most that keeps the order of an idempotent producer (KAFKA-5494).
MAX_IN_FLIGHT = 5
# An optional listener name, a name, IPv4 or bracketed IPv6 address, and a port.
_ADDRESS = re.compile(
    r"(?:[0-9a-zA-Z\-._]+://)?(\[[0-9a-fA-F:.%]+\]|[0-9a-zA-Z\-._]+):([0-9]{1,5})"
)


def parse_addresses(items: Sequence[str]) -> tuple[str, ...]:
    """Each address as `host:port`. Raises BadValue for the first invalid one."""
    return tuple(parse_address(item) for item in items)


def parse_address(text: str) -> str:
    """`host:port` without a listener name. Raises BadValue."""
    found = _ADDRESS.fullmatch(text)
    if not found:
        raise BadValue(f"'{text}' is not host:port", f"write {_example(text)}")
    if not 0 < int(found[2]) < 65536:
        raise BadValue(f"'{text}' has no valid port", "use a port from 1 to 65535")
    return f"{found[1]}:{found[2]}"


def _example(text: str) -> str:
    plain_host = re.fullmatch(r"[0-9a-zA-Z\-._]+", text)
    return f"{text}:9092, with the port of the broker" if plain_host else "for example kafka1:9092"


def no_effect(reason: str, type_: Type, *names: str) -> tuple[Key, ...]:
    """Keys that are accepted and do nothing here, for one reason."""
    return tuple(
        Key(name=name, type=type_, default=None, doc="", status=KeySupport.EXPLAINED, reason=reason)
        for name in names
    )


def _auto_offset_reset(value: str) -> str:
    if value.startswith(BY_DURATION):
        parse_duration_ms(value.removeprefix(BY_DURATION))
    elif value not in ("earliest", "latest", "none"):
        raise BadValue(
            "not a starting point", f"use earliest, latest, {BY_DURATION}<duration> or none"
        )
    return value


def _acks(value: str) -> int:
    known = {"all": -1, "-1": -1, "1": 1, "0": 0}
    if value not in known:
        raise BadValue("not a number of acknowledgements", "use all, -1, 1 or 0")
    return known[value]


def _gzip_level(value: int) -> int:
    if value == 0 or value < -1:
        raise BadValue("out of range", "use a whole number from 1 to 9, or -1 for its default")
    return value


# codec, lowest, highest, default: KIP-390.
COMPRESSION_LEVELS = (("gzip", -1, 9, -1), ("lz4", 1, 17, 9), ("zstd", -131072, 22, 3))


def _level(codec: str, low: int, high: int, default: int) -> Key:
    return Key(
        name=f"compression.{codec}.level",
        type=INT,
        default=default,
        at_least=low,
        at_most=high,
        convert=_gzip_level if codec == "gzip" else None,
        doc=f"Compression level when `compression.type={codec}`: {low} to {high}. Batches that "
        "already have that codec stay unchanged.",
    )


def _number(name: str, type_: Type, default: Any, doc: str, at_least: int = 0, **more: Any) -> Key:
    return Key(name=name, type=type_, default=default, at_least=at_least, doc=doc, **more)


_METRICS = no_effect(
    "/metrics has the metrics of clients, of the last minute, and needs no reporters",
    STRING,
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "enable.metrics.push",
    "auto.include.jmx.reporter",
)
_CONNECTION = no_effect(
    "brokers are always found through bootstrap.servers and the addresses that these return",
    STRING,
    "client.dns.lookup",
    "metadata.recovery.strategy",
    "metadata.recovery.rebootstrap.trigger.ms",
    "bootstrap.resolve.timeout.ms",
)
_JAVA = no_effect(
    "it names Java classes, but no Java client runs here",
    LIST,
    "interceptor.classes",
    "security.providers",
)

COMMON_CLIENT_KEYS = Definition(
    Key(
        name="bootstrap.servers",
        type=LIST,
        default=(),
        importance=Importance.HIGH,
        convert=parse_addresses,
        doc="Brokers to contact first, as `host:port,host:port`; they return the addresses of the "
        "others.",
    ),
    Key(
        name="client.id",
        type=STRING,
        default="",
        importance=Importance.MEDIUM,
        doc="Prefix of the client ids that brokers log and use for quotas.",
    ),
    _number("request.timeout.ms", INT, 30000, "How long to wait for a response."),
    _number("metadata.max.age.ms", LONG, 300000, "How long cached cluster metadata is valid."),
    _number("reconnect.backoff.ms", LONG, 50, "First wait before reconnecting to a broker."),
    _number("reconnect.backoff.max.ms", LONG, 1000, "Longest such wait."),
    _number("retry.backoff.ms", LONG, 100, "First wait before retrying a failed request."),
    _number("retry.backoff.max.ms", LONG, 1000, "Longest such wait."),
    _number(
        "connections.max.idle.ms", LONG, 540000, "Close a connection after this idle time.", -1
    ),
    _number("socket.connection.setup.timeout.ms", LONG, 10000, "Time to open a connection."),
    _number("socket.connection.setup.timeout.max.ms", LONG, 30000, "Longest such time."),
    # A fixed size turns off the OS's own tuning, which allows more than Kafka's defaults.
    _number(
        "send.buffer.bytes",
        INT,
        -1,
        "Socket send buffer; -1 leaves it to the OS.",
        -1,
        kafka_default="131072",
    ),
    _number(
        "receive.buffer.bytes",
        INT,
        -1,
        "Socket receive buffer; -1 leaves it to the OS.",
        -1,
        kafka_default="65536 (producer: 32768)",
    ),
    *_METRICS,
    *_CONNECTION,
    *_JAVA,
    *SECURITY_KEYS,
)

_NO_GROUP = no_effect(
    "partitions are assigned to copy tasks, not by a consumer group",
    STRING,
    "group.id",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "partition.assignment.strategy",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "auto.commit.interval.ms",
    "internal.leave.group.on.close",
)
_NO_POLL = no_effect(
    "whole record batches are forwarded; fetch.max.bytes bounds what is read at once",
    STRING,
    "max.poll.records",
)
_NO_DESERIALIZER = no_effect(
    "records are forwarded byte for byte",
    CLASS,
    "key.deserializer",
    "value.deserializer",
)
_NO_CONSUMER_EFFECT = no_effect(
    "topics are chosen by topics and topics.exclude, and never created on the source",
    BOOLEAN,
    "exclude.internal.topics",
    "allow.auto.create.topics",
)

CONSUMER_KEYS = COMMON_CLIENT_KEYS + Definition(
    Key(
        name="client.rack",
        type=STRING,
        default="",
        doc="Rack of this machine: fetch from a replica in the same rack if the brokers allow it.",
    ),
    *no_effect(
        "a copy task retries until it is stopped",
        STRING,
        "default.api.timeout.ms",
    ),
    _number(
        "fetch.max.bytes",
        INT,
        FETCH_MAX_BYTES,
        "Most bytes to read from one broker at once; this bounds the memory of a copy task.",
        kafka_default="52428800",
    ),
    _number(
        "max.partition.fetch.bytes",
        INT,
        MIB,
        "Most bytes to read from one partition at once; a larger batch is still read.",
    ),
    _number("fetch.min.bytes", INT, 1, "A broker responds when it has this many bytes ..."),
    _number("fetch.max.wait.ms", INT, 500, "... or after this time."),
    Key(
        name="auto.offset.reset",
        type=STRING,
        default="earliest",
        convert=_auto_offset_reset,
        importance=Importance.MEDIUM,
        kafka_default="latest (MirrorMaker 2: earliest)",
        doc="Where a partition without a stored position begins: `earliest`, `latest`, "
        "`by_duration:PT6H` (an ISO 8601 duration: with records of the last six hours), or `none` "
        "to fail.",
    ),
    Key(
        name="isolation.level",
        type=STRING,
        default="read_uncommitted",
        one_of=("read_uncommitted", "read_committed"),
        importance=Importance.MEDIUM,
        doc="`read_committed` skips records of aborted and unfinished transactions.",
    ),
    Key(
        name="enable.auto.commit",
        type=BOOLEAN,
        default=False,
        status=KeySupport.EXPLAINED,
        reason="positions are stored in the offsets topic; MirrorMaker 2 forces false too",
        doc="",
    ),
    Key(
        name="check.crcs",
        type=BOOLEAN,
        default=True,
        status=KeySupport.EXPLAINED,
        reason="a batch's CRC is always checked",
        doc="",
    ),
    *_NO_GROUP,
    *_NO_POLL,
    *_NO_DESERIALIZER,
    *_NO_CONSUMER_EFFECT,
)

_NO_BATCHING = no_effect(
    "record batches are forwarded as in the source, not collected again",
    STRING,
    "batch.size",
    "linger.ms",
    "buffer.memory",
    "max.block.ms",
)
_NO_PARTITIONER = no_effect(
    "a record keeps its partition number",
    STRING,
    "partitioner.class",
    "partitioner.ignore.keys",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "partitioner.rack.aware",
    "client.rack",
)
_NO_SERIALIZER = no_effect(
    "records are forwarded byte for byte",
    CLASS,
    "key.serializer",
    "value.serializer",
)
_NO_PRODUCER_EFFECT = no_effect(
    "the copy task retries until delivery.timeout.ms and always numbers its batches, so a retry "
    "never writes one twice",
    STRING,
    "retries",
    "enable.idempotence",
    "metadata.max.idle.ms",
)
_NO_TRANSACTIONS = no_effect(
    "exactly once is set with exactly.once.source.support",
    STRING,
    "transactional.id",
    "transaction.timeout.ms",
    "transaction.two.phase.commit.enable",
)
_NO_API_TIMEOUT = no_effect(
    "producers have delivery.timeout.ms instead",
    STRING,
    "default.api.timeout.ms",
)

PRODUCER_KEYS = COMMON_CLIENT_KEYS + Definition(
    Key(
        name="acks",
        type=STRING,
        default=-1,
        shown_default="all",
        convert=_acks,
        doc="Which replicas must confirm a batch: `all` in sync, or `1`, the leader. `0` is "
        "treated as `1`, because positions may only cover confirmed records.",
    ),
    _number(
        "max.request.size",
        INT,
        None,
        "Largest batch and request to send. Unset: the limit of the target's topics.",
        kafka_default="1048576",
    ),
    Key(
        name="compression.type",
        type=STRING,
        default=None,
        one_of=("none", "gzip", "snappy", "lz4", "zstd"),
        kafka_default="none",
        doc="Recompress batches with this codec. Unset: batches keep their codec.",
    ),
    *(_level(*row) for row in COMPRESSION_LEVELS),
    Key(
        name="max.in.flight.requests.per.connection",
        type=INT,
        default=MAX_IN_FLIGHT,
        at_least=1,
        attribute="max_in_flight",
        kafka_default="5 (Connect: 1)",
        doc="Requests in flight to one broker; at most 5, which preserves the order.",
    ),
    _number(
        "delivery.timeout.ms",
        INT,
        INT_MAX,
        "How long the target may accept nothing for a partition before the copy task fails and "
        "restarts; at least request.timeout.ms. Heartbeats and checkpoints keep waiting.",
        kafka_default="120000 (Connect: 2147483647)",
    ),
    *_NO_BATCHING,
    *_NO_PARTITIONER,
    *_NO_SERIALIZER,
    *_NO_PRODUCER_EFFECT,
    *_NO_TRANSACTIONS,
    *_NO_API_TIMEOUT,
)

ADMIN_KEYS = COMMON_CLIENT_KEYS + Definition(
    _number(
        "default.api.timeout.ms",
        INT,
        60000,
        "Longest time for one call with all its retries; admin.timeout.ms may shorten it.",
    ),
    *no_effect("the admin client here retries until its timeout", STRING, "retries"),
    *no_effect("clients talk to brokers", LIST, "bootstrap.controllers"),
)
CLIENT_KEYS = {"consumer": CONSUMER_KEYS, "producer": PRODUCER_KEYS, "admin": ADMIN_KEYS}
