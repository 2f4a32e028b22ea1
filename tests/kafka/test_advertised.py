"""A broker that tells its clients to come to an address where nobody listens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.cli import main as cli
from sparkmirror.embedded.kafka_cluster import KafkaCluster
from sparkmirror.embedded.ports import ReservedPort

pytestmark = pytest.mark.kafka

AWAY = "AWAY"


@pytest.fixture(scope="module")
def closed_port() -> Iterator[int]:
    with ReservedPort(None) as port:
        yield port.number


@pytest.fixture(scope="module")
def cluster(closed_port: int) -> Iterator[KafkaCluster]:
    listeners, advertised = {AWAY: "PLAINTEXT"}, {AWAY: closed_port}
    with KafkaCluster("advertised", listeners=listeners, advertised_ports=advertised) as cluster:
        yield cluster


@pytest.fixture
def file(cluster: KafkaCluster, tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(
        f"clusters=a,b\na.bootstrap.servers={cluster.servers_of(AWAY)}\n"
        f"b.bootstrap.servers={cluster.bootstrap_servers}\na->b.enabled=true\na->b.topics=t\n"
    )
    return path


def told(cluster: KafkaCluster, closed_port: int) -> str:
    return (
        f"cluster 'a': {cluster.servers_of(AWAY)} responds, but the advertised address "
        f"127.0.0.1:{closed_port} of broker 1 (Connection refused) cannot be reached from here; "
        "set advertised.listeners of the brokers to addresses that this machine can reach and "
        "resolve"
    )


def test_run_names_the_address_and_the_broker_setting(
    cluster: KafkaCluster, closed_port: int, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", str(file)])
    assert ended.value.code != 0
    # Once, although three connectors of the flow use the cluster.
    assert capsys.readouterr().err.count(told(cluster, closed_port)) == 1


def test_check_tells_it_from_the_login_and_asks_about_no_rights(
    cluster: KafkaCluster, closed_port: int, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", str(file)])
    out = capsys.readouterr().out
    assert ended.value.code == 1
    (brokers,) = [line for line in out.splitlines() if "advertised" in line]
    assert brokers.split()[:2] == ["brokers", "NO"]
    assert told(cluster, closed_port) in brokers
    about_a = out.partition("cluster 'b'")[0]
    assert "authenticated  yes" in about_a
    assert "?: no connection" not in out
    (unchecked,) = [line for line in out.splitlines() if "were not checked" in line]
    assert "permissions on cluster 'a' were not checked" in unchecked
