"""The files of the users, as they have them; addresses, ports and times are those of a test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

MIRROR = "org.apache.kafka.connect.mirror."
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
SAME_NAME_POLICY = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
# None is lost: none is to be missed, also if all stand still for some seconds.
PATIENT_GROUP = """
session.timeout.ms=30000
heartbeat.interval.ms=2000
"""
PATIENT_VARIABLES = {
    "CONNECT_SESSION_TIMEOUT_MS": "30000",
    "CONNECT_HEARTBEAT_INTERVAL_MS": "2000",
}

# A: the old spelling of `listeners`, and converters that no version knows any more.
CENTRAL_WORKER = """\
bootstrap.servers={bootstrap}
group.id=connect-cluster

key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
internal.key.converter=org.apache.kafka.connect.json.JsonConverter
internal.value.converter=org.apache.kafka.connect.json.JsonConverter
internal.key.converter.schemas.enable=false
internal.value.converter.schemas.enable=false

offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
offset.flush.interval.ms=10000

rest.port={port}
"""

# C: no file, but the list of a compose file, which leaves quotes in place; the worker's own cluster
# is the source.
QUICKSTART = {
    "CONNECT_BOOTSTRAP_SERVERS": "source:9092",
    "CONNECT_REST_PORT": "28082",
    "CONNECT_GROUP_ID": '"quickstart"',
    "CONNECT_CONFIG_STORAGE_TOPIC": "quickstart-config",
    "CONNECT_OFFSET_STORAGE_TOPIC": "quickstart-offsets",
    "CONNECT_STATUS_STORAGE_TOPIC": "quickstart-status",
    "CONNECT_CONFIG_STORAGE_REPLICATION_FACTOR": "1",
    "CONNECT_OFFSET_STORAGE_REPLICATION_FACTOR": "1",
    "CONNECT_STATUS_STORAGE_REPLICATION_FACTOR": "1",
    "CONNECT_KEY_CONVERTER": BYTES,
    "CONNECT_VALUE_CONVERTER": BYTES,
    "CONNECT_REST_ADVERTISED_HOST_NAME": '"localhost"',
    "CONNECT_PLUGIN_PATH": '"/usr/share/java"',
    "CONNECT_CONNECTOR_CLIENT_CONFIG_OVERRIDE_POLICY": "All",
}

# E: the second worker is started with the same file, so each takes a port that is free. Logins are
# added to it, see `login_lines`.
MANAGED_WORKER = """\
bootstrap.servers={bootstrap}
group.id=mm2-connect
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
offset.storage.topic=mm2-connect-offsets
offset.storage.replication.factor=2
config.storage.topic=mm2-connect-configs
config.storage.replication.factor=2
status.storage.topic=mm2-connect-status
status.storage.replication.factor=2
offset.flush.interval.ms=10000
listeners=http://127.0.0.1:0
"""


def write_worker(
    path: Path, text: str, bootstrap: str, port: int = 0, more: Mapping[str, str] | None = None
) -> Path:
    """A worker's file, of the cluster at `bootstrap`; `more` are further lines."""
    lines = "".join(f"{key}={value}\n" for key, value in (more or {}).items())
    path.write_text(text.format(bootstrap=bootstrap, port=port) + lines + PATIENT_GROUP, "ascii")
    return path


def quickstart(bootstrap: str, port: int) -> dict[str, str]:
    """C's variables, of the cluster at `bootstrap`."""
    own = {"CONNECT_BOOTSTRAP_SERVERS": bootstrap, "CONNECT_REST_PORT": str(port)}
    return {**QUICKSTART, **PATIENT_VARIABLES, **own}


def login_lines(login: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    """The same login for several clients: E has it everywhere."""
    return {f"{prefix}{key}": value for prefix in prefixes for key, value in login.items()}


def connector(
    kind: str, name: str, clusters: Mapping[str, str], **others: object
) -> dict[str, object]:
    """The flat settings of a connector; `clusters` are source and target: alias to address."""
    (source, source_servers), (target, target_servers) = clusters.items()
    return {
        "name": name,
        "connector.class": f"{MIRROR}Mirror{kind}Connector",
        "key.converter": BYTES,
        "value.converter": BYTES,
        "source.cluster.alias": source,
        "source.cluster.bootstrap.servers": source_servers,
        "target.cluster.alias": target,
        "target.cluster.bootstrap.servers": target_servers,
        **others,
    }


def write_central_files(folder: Path, source: str, target: str) -> None:
    """A: three files for the source cluster; booleans are JSON's."""
    clusters = {"source-0": source, "target-0": target}
    topics: dict[str, object] = {
        "topics": "test",
        "sync.topic.acls.enabled": False,
        "sync.topic.configs.enabled": False,
        "replication.factor": "1",
        "replication.policy.class": f"{MIRROR}IdentityReplicationPolicy",
        "tasks.max": "2",
    }
    kinds = {"cpc": ("Checkpoint", {}), "hbc": ("Heartbeat", {}), "msc": ("Source", topics)}
    for short, (kind, others) in kinds.items():
        name = f"mm2-{short}-source-0"
        settings = connector(kind, name, clusters, **others)
        (folder / f"{name}.json").write_text(json.dumps(settings, indent=2), "ascii")


def smallest(name: str, topics: str, source: str, target: str) -> dict[str, str]:
    """C: no more than this."""
    return {
        "connector.class": f"{MIRROR}MirrorSourceConnector",
        "name": name,
        "source.cluster.alias": "source",
        "topics": topics,
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "offset-syncs.topic.replication.factor": "1",
    }


def migration(
    clusters: Mapping[str, str],
    topic: str,
    tasks: int,
    *,
    sync_groups: bool,
    login: Mapping[str, str] | None = None,
) -> dict[str, dict[str, object]]:
    """D and E: the three connectors of a move, whose topics keep their names."""
    shared: dict[str, object] = {"replication.policy.class": SAME_NAME_POLICY}
    shared |= login_lines(login or {}, "source.cluster.", "target.cluster.")
    every_second = {
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.group.offsets.interval.seconds": "1",
    }
    own: dict[tuple[str, str], dict[str, object]] = {
        ("mm2-src", "Source"): {
            "topics": topic,
            "tasks.max": str(tasks),
            "replication.factor": "2",
            "offset-syncs.topic.replication.factor": "2",
            "sync.topic.acls.interval.seconds": "1",
        },
        ("mm2-chk", "Checkpoint"): {
            "checkpoints.topic.replication.factor": "2",
            "sync.group.offsets.enabled": str(sync_groups).lower(),
            **every_second,
        },
        ("mm2-hbt", "Heartbeat"): {"heartbeats.topic.replication.factor": "2"},
    }
    return {
        name: connector(kind, name, clusters, **shared, **settings)
        for (name, kind), settings in own.items()
    }
