"""All connectors of a file: connected together, started in order, stopped whatever happened."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sparkmirror.config.mm2 import MirrorMakerConfig, load_mm2
from sparkmirror.connect.heartbeat.mirror_heartbeat_task import MirrorHeartbeatTask
from sparkmirror.connect.runtime.mirror_maker import MirrorMaker
from sparkmirror.connect.source.local_source import LocalSource
from sparkmirror.errors import KafkaError

LINES = {
    "clusters": "a, b, c",
    "a.bootstrap.servers": "127.0.0.1:1",
    "b.bootstrap.servers": "127.0.0.1:2",
    "c.bootstrap.servers": "127.0.0.1:3",
    "a->b.enabled": "true",
}


def make_config(folder: Path, **settings: str) -> MirrorMakerConfig:
    lines = LINES | {key.replace("_", "."): value for key, value in settings.items()}
    path = folder / "mm2.properties"
    path.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    return load_mm2(path)


@pytest.fixture
def config(tmp_path: Path) -> MirrorMakerConfig:
    return make_config(tmp_path)


def test_every_pair_gets_heartbeats(config: MirrorMakerConfig) -> None:
    mirror = MirrorMaker(config)
    assert [str(flow.flow.name) for flow in mirror.flows] == ["a->b"]
    beats = [each for each in mirror.worker_connectors if isinstance(each, MirrorHeartbeatTask)]
    assert sorted(beat.name for beat in beats) == [
        f"{pair}|MirrorHeartbeatConnector"
        for pair in ("a->b", "a->c", "b->a", "b->c", "c->a", "c->b")
    ]


def test_heartbeats_that_are_off_have_no_connector(tmp_path: Path) -> None:
    config = make_config(tmp_path, emit_heartbeats_enabled="false")
    assert not any(
        isinstance(each, MirrorHeartbeatTask) for each in MirrorMaker(config).worker_connectors
    )


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
            {"b_group_id": "b", "c_group_id": "c", "a_group_id": "a"},
            ["a on 'a'", "b on 'b'", "c on 'c'"],
            id="flows that share a name share a group",
        ),
    ],
)  # fmt: skip
def test_groups_that_are_joined(
    tmp_path: Path, settings: dict[str, str], groups: list[str]
) -> None:
    config = make_config(tmp_path)
    path = config.path
    lines = [f"{key.replace('_', '.')} = {value}"
             for key, value in settings.items()]  # fmt: skip
    path.write_text("\n".join([path.read_text(), *lines]))
    mirror = MirrorMaker(load_mm2(path))
    assert sorted(group.name for group in mirror._groups.values()) == groups


def test_every_cluster_that_cannot_be_reached_is_told_once(config: MirrorMakerConfig) -> None:
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
    monkeypatch.setattr(MirrorHeartbeatTask, "connect", lambda _: silent.wait())
    monkeypatch.setattr(LocalSource, "connect", lambda _: stop.set())
    mirror = MirrorMaker(config)
    try:
        mirror.start(stop)  # hangs for ever if it waits
        assert mirror.stop()
    finally:
        silent.set()
