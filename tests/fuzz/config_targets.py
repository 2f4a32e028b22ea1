"""What people write: properties files, settings, regular expressions, placeholders."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from sparkmirror.config.connector_file import parse_connector
from sparkmirror.config.findings import Findings
from sparkmirror.config.keys import BadValue
from sparkmirror.config.mm2 import load_mm2
from sparkmirror.config.properties import load_properties
from sparkmirror.config.providers import resolve
from sparkmirror.config.regexes import compile_patterns
from sparkmirror.config.validation import validate_connector
from sparkmirror.config.worker_file import WorkerFile, load_worker
from sparkmirror.errors import MirrorError
from tests.config.worker_files import worker_file
from tests.fuzz.target import Choices, Target

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
CONNECTOR = """\
name=a->b.source
connector.class=org.apache.kafka.connect.mirror.MirrorSourceConnector
source.cluster.alias=a
target.cluster.alias=b
source.cluster.bootstrap.servers=one:9092
target.cluster.bootstrap.servers=two:9092
topics=orders.*,payments
config.property.exclude=follower\\.replication\\.throttled\\.replicas
offset.lag.max=100
replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy
refresh.topics.interval.seconds=600
producer.override.linger.ms=5
tasks.max=3
transforms=route
"""


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


# -- settings of a connector ----------------------------------------------------------------------


def run_settings(data: bytes) -> None:
    """Settings as they come by REST: key=value a line, without a value for null."""
    settings: dict[str, str | None] = {}
    for line in data.decode(errors="replace").split("\n"):
        key, found, value = line.partition("=")
        settings[key] = value if found else None
    if not _WORKERS:
        _WORKERS.append(worker_file())
    for read in (_validated, parse_connector):
        try:
            read(settings, _WORKERS[0])
        except MirrorError as error:
            assert str(error)  # noqa: PT017


def _validated(settings: dict[str, str | None], worker: WorkerFile) -> None:
    rows = validate_connector(settings.get("connector.class"), settings, worker)
    assert isinstance(rows["error_count"], int)


def settings_seeds() -> Iterator[bytes]:
    yield CONNECTOR.encode()
    for kind in ("Checkpoint", "Heartbeat"):
        yield CONNECTOR.replace("MirrorSource", f"Mirror{kind}").encode()


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
    Target("settings", run_settings, settings_seeds),
    Target("patterns", run_patterns, patterns_seeds),
    Target("placeholders", run_placeholders, placeholders_seeds),
)
