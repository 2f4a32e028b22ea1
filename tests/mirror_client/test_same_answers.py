"""Kafka's own client, and a comparison of bytes, find no difference between MirrorMaker 2 and us.

With one exception, which is wanted: MirrorMaker 2 knows a few offset syncs, leads a group back to
the nearest one, and says nothing of a group before the first one it has kept. Ours knows every
record. Wherever they differ,

    MirrorMaker 2's offset, if it has one  <=  ours  <=  the exact one
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sparkmirror.embedded import KafkaCluster
from sparkmirror.mirror.records import Checkpoint, Heartbeat, OffsetSync
from sparkmirror.types import TopicPartition
from tests.mirror_client.answers import ask_mirror_client
from tests.mirror_client.internal_records import KEYED, Found, last_by_key, newest_records
from tests.mirror_client.worlds import GROUPS, METADATA, NOTHING, Worlds, two_worlds

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

ALIASES = ["src", "tgt", "far", "nobody"]
# After the last record both are exact.
END = "g-end"


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with two_worlds(tmp_path_factory.mktemp("client")) as found:
        yield found


@pytest.fixture(scope="module")
def theirs(worlds: Worlds) -> dict[str, Any]:
    """What Kafka's client says about MirrorMaker 2's target."""
    return _ask(worlds.theirs)


@pytest.fixture(scope="module")
def ours(worlds: Worlds) -> dict[str, Any]:
    """What it says about ours."""
    return _ask(worlds.ours)


def _ask(cluster: KafkaCluster) -> dict[str, Any]:
    return ask_mirror_client(cluster.bootstrap_servers, ALIASES, source="src", groups=GROUPS)


@pytest.mark.parametrize(
    "question",
    [
        "replicationHops",
        "upstreamClusters",
        "heartbeatTopics",
        "checkpointTopics",
        "remoteTopics",
        "remoteTopicsBySource",
        "heartbeats",
    ],
)
def test_mirror_client_answers_the_same(
    theirs: dict[str, Any], ours: dict[str, Any], question: str
) -> None:
    assert ours[question] == theirs[question]


def test_mirror_client_finds_all_there_is(ours: dict[str, Any]) -> None:
    assert ours["replicationHops"] == {"src": 1, "far": 2, "tgt": -1, "nobody": -1}
    assert ours["upstreamClusters"] == ["far", "src"]
    assert ours["heartbeats"] == {
        "heartbeats": ["src->tgt"],
        "src.heartbeats": ["tgt->src"],
        "src.far.heartbeats": ["far->src"],
    }
    assert f"src.{NOTHING}" in ours["remoteTopicsBySource"]["src"]


@pytest.mark.parametrize("question", ["remoteConsumerOffsets", "remoteConsumerOffsetsByPattern"])
def test_groups_are_translated_as_well_or_better(
    worlds: Worlds, theirs: dict[str, Any], ours: dict[str, Any], question: str
) -> None:
    for (group, tp), (_, exact) in worlds.places.items():
        our_offset, our_metadata = ours[question][group][str(tp)]
        their_offset, their_metadata = theirs[question][group].get(str(tp), (-1, our_metadata))
        assert their_offset <= our_offset <= exact, (group, tp)
        assert our_metadata == their_metadata
        # The client that commits sends the final zero byte of its text, too.
        assert our_metadata.rstrip("\0") == METADATA
        assert our_offset == their_offset or group != END, (group, tp)
    assert sum(map(len, ours[question].values())) == len(worlds.places)
    for group in theirs[question]:
        assert theirs[question][group].keys() <= ours[question][group].keys()


def test_mirror_client_reads_our_checkpoints(
    theirs: dict[str, Any], ours: dict[str, Any], worlds: Worlds
) -> None:
    found = ours["checkpoints"][KEYED.checkpoints]
    assert sorted(f"{group} {tp}" for group, tp in worlds.places) == found
    assert set(theirs["checkpoints"][KEYED.checkpoints]) <= set(found)


def test_checkpoints_are_the_same_bytes_but_for_better_offsets(worlds: Worlds) -> None:
    theirs = last_by_key(worlds.theirs, KEYED.checkpoints)
    ours = last_by_key(worlds.ours, KEYED.checkpoints)
    assert theirs.keys() <= ours.keys()
    for key in theirs:
        value = ours[key]
        read, their_read = Checkpoint.decode(key, value), Checkpoint.decode(key, theirs[key])
        upstream, exact = worlds.places[read.group, TopicPartition(read.topic, read.partition)]
        assert read.upstream_offset == their_read.upstream_offset == upstream
        assert their_read.downstream_offset <= read.downstream_offset <= exact
        # The offset is 8 bytes after a version of 2 and another offset: all others are the same.
        assert value[:10] + value[18:] == theirs[key][:10] + theirs[key][18:]
        assert value == theirs[key] or read.group != END


def test_checkpoints_are_exact(worlds: Worlds) -> None:
    found = [Checkpoint.decode(*row) for row in last_by_key(worlds.ours, KEYED.checkpoints).items()]
    assert worlds.places == {
        (each.group, TopicPartition(each.topic, each.partition)): (
            each.upstream_offset,
            each.downstream_offset,
        )
        for each in found
    }


def test_newest_offset_syncs_are_the_same_bytes(worlds: Worlds) -> None:
    theirs = last_by_key(worlds.theirs, KEYED.offset_syncs)
    ours = last_by_key(worlds.ours, KEYED.offset_syncs)
    assert ours.keys() == theirs.keys()
    beats = OffsetSync("heartbeats", 0, 0, 0).encode_key()
    # Heartbeats come every second: each mirror has copied as many as it ran for.
    assert len(ours.pop(beats)) == len(theirs.pop(beats))
    assert ours == theirs


def test_heartbeats_have_the_same_keys_and_values_of_the_same_form(worlds: Worlds) -> None:
    theirs = newest_records(worlds.theirs, KEYED.heartbeats)
    ours = newest_records(worlds.ours, KEYED.heartbeats)
    assert ours.keys() == theirs.keys()
    for key in ours:
        _check_heartbeat(key, theirs[key])
        _check_heartbeat(key, ours[key])


def _check_heartbeat(key: bytes, found: Found) -> None:
    read = Heartbeat.decode(key, found.value)
    assert (read.source_alias, read.target_alias) == ("src", "tgt")
    assert read.timestamp_ms == found.timestamp_ms
    assert found.value == read.encode_value()
    assert found.partition == 0


def test_positions_are_the_same_bytes_in_the_same_partitions(worlds: Worlds) -> None:
    theirs, ours = _positions(worlds.theirs), _positions(worlds.ours)
    more = ours.keys() - theirs.keys()
    assert {key: ours[key] for key in theirs} == theirs
    # Of checkpoints that only we can make.
    assert {json.loads(key)[0] for key in more} <= {"MirrorCheckpointConnector"}
    assert {json.loads(key)[0] for key in ours} == {
        "MirrorSourceConnector",
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
    }


def _positions(cluster: KafkaCluster) -> dict[bytes, tuple[int, bytes]]:
    """Partition and value of each key; without the number of heartbeats copied so far."""
    return {
        key: (found.partition, b"" if b'"topic":"heartbeats"' in key else found.value)
        for key, found in newest_records(cluster, KEYED.positions).items()
    }
