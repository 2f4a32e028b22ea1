"""Makes docs/configuration.md from the key tables.

Run as: python -m sparkmirror.config.docs [--check] [path]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sparkmirror.config.config_def import REQUIRED, Definition, Key, KeySupport
from sparkmirror.config.keys.client_keys import (
    ADMIN_KEYS,
    COMMON_CLIENT_KEYS,
    CONSUMER_KEYS,
    PRODUCER_KEYS,
)
from sparkmirror.config.keys.connector_keys import (
    CHECKPOINT_KEYS,
    COMMON_KEYS,
    FRAMEWORK_KEYS,
    HEARTBEAT_KEYS,
    SOURCE_KEYS,
)
from sparkmirror.config.keys.not_yet import ABSENT, NOT_YET, status_of
from sparkmirror.config.keys.security_keys import SECURITY_KEYS
from sparkmirror.config.mm2_keys import MM2_KEYS
from sparkmirror.config.worker.metrics_keys import METRICS_KEYS
from sparkmirror.config.worker.worker_file import WORKER_FILE_KEYS
from sparkmirror.config.worker_config import SHARED_KEYS, WORKER_KEYS

DEFAULT_PATH = Path("docs", "configuration.md")
COMMAND = "python -m sparkmirror.config.docs"


class Section(NamedTuple):
    """A heading, its text, and the keys it lists."""

    title: str
    text: str
    keys: Sequence[Key]


INTRODUCTION = f"""# Configuration

<!-- Made from the key tables by `{COMMAND}`. Do not edit. -->

sparkmirror reads the files of MirrorMaker 2 unchanged. This page lists every key it knows, with
Kafka's names and defaults; the last sections list the differences.

## The file

A Java `.properties` file: `key=value`, `key: value` or `key value`; `#` or `!` begins a comment
line; a backslash at the end of a line continues it. A key that is set twice is an error.

```properties
clusters = A, B
A.bootstrap.servers = a1:9092, a2:9092
B.bootstrap.servers = b1:9092
A->B.enabled = true
A->B.topics = orders, payments-.*
B.producer.compression.type = zstd
B.offset.flush.interval.ms = 10000
spark.master = local[2]
```

| where | what it is for |
|---|---|
| `key` | all flows: [connector keys](#all-connectors); all clusters: security keys |
| `A->B.key` | one flow: connector keys and [framework keys](#framework-keys) |
| `A->B.producer.override.key` | how records of one flow are written |
| `A.key` | one cluster: `bootstrap.servers` and [security keys](#security-keys) |
| `A.consumer.key` | how records are read from A: [consumer keys](#consumer-keys) |
| `B.producer.key` | how records are written to B: [producer keys](#producer-keys) |
| `B.key` | the workers of flows into B: [worker keys](#worker-keys) |
| `spark.key` | Spark, unchanged |

The more specific key wins: `A->B.key` over `key`, `A.consumer.key` over `A.key`, `A.key` over
`key`. The producer of the records reads `B.producer.X`, then `A->B.producer.override.X`.
Worker keys of the top level are read only if they begin with `offset.storage`, `config.storage`,
`status.storage`, `task`, `worker`, a converter or `replication.policy`. Keys that these rules
ignore, as MirrorMaker 2 does, get a warning with the spelling that works.

Lists of topics, groups and config properties are Java regular expressions for the whole name.
They are matched in linear time. Look-around, back references and possessive repeats are matched in
a separate process; a name that takes more than 2 s there is an error, shown in the connector's
status. For other rules write your own Python classes: [filters.md](filters.md).

## Config providers

A value may be stored elsewhere; write `${{provider:path:key}}`:

```properties
config.providers = file, dir, env
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.dir.class = org.apache.kafka.common.config.provider.DirectoryConfigProvider
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
A.bootstrap.servers = ${{file:/etc/mirror/a.properties:servers}}
B.bootstrap.servers = ${{env:B_SERVERS}}
B.client.id = ${{dir:/run/secrets:client-id}}
```

`config.providers.<name>.param.allowed.paths` limits the first two to some directories,
`config.providers.<name>.param.allowlist.pattern` the last to some variables. A missing file, key
or variable is an error; text with an unknown provider stays unchanged.

## The worker file

`sparkmirror worker connect-distributed.properties` reads the file of a Kafka Connect worker.
Connectors are sent to its REST API; theirs are the connector keys and framework keys below.

```properties
bootstrap.servers = b1:9092
group.id = connect-cluster
offset.storage.topic = connect-offsets
config.storage.topic = connect-configs
status.storage.topic = connect-status
listeners = http://:8083
spark.master = local[2]
```

| where | what it is for |
|---|---|
| `key` | the worker: [worker keys](#worker-keys), [keys of a worker file](#keys-of-a-worker-file) |
| `key` | its own cluster: [client keys](#client-keys), [security keys](#security-keys) |
| `producer.key` | how records are written: [producer keys](#producer-keys) |
| `config.providers.key` | config providers, for this file and for connectors |
| `spark.key` | Spark, unchanged |

The worker's producer writes the records: to the worker's `bootstrap.servers`, unless
`producer.bootstrap.servers` or a connector's `producer.override.bootstrap.servers` names another
cluster, regardless of `target.cluster.bootstrap.servers`. A warning reports when the two differ.
Values are read as in Java: quotes are part of the value.
"""


def _only(keys: Definition, without: Definition) -> tuple[Key, ...]:
    return tuple(key for key in keys if key.name not in without)


SECTIONS = (
    Section("Keys of the file", "At the top level.", tuple(MM2_KEYS)),
    Section(
        "All connectors",
        "At the top level or as `A->B.key`.",
        _only(COMMON_KEYS, SECURITY_KEYS + MM2_KEYS),
    ),
    Section("Source connector", "At the top level or as `A->B.key`.", tuple(SOURCE_KEYS)),
    Section(
        "Checkpoint connector",
        "At the top level or as `A->B.key`.",
        _only(CHECKPOINT_KEYS, SOURCE_KEYS),
    ),
    Section("Heartbeat connector", "At the top level or as `A->B.key`.", tuple(HEARTBEAT_KEYS)),
    Section(
        "Framework keys",
        "As `A->B.key` only. Accepted, without effect, each with a warning: `topic.creation.*`, "
        "`transforms.*`, `predicates.*`, and settings of converters such as "
        "`key.converter.schemas.enable`.",
        tuple(FRAMEWORK_KEYS),
    ),
    Section(
        "Worker keys",
        "In an mm2 file as `B.key`, where B is the target; in a worker file as `key`. Keys without "
        "effect here have none in an mm2 file either. Any other `offset.storage.X`, "
        "`config.storage.X` or `status.storage.X` sets X of that topic when it is created, for "
        "example `offset.storage.min.insync.replicas`; `cleanup.policy` is always `compact`.",
        tuple(WORKER_KEYS),
    ),
    Section(
        "Keys of a worker file",
        "Only in a worker file, beside the worker keys that have an effect. `consumer.*` and "
        "`admin.*`, which apply to sink connectors, `metrics.context.*` and "
        "`prometheus.metrics.reporter.*` have no effect.",
        _only(WORKER_FILE_KEYS, SHARED_KEYS + METRICS_KEYS),
    ),
    Section(
        "Metrics",
        "At the top level of an mm2 file, and in a worker file. [metrics.md](metrics.md) lists the "
        "metrics.",
        tuple(METRICS_KEYS),
    ),
    Section(
        "Client keys",
        "As `A.consumer.key`, `B.producer.key` or `A.admin.key`.",
        _only(COMMON_CLIENT_KEYS, SECURITY_KEYS),
    ),
    Section("Consumer keys", "As `A.consumer.key`.", _only(CONSUMER_KEYS, COMMON_CLIENT_KEYS)),
    Section(
        "Producer keys",
        "As `B.producer.key` or `A->B.producer.override.key`.",
        _only(PRODUCER_KEYS, COMMON_CLIENT_KEYS),
    ),
    Section("Admin keys", "As `A.admin.key`.", _only(ADMIN_KEYS, COMMON_CLIENT_KEYS)),
    Section(
        "Security keys",
        "At the top level, as `A.key`, or as `A.consumer.key`, `A.producer.key`, `A.admin.key`. "
        "[security.md](security.md) describes them and the permissions that users need.",
        tuple(SECURITY_KEYS),
    ),
)


def render_configuration() -> str:
    """The whole of docs/configuration.md."""
    parts = [INTRODUCTION, *(_section(section) for section in SECTIONS), _lacking(), _differences()]
    return "\n".join(parts)


def _section(section: Section) -> str:
    lines = [f"## {section.title}", "", section.text, ""]
    effective = [key for key in section.keys if key.status is not KeySupport.EXPLAINED]
    if effective:
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        lines += [_row(key) for key in effective]
        lines.append("")
    lines += _without_effect(section.keys)
    return "\n".join(lines)


def _row(key: Key) -> str:
    status, _ = status_of(key)
    note = " *Not in this version yet, see below.*" if status is KeySupport.NOT_YET else ""
    values = f" One of {', '.join(f'`{item}`' for item in key.one_of)}." if key.one_of else ""
    bound = "" if not key.at_least or key.at_least < 1 else f" At least {key.at_least}."
    text = _cell(f"{key.doc}{values}{bound}{note}")
    return f"| `{key.name}` | {key.type.lower()} | {_default(key)} | {text} |"


def _default(key: Key) -> str:
    if key.default is REQUIRED:
        return "**required**"
    if key.default is None:
        return "unset"
    if key.shown_default:
        return f"`{_cell(key.shown_default)}`"
    if isinstance(key.default, tuple):
        return ", ".join(f"`{_cell(item)}`" for item in key.default) or "empty"
    if isinstance(key.default, bool):
        return f"`{str(key.default).lower()}`"
    return f"`{_cell(str(key.default))}`" if key.default != "" else "empty"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _without_effect(keys: Sequence[Key]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for key in keys:
        if key.status is KeySupport.EXPLAINED:
            reasons.setdefault(key.reason, []).append(f"`{key.name}`")
    if not reasons:
        return []
    lines = [f"- {', '.join(names)}: {reason}." for reason, names in reasons.items()]
    return ["Accepted, without effect:", "", *lines, ""]


def _lacking() -> str:
    lines = ["## Not in this version yet", "", "| feature | instead |", "|---|---|"]
    lines += [f"| {absent.name} | {_cell(absent.instead)} |" for absent in ABSENT]
    lines += ["", "Settings that ask for one of them:", ""]
    lines += ["| key | what happens | |", "|---|---|---|"]
    for row in NOT_YET:
        how = "rejected" if row.refused else "a warning"
        lines.append(f"| `{row.key}` | {_cell(row.reason)} | {how} |")
    return "\n".join([*lines, ""])


def _differences() -> str:
    lines = ["## Defaults that differ from Kafka's", "", "| key | Kafka | here |", "|---|---|---|"]
    lines += [f"| `{key.name}` | {key.kafka_default} | {_default(key)} |" for key in _differing()]
    return "\n".join([*lines, ""])


def _differing() -> Iterator[Key]:
    return (key for section in SECTIONS for key in section.keys if key.kafka_default)


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with --check only compare; returns the exit code."""
    check = "--check" in arguments
    paths = [Path(item) for item in arguments if not item.startswith("--")]
    path = paths[0] if paths else DEFAULT_PATH
    text = render_configuration()
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "ascii")
        return 0
    if path.is_file() and path.read_text("ascii") == text:
        return 0
    sys.stderr.write(f"{path} does not match the key tables; run {COMMAND}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
