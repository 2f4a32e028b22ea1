"""`sparkmirror check`: what it finds, what it prints, how it ends; and that it changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkmirror.cli import main as cli
from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.embedded.ports import ReservedPort
from sparkmirror.mirror.permissions import EITHER, NEW_BROKERS, Operation
from sparkmirror.tools.check.check_report import CheckResult, Report
from sparkmirror.tools.check.checked_file import load_checked
from sparkmirror.tools.check.cluster_check import check_file
from sparkmirror.tools.check.required_permissions import (
    RequiredPermission,
    wanted_by_source,
    wanted_by_worker,
)
from sparkmirror.wire.principal import principal_of
from tests.permissions.guarded import Grant, Guarded, grants_of
from tests.permissions.worlds import World
from tests.secure_cluster import SecureCluster

pytestmark = pytest.mark.kafka

OK, MISSING, WRONG_FILE = 0, 1, 2
MIRROR = "org.apache.kafka.connect.mirror."


@pytest.fixture
def world(guarded: Guarded, tmp_path: Path) -> World:
    return World(tmp_path, guarded)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", *words])
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def denied(report: Report) -> set[Grant]:
    return {
        Grant(row.principal, permission) for row in report.permissions for permission in row.denied
    }


def test_it_finds_exactly_what_is_missing(world: World) -> None:
    is_there = world.remote(world.cut)
    world.delete("heartbeats")  # the one topic whose name is the same in all worlds
    for row in world.wanted():
        if row.need.unless == NEW_BROKERS:
            continue
        for permission in row.permissions:
            missing = Grant(principal_of(row.client), permission)
            world.allow([missing])
            report = check_file(load_checked(world.path), "mm2")
            is_needless = permission.operation is Operation.CREATE and permission.name == is_there
            assert denied(report) == (set() if is_needless else {missing}), permission
            states = {each.state for each in report.permissions if each.denied}
            assert states <= {CheckResult.NO, CheckResult.WITHOUT}, permission
            assert report.is_ok == (CheckResult.NO not in states), permission


def test_of_syncs_and_map_one_must_be_readable(world: World) -> None:
    either = {
        Grant(principal_of(row.client), permission)
        for row in world.wanted()
        if row.need.unless in EITHER
        for permission in row.permissions
    }
    assert len(either) == len(EITHER)
    world.allow(either)
    report = check_file(load_checked(world.path), "mm2")
    assert not report.is_ok
    assert {row.state for row in report.permissions if row.denied} == {CheckResult.NO}


def test_an_mm2_file_that_may_do_everything(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.allow()
    before = set(world.guarded.admin.list_topics(timeout=30.0).topics)
    code, out, err = run(capsys, str(world.path), "--json")
    assert (code, err) == (OK, "")
    found = json.loads(out)
    assert found["ok"]
    assert found["kind"] == "mm2 file"
    assert [cluster["principal"] for cluster in found["clusters"]] == ["User:reader", "User:writer"]
    assert {row["state"] for row in found["permissions"]} == {"yes"}
    assert set(world.guarded.admin.list_topics(timeout=30.0).topics) == before


def test_an_mm2_file_that_may_do_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.guarded.allow_only([])
    code, out, _ = run(capsys, str(world.path))
    assert code == MISSING
    servers = world.flow.source.source_client.bootstrap_servers[0]
    assert (
        f"User:reader lacks READ on 2 topics: {world.cut}, {world.kept} of cluster "
        f"'{world.source}', needed for: copy (list and fetch). Without it: it is not copied; the "
        "other topics are.\n"
        f"  kafka-acls.sh --bootstrap-server {servers} --add --allow-principal User:reader "
        f"--operation Read --topic {world.cut}\n"
    ) in out
    for topic in (world.cut, world.kept):
        remote = f"--topic {world.source}.{topic}"
        assert f"--allow-principal User:writer --operation Write {remote}\n" in out
    # On a cluster that is open unless there are ACLs, such a rule would lock others out.
    assert "prefixed" not in out
    assert "'*'" not in out
    assert out.splitlines()[-1].startswith(f"{world.path} (mm2 file): problems found; ")


def test_a_connector_and_its_worker(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worker, connector = _connector_files(world, tmp_path)
    code, out, err = run(capsys, str(connector))
    assert "no worker's file was given" in err
    world.guarded.allow_only(grants_of(_wanted_by(world, connector, worker)))
    code, out, err = run(capsys, str(connector), "--worker", str(worker), "--json")
    assert code == OK, out
    kinds = {row["feature"] for row in json.loads(out)["permissions"]}
    assert kinds == {"Connect worker", "copy", "topic configs", "ACL sync"}
    code, out, _ = run(capsys, str(worker))
    assert code == OK
    assert "(worker file): all is well" in out


def _wanted_by(world: World, connector: Path, worker: Path) -> list[RequiredPermission]:
    file = load_checked(connector, worker)
    (found,) = file.connectors
    assert file.worker is not None
    assert isinstance(found.config, SourceConfig)
    copying = wanted_by_source(found.config, found.worker, [world.kept])
    return [*wanted_by_worker(file.worker), *copying]


def _connector_files(world: World, folder: Path) -> tuple[Path, Path]:
    reader, writer = world.guarded.login("reader"), world.guarded.login("writer")
    lines = {
        **writer,
        **{f"producer.{key}": value for key, value in writer.items()},
        "group.id": "g",
        "offset.storage.topic": "co",
        "offset.storage.replication.factor": "1",
        "config.storage.topic": "cc",
        "status.storage.topic": "cs",
    }
    worker = folder / "worker.properties"
    worker.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    connector = folder / "connector.json"
    config = {
        "connector.class": f"{MIRROR}MirrorSourceConnector",
        "source.cluster.alias": world.source,
        "target.cluster.alias": world.target,
        "topics": world.kept,
        "heartbeats.replication.enabled": "false",
        **{f"source.cluster.{key}": value for key, value in reader.items()},
        **{f"target.cluster.{key}": value for key, value in writer.items()},
    }
    connector.write_text(json.dumps({"name": "c", "config": config}))
    return worker, connector


def test_a_cluster_that_nobody_can_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ReservedPort(None) as port:
        servers = f"127.0.0.1:{port.number}"
        path = tmp_path / "mm2.properties"
        path.write_text(
            f"clusters = a, b\na.bootstrap.servers = {servers}\nb.bootstrap.servers = {servers}\n"
            "a->b.enabled = true\na->b.topics = t\n"
        )
        code, out, _ = run(capsys, str(path))
    assert code == MISSING
    assert f"reachable  NO      {servers}: Connection refused" in out


def test_a_wrong_password(guarded: Guarded, tmp_path: Path) -> None:
    login = guarded.login("reader")
    jaas = login["sasl.jaas.config"].replace('password="r"', 'password="not-it"')
    report = _check_client(tmp_path, {**login, "sasl.jaas.config": jaas})
    check = report.clusters[0].checks[-1]
    assert (check.what, check.state) == ("authenticated", CheckResult.NO)
    assert "not-it" not in json.dumps(report.as_json())


@pytest.mark.parametrize(
    ("listener", "state", "words"),
    [
        pytest.param("SSL", CheckResult.YES, "chain and name are valid; expires", id="good"),
        pytest.param("EXPIRED", CheckResult.NO, "has expired", id="expired"),
        pytest.param("WRONG_NAME", CheckResult.NO, "is for another host name", id="wrong-name"),
    ],
)
def test_certificates(
    listener: str, state: CheckResult, words: str, secure_cluster: SecureCluster, tmp_path: Path
) -> None:
    report = _check_client(tmp_path, secure_cluster.client(listener))
    check = next(each for each in report.clusters[0].checks if each.what.startswith("TLS "))
    assert check.state is state
    assert words in check.detail
    # A cluster without an authorizer lets everybody do everything.
    assert report.is_ok == (state is CheckResult.YES)


def test_a_client_certificate_is_a_name(secure_cluster: SecureCluster, tmp_path: Path) -> None:
    report = _check_client(tmp_path, secure_cluster.client("MTLS"))
    assert report.is_ok
    assert report.clusters[0].principal == "User:CN=client"


def _check_client(folder: Path, client: dict[str, str]) -> Report:
    """Of a worker's file with these settings."""
    topics = {f"{kind}.storage.topic": kind for kind in ("offset", "config", "status")}
    lines = {**client, **{f"producer.{key}": value for key, value in client.items()}, **topics}
    path = folder / "worker.properties"
    path.write_text("\n".join(f"{k} = {v}" for k, v in {**lines, "group.id": "g"}.items()))
    return check_file(load_checked(path), str(path))


def test_a_file_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text("{}")
    code, _, err = run(capsys, str(path))
    assert code == WRONG_FILE
    assert "connector.class: is missing" in err
