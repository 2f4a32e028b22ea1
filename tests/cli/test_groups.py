"""`sparkmirror groups`: bad input without a broker, and both commands on real clusters."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from sparkmirror.cli import main as cli
from sparkmirror.cli.groups import repeat
from sparkmirror.config.clients import ClientConfig
from sparkmirror.embedded import KafkaCluster
from sparkmirror.errors import KafkaError
from sparkmirror.mirror.records import Checkpoint, OffsetSync
from sparkmirror.mirror.translation.offset_map_chunks import ChunkKey, ChunkStart, offset_map_topic
from sparkmirror.mirror.translation.offset_map_writer import OffsetMapWriter
from sparkmirror.tools.groups.offset_sync import SyncOutcome, SyncRow
from sparkmirror.types import TopicPartition
from sparkmirror.wire.admin.group_admin import GroupAdmin
from tests.clusters import Record, create_topic, produce, unique_name
from tests.group_members import member
from tests.tools.groups.test_options import connector

SAME_NAME_POLICY = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
CLIENT = {"bootstrap.servers": "127.0.0.1:1"}
MM2 = {
    "clusters": "us, eu, asia",
    "us.bootstrap.servers": "127.0.0.1:1",
    "eu.bootstrap.servers": "127.0.0.1:1",
    "asia.bootstrap.servers": "127.0.0.1:1",
    "us->eu.enabled": "true",
    "us->asia.enabled": "true",
}


def run(*words: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["groups", *words])
    return ended.value.code


def write(path: Path, keys: Mapping[str, str]) -> str:
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return str(path)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "words", "said"),
    [
        (CLIENT, [], ["--source: is required with a properties file of the target cluster"]),
        (CLIENT, ["-src", ""], ["--source: is required"]),
        (CLIENT, ["-src", "us", "-cgi", "g1,,g2"], ["--groups=g1,,g2: empty list element"]),
        (CLIENT, ["-src", "us", "-cgi", "g(1"], ["--groups=g(1: a ( is not closed"]),
        (CLIENT, ["-src", "us", "-cgi", ""], ["--groups: names no group"]),
        (CLIENT, ["-src", "us", "-rpc", "a.b.C"], ["--policy=a.b.C: unknown class"]),
        (CLIENT, ["-src", "us", "-rpc", "no_such:C"], ["no_such:C: cannot be loaded"]),
        ({"group.id": "g"}, ["-src", "us"], ["cluster 'target' has no broker address"]),
        (
            {"bootstrap.servers": "nowhere"},
            ["-rpc", "x.Y", "-cgi", "("],
            ["--groups=(", "bootstrap.servers=nowhere", "--policy=x.Y", "--source"],
        ),
        (CLIENT | {"replication.policy.class": "x.Y"}, ["-src", "us"], ["x.Y: unknown class"]),
        (
            CLIENT | {"security.protocol": "SASL_SSL"},
            ["-src", "us", "-ssl"],
            ["-ssl: it means security.protocol=SSL, but the file has SASL_SSL; remove"],
        ),
        (CLIENT, ["-src", "us", "-mtls"], ["-mtls: a client certificate is needed", "names n"]),
        (MM2, ["-src", "us", "--target", "eu", "-ssl"], ["-ssl: ", "is an mm2 file, which sets"]),
        (MM2, [], ["more than one flow *->*: us->eu, us->asia"]),
        (MM2, ["-src", "eu"], ["no flow eu->*; it has us->eu, us->asia"]),
        (MM2, ["--target", "eu", "-rpc", "Identity"], ["--policy=Identity", "is an mm2 file"]),
        ({"clusters": "us, eu"}, [], ["us.bootstrap.servers", "eu.bootstrap.servers"]),
    ],
    ids=lambda value: " ".join(value) or "none" if isinstance(value, list) else "",
)
def test_sync_reports_all_errors(
    keys: Mapping[str, str],
    words: list[str],
    said: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = write(tmp_path / "file.properties", keys)
    assert run("sync", "-pfp", file, *words) == 2
    error = capsys.readouterr().err
    assert [text for text in said if text not in error] == []


def test_a_missing_file_does_not_hide_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "none.properties")
    assert run("sync", "--properties", missing, "-cgi", "(") == 2
    error = capsys.readouterr().err
    assert "none.properties: no such file" in error
    assert "--groups=(" in error
    assert "--source" in error


@pytest.mark.parametrize(
    ("keys", "words", "said"),
    [
        (CLIENT, ["--group", "g"], "this is not an mm2 file"),
        (MM2, ["--group", "g"], "more than one flow"),
        (MM2, ["--group", "g", "--target", "us"], "no flow *->us"),
        (MM2, [], "--group"),
    ],
)
def test_translate_needs_one_flow(
    keys: Mapping[str, str],
    words: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = write(tmp_path / "file.properties", keys)
    assert run("translate", "-pfp", file, *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["sync", "--once"], ["translate", "--group", "g"]], ids=lambda words: words[0]
)
def test_a_cluster_without_a_response(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "mm2.properties", MM2)
    assert run(*words, "-pfp", file, "--source", "us", "--target", "eu") == 1
    assert "cannot be reached (127.0.0.1:1: Connection refused)" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["-h"], ["sync", "-h"], ["translate", "--help"]])
def test_help_has_a_short_name(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 0
    assert "Usage" in capsys.readouterr().out


# -- the loop --------------------------------------------------------------------------------------


def scripted(
    stop: threading.Event, *steps: list[SyncRow] | KafkaError
) -> Callable[[], list[SyncRow]]:
    """Rounds with these results; the last one stops the loop."""
    left = list(steps)

    def next_round() -> list[SyncRow]:
        step = left.pop(0)
        if not left:
            stop.set()
        if isinstance(step, KafkaError):
            raise step
        return step

    return next_round


class Scripted:
    """A tool whose rounds are written down."""

    def __init__(self, next_round: Callable[[], list[SyncRow]]) -> None:
        self._next = next_round

    def round(self) -> list[SyncRow]:
        return self._next()


@pytest.mark.parametrize(
    ("steps", "complete", "tables", "complaints"),
    [
        ([[SyncRow("g", SyncOutcome.KEPT)]] * 3, True, 1, 0),
        ([[SyncRow("g", SyncOutcome.WRITTEN)]] * 3, True, 3, 0),
        ([[SyncRow("g", SyncOutcome.NOT_WRITTEN, "a")]] * 3, False, 1, 0),
        ([[SyncRow("g", SyncOutcome.NOT_WRITTEN, why)] for why in "aab"], False, 2, 0),
        ([KafkaError("x"), KafkaError("x"), KafkaError("y")], False, 0, 2),
        ([KafkaError("x"), [SyncRow("g", SyncOutcome.WRITTEN)]], True, 1, 1),
    ],
    ids=["kept", "written", "same failure", "other failure", "errors", "recovered"],
)
def test_the_loop_speaks_when_something_changed(
    steps: list[list[SyncRow] | KafkaError],
    complete: bool,
    tables: int,
    complaints: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stop = threading.Event()
    tool = Scripted(scripted(stop, *steps))
    assert repeat(tool, 0.001, stop, as_json=False) is complete
    out, err = capsys.readouterr()
    assert out.count("GROUP") == tables
    assert err.count("retrying") == complaints


# -- real clusters ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def admin(target_cluster: KafkaCluster) -> Iterator[GroupAdmin]:
    client = GroupAdmin(ClientConfig("target", (target_cluster.bootstrap_servers,)), 30_000)
    yield client
    client.close()


def committed(admin: GroupAdmin, group: str) -> dict[TopicPartition, int]:
    found = admin.committed_offsets([group])[group]
    assert not isinstance(found, KafkaError)
    return {tp: each.next_offset for tp, each in found.items()}


def write_checkpoints(cluster: KafkaCluster, topic: str, *checkpoints: Checkpoint) -> None:
    create_topic(cluster, topic, config={"cleanup.policy": "compact"})
    records = [Record(each.encode_value(), each.encode_key()) for each in checkpoints]
    produce(cluster, topic, records)


@pytest.mark.kafka
def test_sync_writes_empty_groups_only(
    target_cluster: KafkaCluster,
    admin: GroupAdmin,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    alias = unique_name("us")
    orders = create_topic(target_cluster, f"{alias}.orders", partitions=2)
    first, second = TopicPartition(orders, 0), TopicPartition(orders, 1)
    for tp in (first, second):  # a checkpoint beyond the end would be none
        produce(target_cluster, orders, [b"copied"] * 10, partition=tp.partition)
    new, known, busy = (f"{alias}-{name}" for name in ("new", "known", "busy"))
    admin.alter_offsets(known, {first: (9, ""), second: (3, "")})
    write_checkpoints(
        target_cluster,
        f"{alias}.checkpoints.internal",
        Checkpoint(new, *first, 40, 4),
        Checkpoint(new, *first, 50, 5, "meta"),
        Checkpoint(known, *first, 70, 7),
        Checkpoint(known, *second, 60, 6),
        Checkpoint(busy, *first, 10, 1),
        Checkpoint("of-somebody-else", *first, 10, 1),
    )
    file = write(
        tmp_path / "target.properties",
        {"bootstrap.servers": target_cluster.bootstrap_servers, "group.id": "any"},
    )
    command = ["sync", "-cgi", f"{alias}-.*", "-src", alias, "-pfp", file, "--once"]
    with member(target_cluster, orders, busy):
        assert run(*command, "--dry-run") == 1
        assert committed(admin, new) == {}
        assert run(*command) == 1
    out = capsys.readouterr().out
    assert f"{busy}" in out
    assert "not written: the group has members on the target" in out
    assert "3 groups: 2 written, 1 kept, 1 not written" in out
    assert committed(admin, new) == {first: 5}
    assert committed(admin, known) == {first: 9, second: 6}
    assert committed(admin, busy) == {}
    assert committed(admin, "of-somebody-else") == {}
    assert run(*command) == 0
    assert committed(admin, busy) == {first: 1}


@pytest.mark.kafka
def test_sync_with_the_words_of_the_sample_application(
    target_cluster: KafkaCluster,
    admin: GroupAdmin,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    alias = unique_name("us")
    orders = TopicPartition(create_topic(target_cluster), 0)
    produce(target_cluster, orders.topic, [b"copied"] * 10)
    group = f"{alias}-reader"
    write_checkpoints(
        target_cluster, f"{alias}.checkpoints.internal", Checkpoint(group, *orders, 8, 8)
    )
    file = write(
        tmp_path / "consumer.properties",
        {"BOOTSTRAP_SERVERS_CONFIG": target_cluster.bootstrap_servers},
    )
    words = ["--consumerGroupID", group, "--sourceCluster", alias, "--propertiesFilePath", file]
    policy = ["--replicationPolicyClass", SAME_NAME_POLICY]
    assert run("sync", *words, *policy, "--once", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "complete": True,
        "offsets": [
            {
                "group": group,
                "topic": orders.topic,
                "partition": 0,
                "source_offset": 8,
                "before": None,
                "offset": 8,
                "result": "written",
                "reason": None,
            }
        ],
    }
    assert committed(admin, group) == {orders: 8}
    assert run("sync", *words, *policy, "-int", "0.2", "-rf", "1", "-t", "ExampleTopic") == 0
    out, err = capsys.readouterr()
    assert "1 kept" in out
    assert "--topic has no effect, as in the sample application" in err
    assert run("sync", *words[2:], "-cgi", f"{group},missing", "--once") == 1
    assert "missing" in capsys.readouterr().out


@pytest.mark.kafka
def test_sync_without_checkpoints_names_the_searched_topic(
    target_cluster: KafkaCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(
        tmp_path / "target.properties", {"bootstrap.servers": target_cluster.bootstrap_servers}
    )
    assert run("sync", "-src", "nowhere", "-pfp", file, "--once") == 1
    assert "has no topic 'nowhere.checkpoints.internal'" in capsys.readouterr().err


@pytest.mark.kafka
def test_translate_by_map_and_by_syncs(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    us, eu = unique_name("us"), unique_name("eu")
    orders = create_topic(source_cluster, partitions=2)
    remote = create_topic(target_cluster, f"{us}.{orders}", partitions=2)
    for partition in range(2):
        produce(source_cluster, orders, [b"x"] * 100, partition=partition)
        produce(target_cluster, remote, [b"x"] * 100, partition=partition)
    write_syncs(source_cluster, f"mm2-offset-syncs.{eu}.internal", orders)
    write_map(target_cluster, offset_map_topic(us), TopicPartition(orders, 1))
    group = unique_name("reader")
    client = GroupAdmin(ClientConfig(us, (source_cluster.bootstrap_servers,)), 30_000)
    tps = [TopicPartition(orders, at) for at in range(2)]
    assert client.alter_offsets(group, dict.fromkeys(tps, (77, ""))) == dict.fromkeys(tps)
    client.close()
    file = write(
        tmp_path / "mm2.properties",
        {
            "clusters": f"{us}, {eu}",
            f"{us}.bootstrap.servers": source_cluster.bootstrap_servers,
            f"{eu}.bootstrap.servers": target_cluster.bootstrap_servers,
            f"{us}->{eu}.enabled": "true",
        },
    )
    capsys.readouterr()
    assert run("translate", "-pfp", file, "--group", group, "--json") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [
        (row["target_offset"], row["translation"], row["read_again_at_most"]) for row in found
    ] == [(51, "MM2's rule", 26), (77, "exact", 0)]
    assert run("translate", "-pfp", file, "--group", group) == 0
    assert "2 partitions, 1 exact" in capsys.readouterr().out
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    settings = tmp_path / "mm2-cpc.json"
    settings.write_text(json.dumps(connector("Checkpoint", us, eu, *servers)))
    assert run("translate", "-pfp", str(settings), "--group", group) == 0
    assert f"{us}->{eu}: 2 partitions, 1 exact" in capsys.readouterr().out
    assert run("translate", "-pfp", file, "--group", "nobody") == 1
    assert f"group 'nobody' has no committed offset on '{us}'" in capsys.readouterr().err


def write_syncs(cluster: KafkaCluster, topic: str, upstream: str) -> None:
    """A sync of each of two partitions at offset 50."""
    create_topic(cluster, topic, config={"cleanup.policy": "compact"})
    syncs = [OffsetSync(upstream, partition, 50, 50) for partition in range(2)]
    produce(cluster, topic, [Record(each.encode_value(), each.encode_key()) for each in syncs])


def write_map(cluster: KafkaCluster, topic: str, tp: TopicPartition) -> None:
    """The map of 100 records that have the same offsets on both sides."""
    create_topic(cluster, topic, config={"cleanup.policy": "compact"})
    writer = OffsetMapWriter(ChunkStart.SESSION)
    writer.append(0, None, 100, 0)
    chunks = [
        Record(chunk.value, ChunkKey(*tp, chunk.first).encode()) for chunk in writer.take_changed()
    ]
    produce(cluster, topic, chunks)
