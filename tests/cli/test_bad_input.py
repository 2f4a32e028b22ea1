"""Every bad input ends with one clear line, the right exit code, and nothing created anywhere."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from sparkmirror.embedded import KafkaCluster
from tests.clusters import create_topic, unique_name

pytestmark = pytest.mark.kafka

CONFIGURATION = 2
UNREACHABLE = 1
SECONDS = 60.0
TOPIC = unique_name("bad-input")


@pytest.fixture(scope="module")
def clusters(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster
) -> tuple[KafkaCluster, KafkaCluster]:
    """A source with a topic to copy, so that a run which begins would leave something."""
    create_topic(source_cluster, TOPIC)
    return source_cluster, target_cluster


@pytest.fixture
def nothing_is_created(clusters: tuple[KafkaCluster, KafkaCluster]) -> Iterator[None]:
    """Compares the topics of both clusters before and after."""
    before = [list_topics(cluster) for cluster in clusters]
    yield
    assert [list_topics(cluster) for cluster in clusters] == before


def list_topics(cluster: KafkaCluster) -> set[str]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    # Kafka's own: a broker makes its offsets topic when the first group asks for a coordinator.
    found = admin.list_topics(timeout=30).topics
    return {name for name in found if not name.startswith("__")}


def good_keys(clusters: tuple[KafkaCluster, KafkaCluster]) -> dict[str, str]:
    source, target = clusters
    return {
        "clusters": "a, b",
        "a.bootstrap.servers": source.bootstrap_servers,
        "b.bootstrap.servers": target.bootstrap_servers,
        "a->b.enabled": "true",
        "a->b.topics": TOPIC,
        "replication.factor": "1",
        **{f"{each}.storage.replication.factor": "1" for each in ("config", "offset", "status")},
    }


def write(path: Path, keys: Mapping[str, str | None]) -> Path:
    lines = [f"{key} = {value}\n" for key, value in keys.items() if value is not None]
    path.write_text("".join(lines))
    return path


def run(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sparkmirror.cli.main", "run", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def errors_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that say what is wrong; anything but them and the log is a failure of the test."""
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return [
        line.removeprefix("sparkmirror: ")
        for line in done.stderr.splitlines()
        if line.startswith("sparkmirror: ")
    ]


@pytest.mark.usefixtures("nothing_is_created")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(
            {"a->c.enabled": "true"},
            ["a->c.enabled=true: clusters does not name 'c'; add it to clusters"],
            id="unknown alias",
        ),
        pytest.param(
            {"a->b.enabled": "false"},
            ["No source->target replication flows", "for example a->b.enabled=true"],
            id="no flows",
        ),
        pytest.param(
            {"a->b.topics": "orders("},
            ["a->b.topics=orders(: a ( is not closed", "correct the expression"],
            id="bad regex",
        ),
        pytest.param(
            {"replication.policy.class": "com.example.Policy"},
            ["replication.policy.class=com.example.Policy: unknown class", "use one of"],
            id="unknown policy class",
        ),
        pytest.param(
            {"tasks.max": "many"},
            ["tasks.max=many: not a number", "use a whole number"],
            id="wrong type",
        ),
        pytest.param(
            {"clusters": None},
            ["clusters: is required and not set", "comma-separated list"],
            id="no clusters",
        ),
        pytest.param(
            {"a.bootstrap.servers": "localhost"},
            ["a.bootstrap.servers=localhost: ", "is not host:port; write localhost:9092"],
            id="address without a port",
        ),
        pytest.param(
            {"a.bootstrap.servers": "localhost:99999"},
            ["a.bootstrap.servers=localhost:99999: ", "use a port from 1 to 65535"],
            id="no such port",
        ),
        pytest.param(
            {"a.bootstrap.servers": None},
            ["a.bootstrap.servers: cluster 'a' has no broker address; set it to host:port"],
            id="no address",
        ),
    ],
)
def test_setting_that_cannot_be_used_is_named_with_its_remedy(
    clusters: tuple[KafkaCluster, KafkaCluster],
    tmp_path: Path,
    changes: dict[str, str | None],
    said: list[str],
) -> None:
    file = write(tmp_path / "mm2.properties", {**good_keys(clusters), **changes})
    done = run(file)
    lines = errors_of(done)
    assert done.returncode == CONFIGURATION, done.stderr
    assert all(line.startswith(f"{file}: ") for line in lines)
    assert [text for text in said if text not in lines[0]] == [], lines


@pytest.mark.usefixtures("nothing_is_created")
def test_a_java_home_without_java_is_reported_before_anything_is_created(
    clusters: tuple[KafkaCluster, KafkaCluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = run(write(tmp_path / "mm2.properties", good_keys(clusters)))
    assert done.returncode == UNREACHABLE
    (line,) = errors_of(done)
    assert line.startswith(f"JAVA_HOME is {tmp_path} but has no bin/java: install a Java 17")


@pytest.mark.usefixtures("nothing_is_created")
def test_several_errors_are_listed_at_once(
    clusters: tuple[KafkaCluster, KafkaCluster], tmp_path: Path
) -> None:
    wrong = {
        "tasks.max": "0",
        "a->b.topics": "orders(",
        "b.bootstrap.servers": "here",
        "refresh.topics.interval.seconds": "soon",
    }
    done = run(write(tmp_path / "mm2.properties", {**good_keys(clusters), **wrong}))
    lines = errors_of(done)
    assert done.returncode == CONFIGURATION
    assert len(lines) == len(wrong)
    assert all(any(f"{key}={value}: " in line for line in lines) for key, value in wrong.items())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "the file sets no keys", id="empty"),
        pytest.param(b"# only a comment\n\n", "the file sets no keys", id="comment"),
        pytest.param(b"PK\x03\x04\x00\x00\x08", "not a text file", id="binary"),
        pytest.param(b"clusters = \\u00zz\n", "malformed escape", id="escape"),
        pytest.param(
            b"clusters = a\ntasks.max = 1\nclusters = b\n",
            "clusters: set more than once, on lines 1 and 3; keep one of them",
            id="duplicate key",
        ),
    ],
)
def test_file_that_cannot_be_read_is_named_with_its_remedy(
    tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_bytes(content)
    done = run(file)
    [line] = errors_of(done)
    assert done.returncode == CONFIGURATION
    assert line.startswith(f"{file}: {said}")
    assert "; " in line


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("missing.properties", "no such file; check the path", id="missing"),
        pytest.param(".", "this is a directory; name a .properties file in it", id="directory"),
    ],
)
def test_path_without_a_file_is_named(tmp_path: Path, name: str, said: str) -> None:
    done = run(tmp_path / name)
    assert errors_of(done) == [f"{tmp_path / name}: {said}"]
    assert done.returncode == CONFIGURATION


@pytest.mark.usefixtures("nothing_is_created")
def test_requested_cluster_must_be_in_the_file(
    clusters: tuple[KafkaCluster, KafkaCluster], tmp_path: Path
) -> None:
    done = run(write(tmp_path / "mm2.properties", good_keys(clusters)), "--clusters", "c")
    assert done.returncode == CONFIGURATION
    assert "--clusters=c: no cluster 'c' in the file; use one of a, b" in errors_of(done)[0]


@pytest.mark.usefixtures("nothing_is_created")
@pytest.mark.parametrize("wrong", [("a",), ("b",), ("a", "b")], ids="+".join)
def test_every_cluster_that_cannot_be_reached_is_named(
    clusters: tuple[KafkaCluster, KafkaCluster], tmp_path: Path, wrong: tuple[str, ...]
) -> None:
    # Bound but not listening: connections are refused, and no other process can take the port.
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        changes = {f"{alias}.bootstrap.servers": address for alias in wrong}
        done = run(write(tmp_path / "mm2.properties", {**good_keys(clusters), **changes}))
    assert done.returncode == UNREACHABLE, done.stderr
    assert errors_of(done) == [
        f"cluster '{alias}' cannot be reached ({address}: Connection refused); "
        f"check {alias}.bootstrap.servers and that its brokers are up"
        for alias in wrong
    ]


@pytest.mark.usefixtures("nothing_is_created")
def test_address_that_accepts_and_never_responds_times_out(
    clusters: tuple[KafkaCluster, KafkaCluster], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        changes = {"b.bootstrap.servers": address, "admin.timeout.ms": "5000"}
        done = run(write(tmp_path / "mm2.properties", {**good_keys(clusters), **changes}))
    assert done.returncode == UNREACHABLE, done.stderr
    [line] = errors_of(done)
    assert line.startswith(f"cluster 'b' cannot be reached ({address}: the port is open, but")
    assert "check b.bootstrap.servers and b.security.protocol" in line


@pytest.mark.usefixtures("nothing_is_created")
@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        pytest.param(
            {"spark.master": "mesos://h:5050"},
            CONFIGURATION,
            "spark.master=mesos://h:5050: Spark does not know this kind of cluster; use local[N]",
            id="no such kind of cluster",
        ),
        pytest.param(
            {"spark.master": "spark://127.0.0.1:1"},
            UNREACHABLE,
            "reach Spark's master spark://127.0.0.1:1: ",
            id="no master there",
        ),
        pytest.param(
            {"spark.sparkmirror.link.port": "http"},
            CONFIGURATION,
            "spark.sparkmirror.link.port=http: not a port; use 0 to 65535",
            id="no such port for tasks",
        ),
        pytest.param(
            {"spark.driver.memory": "much"},
            UNREACHABLE,
            "start Spark's JVM: ",
            id="not a size",
        ),
    ],
)
def test_spark_that_cannot_start_is_named(
    clusters: tuple[KafkaCluster, KafkaCluster],
    tmp_path: Path,
    changes: dict[str, str],
    code: int,
    said: str,
) -> None:
    done = run(write(tmp_path / "mm2.properties", {**good_keys(clusters), **changes}))
    [line] = errors_of(done)
    assert line.startswith(said)
    assert done.returncode == code
