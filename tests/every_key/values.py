"""A value for every key that is another one than its default."""

from __future__ import annotations

from sparkmirror.config.config_def import Key, Type

# Where a text of the type is not enough.
SPECIAL = {
    "access.control.allow.origin": "https://example.com",
    "admin.listeners": "http://127.0.0.1:1",
    "acks": "1",
    "auto.offset.reset": "latest",
    "bootstrap.servers": "elsewhere:9092",
    "compression.gzip.level": "3",
    "compression.lz4.level": "3",
    "config.property.filter.class": "my_mirror:Properties",
    "connector.class": "MirrorHeartbeatConnector",
    "connector.client.config.override.policy": "None",
    "delivery.timeout.ms": "120000",
    "forwarding.admin.class": "my_mirror:Forwarding",
    "group.filter.class": "my_mirror:Groups",
    "inter.worker.key.size": "256",
    "inter.worker.verification.algorithms": "HmacSHA256,HmacSHA512",
    "inter.worker.signature.algorithm": "HmacSHA512",
    "listeners": "http://127.0.0.1:1",
    "max.in.flight.requests.per.connection": "2",
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "response.http.headers.config": "set X-Frame-Options: DENY",
    "rest.extension.classes": (
        "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
    ),
    "sparkmirror.metrics.listeners": "http://127.0.0.1:1",
    "sparkmirror.metrics.otlp.endpoint": "http://127.0.0.1:1/v1/metrics",
    "topic.filter.class": "my_mirror:Topics",
}


def other_value(key: Key) -> str:
    """A value that the key takes and that is not its default."""
    if key.name in SPECIAL:
        return SPECIAL[key.name]
    if key.one_of:
        return next(choice for choice in key.one_of if choice != key.default)
    if key.type is Type.BOOLEAN:
        return str(not key.default).lower()
    if key.type in (Type.INT, Type.SHORT, Type.LONG):
        return _other_number(key)
    if key.type is Type.DOUBLE:
        return "0.5"
    return "changed"


def _other_number(key: Key) -> str:
    number = key.default + 1 if isinstance(key.default, int) else 7
    if key.at_most is not None and number > key.at_most:
        number = key.at_most - 1
    return str(number)


# What else must be set before another value of the key can show.
COMPANIONS = {
    "inter.worker.signature.algorithm": {
        "inter.worker.verification.algorithms": "HmacSHA256,HmacSHA512"
    },
    "connector.client.config.override.allowlist": {
        "connector.client.config.override.policy": "Allowlist"
    },
}
