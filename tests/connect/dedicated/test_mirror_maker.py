"""All pairs of a file: connected together, each with a herder, stopped whatever happened."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from sparkmirror.config.mm2 import MirrorMakerConfig, load_mm2
from sparkmirror.connect.checkpoint.mirror_checkpoint_connector import MirrorCheckpointConnector
from sparkmirror.connect.dedicated import mirror_herder
from sparkmirror.connect.dedicated.mirror_herder import MirrorHerder
from sparkmirror.connect.dedicated.mirror_maker import MirrorMaker
from sparkmirror.connect.source.mirror_source_connector import MirrorSourceConnector
from sparkmirror.errors import KafkaError
from tests.clusters import wait_for

LINES = {
    "clusters": "a, b, c",
    "a.bootstrap.servers": "127.0.0.1:1",
    "b.bootstrap.servers": "127.0.0.1:2",
    "c.bootstrap.servers": "127.0.0.1:3",
    "a->b.enabled": "true",
}
OF_A_FLOW = {"MirrorSourceConnector", "MirrorHeartbeatConnector", "MirrorCheckpointConnector"}


def make_config(folder: Path, **settings: str) -> MirrorMakerConfig:
    lines = LINES | {key.replace("_", "."): value for key, value in settings.items()}
    path = folder / "mm2.properties"
    path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    return load_mm2(path)


@pytest.fixture
def config(tmp_path: Path) -> MirrorMakerConfig:
    return make_config(tmp_path)


@pytest.fixture(autouse=True)
def no_spark() -> Iterator[None]:
    """It would start side by side with what these tests are about."""
    with mock.patch("sparkmirror.connect.runtime.worker.Worker.begin"):
        yield


def test_every_pair_gets_heartbeats_and_a_flow_all_three_connectors(
    config: MirrorMakerConfig,
) -> None:
    mirror = MirrorMaker(config)
    assert [str(flow.flow) for flow in mirror.flows] == ["a->b"]
    assert {str(herder.name): set(herder.pair.connectors) for herder in mirror.herders} == {
        "a->b": OF_A_FLOW,
        **{pair: {"MirrorHeartbeatConnector"} for pair in ("a->c", "b->a", "b->c", "c->a", "c->b")},
    }


def test_a_pair_without_heartbeats_that_does_not_copy_has_no_herder(tmp_path: Path) -> None:
    mirror = MirrorMaker(make_config(tmp_path, emit_heartbeats_enabled="false"))
    assert [str(herder.name) for herder in mirror.herders] == ["a->b"]


@pytest.mark.parametrize(
    ("settings", "groups"),
    [
        pytest.param(
            {}, ["a-mm2 on 'b'", "a-mm2 on 'c'", "b-mm2 on 'a'", "b-mm2 on 'c'",
                 "c-mm2 on 'a'", "c-mm2 on 'b'"],
            id="one for each pair, under MirrorMaker 2's name",
        ),
        pytest.param(
            {"emit_heartbeats_enabled": "false", "b_group_id": "mine"}, ["mine on 'b'"],
            id="a name of the user's own",
        ),
        pytest.param(
            {"b_group_id": "g", "emit_heartbeats_enabled": "false", "c->b_enabled": "true"},
            ["g.a on 'b'", "g.c on 'b'"],
            id="one name for two flows",
        ),
    ],
)  # fmt: skip
def test_groups_that_are_joined(
    tmp_path: Path, settings: dict[str, str], groups: list[str]
) -> None:
    mirror = MirrorMaker(make_config(tmp_path, **settings))
    workers = [herder.pair.worker.worker for herder in mirror.herders]
    assert sorted(f"{each.group_id} on '{each.client.alias}'" for each in workers) == groups


def test_only_a_source_whose_heartbeats_come_from_the_same_file_waits_for_them(
    tmp_path: Path,
) -> None:
    for settings, expected in (
        ({}, True),
        ({"b->a_emit_heartbeats_enabled": "false", "c->a_emit_heartbeats_enabled": "false"}, False),
    ):
        mirror = MirrorMaker(make_config(tmp_path, **settings))
        (flow,) = (herder for herder in mirror.herders if herder.copies)
        assert flow._awaits_heartbeats is expected


def test_every_cluster_that_cannot_be_reached_is_reported_once(config: MirrorMakerConfig) -> None:
    mirror = MirrorMaker(config)
    with pytest.raises(KafkaError) as caught:
        mirror.start(threading.Event())
    lines = str(caught.value).splitlines()
    assert [line.split("(")[0] for line in sorted(lines)] == [
        f"cluster '{alias}' cannot be reached " for alias in "abc"
    ]
    assert mirror.stop()


def test_a_stop_while_connecting_does_not_wait(
    config: MirrorMakerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent, stop = threading.Event(), threading.Event()
    monkeypatch.setattr(mirror_herder, "check_reachable", lambda _: None)
    monkeypatch.setattr(MirrorCheckpointConnector, "connect", lambda _: silent.wait())
    monkeypatch.setattr(MirrorSourceConnector, "connect", lambda _: stop.set())
    mirror = MirrorMaker(config)
    try:
        mirror.start(stop)  # hangs for ever if it waits
        assert mirror.stop()
    finally:
        silent.set()


# -- one pair --------------------------------------------------------------------------------------


def herder_of(config: MirrorMakerConfig, name: str) -> MirrorHerder:
    (herder,) = (each for each in MirrorMaker(config).herders if str(each.name) == name)
    return herder


def test_a_flow_whose_topics_cannot_be_opened_ends_the_process(config: MirrorMakerConfig) -> None:
    herder = herder_of(config, "a->b")
    herder.start()
    try:
        wait_for(lambda: herder.failure is not None, within=60)
        with pytest.raises(KafkaError, match="cluster 'b' cannot be reached"):
            herder.look()
    finally:
        herder.stop(1.0)
    assert herder.is_clean


def test_heartbeats_that_cannot_be_written_are_retried_and_end_nothing(
    config: MirrorMakerConfig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    herder = herder_of(config, "b->a")
    herder.start()
    try:
        wait_for(lambda: caplog.text.count("[b->a] no heartbeats: ") > 1, within=60)
        herder.look()
    finally:
        herder.stop(1.0)
    assert "cluster 'a' cannot be reached" in caplog.text
    assert herder.is_clean
