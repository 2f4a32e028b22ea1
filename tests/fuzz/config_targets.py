"""What people write: properties files, settings, regular expressions, placeholders."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import javaproperties

from sparkmirror.config.config_def import BadValue
from sparkmirror.config.connector_spec import parse_connector
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.files.providers import resolve
from sparkmirror.config.findings import Findings
from sparkmirror.config.keys.client_keys import CLIENT_KEYS
from sparkmirror.config.keys.connector_keys import CONNECT_KEYS, FRAMEWORK_KEYS, MIRROR_KEYS
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.config.validation.connector_validation import validate_connector
from sparkmirror.config.worker.worker_file import (
    WORKER_FILE_KEYS,
    WorkerFile,
    load_worker,
    load_worker_variables,
    parse_worker_file,
)
from sparkmirror.errors import MirrorError
from sparkmirror.tools.validate.validation import validate_file
from tests.config.worker_files import PATH, SMALLEST, worker_file
from tests.fuzz.target import Choices, Target
from tests.users.files import QUICKSTART

_FOLDER = tempfile.TemporaryDirectory(prefix="sparkmirror-fuzz-")
_FILE = Path(_FOLDER.name) / "fuzzed.properties"
_LOADERS: tuple[Callable[[Path], object], ...] = (load_properties, load_mm2, load_worker)
_WORKERS: list[WorkerFile] = []

MM2 = b"""\
# two clusters
clusters = a, b
a.bootstrap.servers = one:9092, two:9092
b.bootstrap.servers: three:9092
a->b.enabled=true
a->b.topics = orders.*, \\
   payments\\u002e.*
a->b.groups.exclude=console-.*
b.security.protocol = SASL_SSL
b.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="u" password="p\\"q";
replication.factor=3
sync.topic.acls.enabled = false
tasks.max 4
config.providers=env
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
b.ssl.truststore.password=${env:NO_SUCH_VARIABLE}
"""
WORKER = b"""\
bootstrap.servers=target-kafka:9092
group.id=connect-cluster
offset.storage.topic=connect-offsets
config.storage.topic=connect-configs
status.storage.topic=connect-status
listeners=http://:8083,https://:8443
rest.extension.classes=
producer.compression.type=lz4
"""
CONNECTOR: dict[str, str | None] = {
    "name": "a->b",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "one:9092",
    "target.cluster.bootstrap.servers": "two:9092",
}
DEDICATED = {
    "clusters": "a, b",
    "a.bootstrap.servers": "one:9092",
    "b.bootstrap.servers": "two:9092",
    "a->b.enabled": "true",
}
PREFIXES = (
    "", "source.cluster.", "target.cluster.", "source.consumer.", "target.producer.", "producer.",
    "consumer.override.", "a.", "b.", "a->b.", "a.consumer.", "admin.", "target.admin.",
    "listeners.https.", "sasl.", "spark.", "config.providers.",
)  # fmt: skip
_DEFINITIONS = (CONNECT_KEYS, MIRROR_KEYS, FRAMEWORK_KEYS, WORKER_FILE_KEYS, *CLIENT_KEYS.values())
KNOWN_KEYS = sorted({key.name for keys in _DEFINITIONS for key in keys})


# -- files ----------------------------------------------------------------------------------------


def run_properties(data: bytes) -> None:
    """A file of one of the kinds, read from disk."""
    choices = Choices(data)
    load = choices.pick(_LOADERS)
    _FILE.write_bytes(choices.rest())
    try:
        load(_FILE)
    except MirrorError as error:
        assert str(error)  # noqa: PT017  its text must not fail either


def properties_seeds() -> Iterator[bytes]:
    for number in range(len(_LOADERS)):
        for text in (MM2, WORKER, b"a\\\n  b = \\u00e4\r\n! no\n", b"k\\=ey\\ 1 : v\\\\\n"):
            yield bytes((number,)) + text


def run_validate(data: bytes) -> None:
    """A file that `sparkmirror validate` reads: whatever is in it, there is a report."""
    choices = Choices(data)
    path = choices.pick((_FILE, _FILE.with_suffix(".json")))
    path.write_bytes(choices.rest())
    text = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for problem in validate_file(path).problems:
        assert 0 <= problem.line <= text.count(b"\n") + 1
        assert problem.text


def validate_seeds() -> Iterator[bytes]:
    for text in (MM2, WORKER, b"a -> b.topics = x # y\na='b'\n"):
        yield b"\0" + text
    settings = json.dumps(CONNECTOR, indent=1).encode()
    yield b"\1" + settings
    yield b'\1{"name": "n", "config": ' + settings.replace(b'"name"', b'"connector.class"') + b"}"


# -- settings -------------------------------------------------------------------------------------


def run_settings(data: bytes) -> None:
    """A connector, a worker or a dedicated mirror with some random settings.

    Lines are key=value, or @, the number of a known key, that of a prefix, and the value; a line
    without a value is null.
    """
    choices = Choices(data)
    read = choices.pick(_READERS)
    settings: dict[str, str | None] = {}
    for line in choices.rest().split(b"\n"):
        key, value = _setting(line)
        settings[key] = value
    try:
        read(settings)
    except MirrorError as error:
        assert str(error)  # noqa: PT017


def _setting(line: bytes) -> tuple[str, str | None]:
    if line.startswith(b"@"):
        choices = Choices(line[1:])
        name = KNOWN_KEYS[choices.number(2) % len(KNOWN_KEYS)]
        return choices.pick(PREFIXES) + name, choices.rest().decode(errors="replace")
    key, found, value = line.decode(errors="replace").partition("=")
    return key, value if found else None


def _read_connector(kind: str, settings: dict[str, str | None]) -> None:
    given = {**CONNECTOR, "connector.class": f"Mirror{kind}Connector", **settings}
    if not _WORKERS:
        _WORKERS.append(worker_file())
    try:
        rows = validate_connector(given.get("connector.class"), given, _WORKERS[0])
    except MirrorError as error:
        assert str(error)  # noqa: PT017
    else:
        assert isinstance(rows["error_count"], int)
    parse_connector(given, _WORKERS[0])


def _read_worker(settings: dict[str, str | None]) -> None:
    parse_worker_file({**SMALLEST, **_without_nulls(settings)}, PATH)


def _read_mm2(settings: dict[str, str | None]) -> None:
    given = {**DEDICATED, **_without_nulls(settings)}
    _FILE.write_text(javaproperties.dumps(given, timestamp=False), encoding="ascii")
    load_mm2(_FILE)


def _without_nulls(settings: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if value is not None}


_READERS: tuple[Callable[[dict[str, str | None]], None], ...] = (
    functools.partial(_read_connector, "Source"),
    functools.partial(_read_connector, "Checkpoint"),
    functools.partial(_read_connector, "Heartbeat"),
    _read_worker,
    _read_mm2,
)


def settings_seeds() -> Iterator[bytes]:
    """Every key with a few values, for every reader."""
    values = (
        b"",
        b"5",
        b"true",
        b"a,b",
        b"x.Y",
        b"http://h:1",
        b"-1",
        b"SASL_SSL",
        b"1e3",
        b"none",
    )
    for reader in range(len(_READERS)):
        for first in range(0, len(KNOWN_KEYS), 8):
            lines = [
                b"@%b%c%b" % (number.to_bytes(2, "big"), reader + first // 8, value)
                for number in range(first, first + 8)
                for value in [values[(number + reader) % len(values)]]
            ]
            yield bytes((reader,)) + b"\n".join(lines)


# -- environment variables ------------------------------------------------------------------------


def run_variables(data: bytes) -> None:
    """An environment, NAME=value a line; a form feed in a value is a line break."""
    lines = [line.partition("=") for line in data.decode(errors="surrogateescape").split("\n")]
    environ = {name: value.replace("\f", "\n") for name, _, value in lines if name}
    try:
        load_worker_variables(environ)
    except MirrorError as error:
        assert str(error)  # noqa: PT017


def variables_seeds() -> Iterator[bytes]:
    yield "\n".join(f"{name}={value}" for name, value in QUICKSTART.items()).encode()
    yield b"BOOTSTRAP_SERVERS=k:1\nGROUP_ID=1\nOFFSET_STORAGE_TOPIC=o\nCONFIG_STORAGE_TOPIC=c"
    yield b"CONNECT_LOG4J_LOGGERS=a.b=DEBUG, INFO\nCONNECT_LOG4J_LOGGER_A_B=WARN\nLOG_LEVEL=OFF"
    yield b"CONNECT_A___B__C=\\u0041\f\nCONNECT_a___b__c=\\\nCONNECT_PORT=tcp://h:1\nKAFKA_OPTS='"


# -- regular expressions --------------------------------------------------------------------------


def run_patterns(data: bytes) -> None:
    """Java's regular expressions, one a line."""
    try:
        compiled = compile_patterns(data.decode(errors="replace").split("\n"))
    except BadValue as error:
        assert error.reason  # noqa: PT017
        return
    assert compiled is not None


def patterns_seeds() -> Iterator[bytes]:
    for text in (
        "orders.*\npayments-[0-9]{2,4}",
        r"(?i)a|b(?<name>c)\k<name>",
        r"\Qa.b\E[^\w\s\-&&]",
        r"\p{Alpha}\P{L}\x41\u0041\x{1F600}\h\V",
        "(?:a(?=b)(?!c)(?<=d)(?<!e)(?>f))++",
        "[]a]|[^]b]|[a-z|]",
    ):
        yield text.encode()


# -- placeholders ---------------------------------------------------------------------------------


class _Echo:
    """Knows every value but one."""

    def find(self, path: str, key: str) -> str:
        if key == "missing":
            raise BadValue("is missing", "add it")
        return f"<{path}|{key}>"


def run_placeholders(data: bytes) -> None:
    """Values with ${provider:path:key} in them."""
    findings = Findings()
    text = data.decode(errors="replace")
    values = resolve({"key": text}, {"p": _Echo(), "": _Echo()}, findings)
    assert isinstance(values["key"], str)
    if "${" not in text or "}" not in text:
        assert values["key"] == text


def placeholders_seeds() -> Iterator[bytes]:
    yield b"a ${p:path:key} b ${p:key} ${other:x} ${p:missing}"
    yield b"${${p:a}:b:c:d} ${::} ${p::key} ${p:path:} }${"


TARGETS = (
    Target("properties", run_properties, properties_seeds),
    Target("validate", run_validate, validate_seeds),
    Target("settings", run_settings, settings_seeds),
    Target("variables", run_variables, variables_seeds),
    Target("patterns", run_patterns, patterns_seeds),
    Target("placeholders", run_placeholders, placeholders_seeds),
)
